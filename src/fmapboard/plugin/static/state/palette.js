// @ts-check
/** The palette of what is shown: gradients have one of their own. */

import { isOfDifferences } from "./differences.js";

/** @typedef {import("./state.js").Palette} Palette */
/** @typedef {import("./state.js").State} State */

/** The field of the state with the palette of its role: differences are signed too. @param {State} state */
function field({ role, run }) {
  return role === "gradients_of_maps" || isOfDifferences(run) ? "gradient_colours" : "colours";
}

/** The state with the palette to draw with as `colours`. @param {State} state @returns {State} */
export function inPalette(state) {
  return { ...state, colours: state[field(state)] };
}

/**
 * The change of the state that selects a palette for what is shown.
 * @param {State} state @param {Palette} palette @returns {Partial<State>}
 */
export function selected(state, palette) {
  return { [field(state)]: palette };
}
