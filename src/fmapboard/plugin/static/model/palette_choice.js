// @ts-check
/** The palette of what is shown: gradients and differences have one of their own. */

import { isOfDifferences } from "./run_states.js";

/** @import {Palette, State} from "./model.js" */

/**
 * The field of the state with the palette of its role: differences are signed too.
 * @param {State} state
 */
function field({ role, run }) {
  return role === "gradients_of_maps" || isOfDifferences(run) ? "gradient_colours" : "colours";
}

/** The state with the palette to draw with as `colours`. @param {State} state @returns {State} */
export function inPalette(state) {
  return { ...state, colours: state[field(state)] };
}

/**
 * What selects a palette for what is shown.
 * @param {State} state @param {Palette} palette
 * @returns {Partial<State>}
 */
export function selected(state, palette) {
  return { [field(state)]: palette };
}
