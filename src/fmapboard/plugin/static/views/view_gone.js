// @ts-check
/** A line that says which run or layer of the address does not exist, and what is shown instead. */

import { h, say, show } from "./dom.js";

export function createGone() {
  const element = h("p", { class: "gone", role: "status", hidden: true });

  /** @param {import("../data/tab_data.js").Model} model */
  function draw({ gone, layers }) {
    show(element, Boolean(gone) && layers.length > 0);
    say(element, gone);
  }
  return { element, draw };
}
