// @ts-check
/** Runs and layers that an address names but that are not there, and what is shown instead. */

import { layerText } from "./compare.js";
import { runText } from "./run_text.js";

/** @typedef {{what: "run"|"layer", name: string, shown: string}} Gone */

/**
 * The list with one more entry, which takes the place of an earlier one about the same thing.
 * @param {Gone[]} before @param {Gone["what"]} what
 * @param {string} name of what is gone, "" if the address names none @param {string} shown instead
 */
export function replaced(before, what, name, shown) {
  const others = before.filter((each) => each.what !== what);
  return name ? [...others, { what, name, shown }] : others;
}

/**
 * Says what is gone, as long as its replacement is shown; "" for nothing.
 * @param {Gone[]} gone @param {import("./state.js").State} state
 */
export function goneText(gone, state) {
  return gone
    .filter(({ what, shown }) => state[what] === shown)
    .map(({ what, name, shown }) => {
      const text = (/** @type {string} */ of) => (what === "layer" ? layerText(of) : runText(of));
      const where = what === "layer" ? ` is not in run ${runText(state.run)}` : " is gone";
      return `${what === "run" ? "Run" : "Layer"} ${text(name)}${where}: showing ${text(shown)}.`;
    })
    .join(" ");
}
