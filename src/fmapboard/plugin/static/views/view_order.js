// @ts-check
/** The line that says what the order of channels, or the arrangement of kernels, means. */

import { kernelMeaning } from "../draw/kernel_scene.js";
import { html } from "../vendor/preact_htm.js";

/** @param {Pick<import("../data/tab_data.js").Model, "scene">} model */
export function Order({ scene }) {
  const maps = scene?.kind === "maps" ? scene.sorting.meaning : "";
  const meaning = scene?.kind === "kernels" ? kernelMeaning(scene) : maps;
  return html`<p class="order" role="status" hidden=${!meaning}>${meaning}</p>`;
}
