// @ts-check
/** The line that says what the order of channels, or the arrangement of kernels, means. */

import { kernelMeaning } from "../draw/kernel_scene.js";
import { h, say, show } from "./dom.js";

export function createOrder() {
  const element = h("p", { class: "order", role: "status", hidden: true });

  /** @param {import("../data/tab_data.js").Model} model */
  function draw({ scene }) {
    const meaning =
      scene?.kind === "kernels"
        ? kernelMeaning(scene)
        : scene?.kind === "maps"
          ? scene.sorting.meaning
          : "";
    say(element, meaning);
    show(element, Boolean(meaning));
  }
  return { element, draw };
}
