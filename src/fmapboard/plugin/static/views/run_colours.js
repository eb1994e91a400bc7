// @ts-check
/** Colour of each run. */

const COLOURS = Object.freeze([
  "#ff7043",
  "#0077bb",
  "#cc3311",
  "#33bbee",
  "#ee3377",
  "#009988",
  "#bbbbbb",
]);

/** @param {readonly {run: string}[]} runs @param {string} run */
export function runColour(runs, run) {
  const at = runs.findIndex((each) => each.run === run);
  return COLOURS[Math.max(0, at) % COLOURS.length];
}
