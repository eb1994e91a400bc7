// @ts-check
/** A hint on the flag that makes TensorBoard keep more steps, if it keeps its default of 10. */

import { h, show } from "./dom.js";

const TEXT =
  "TensorBoard keeps only 10 steps of each picture: when it was started, no run here had feature maps. To keep more, restart it with ";
const FLAG = "--samples_per_plugin images=50,feature_maps=50";

export function createSampling() {
  const element = h(
    "p",
    { class: "sampling", hidden: true },
    h("span", { text: TEXT }),
    h("code", { text: FLAG }),
  );

  /** @param {import("../app.js").Model} model */
  function draw(model) {
    show(element, !model.keepsEnough && model.layers.length > 0);
  }
  return { element, draw };
}
