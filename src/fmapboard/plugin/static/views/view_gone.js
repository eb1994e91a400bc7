// @ts-check
/** A line that says which run or layer of the address does not exist, and what is shown instead. */

import { html } from "../vendor/preact_htm.js";

/** @param {Pick<import("../data/tab_data.js").Model, "gone"|"layers">} model */
export function Gone({ gone, layers }) {
  const shown = gone !== "" && layers.length > 0;
  return html`<p class="gone" role="status" hidden=${!shown}>${gone}</p>`;
}
