// @ts-check
/** A run of `diff` that holds differences: it opens at the first layer that differs, in a signed palette. */

import { tableFor } from "./front.js";

/** True for the run that `diff` writes besides those of the two models. @param {string} run */
export function isOfDifferences(run) {
  return /(^|\/)difference$/.test(run);
}

/**
 * The first layer whose values are not all 0 at a step; undefined if there is none, or not known yet.
 * @param {import("../app.js").App} app @param {readonly import("../data/answers.js").Layer[]} layers
 */
export function firstDifferent({ source, overview, state }, layers) {
  const table = tableFor(source, overview.source, state.run);
  if (!table) return { isKnown: false, layer: undefined };
  const { minimum, maximum } = table.arrays;
  const count = table.layers.length;
  const differs = (/** @type {number} */ row) =>
    table.steps.some(
      (_, at) => minimum?.values[at * count + row] || maximum?.values[at * count + row],
    );
  const row = table.layers.findIndex(({ key }, at) => key !== null && differs(at));
  return { isKnown: true, layer: layers.find(({ key }) => key === table.layers[row]?.key) };
}
