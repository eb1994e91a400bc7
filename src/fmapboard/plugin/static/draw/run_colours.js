// @ts-check
/** TensorBoard's colour of a run: that of its page, else the one that it would choose. */

/** @typedef {import("../data/routes.js").RunEntry} RunEntry */

/** Palette of TensorBoard's Scalars, Images and Histograms dashboards. */
const PALETTE = Object.freeze([
  "#ff7043",
  "#0077bb",
  "#cc3311",
  "#33bbee",
  "#ee3377",
  "#009988",
  "#bbbbbb",
]);

/** @typedef {(run: string) => string} Colours throws for a run that the page does not know */

/** @type {Colours|null|undefined} undefined until it was looked for */
let ofPage;

/** The colours of TensorBoard's page, which is the frame's parent; null if they cannot be read. */
function colours() {
  if (ofPage === undefined) {
    try {
      const element = window.parent.document.createElement("tf-color-scale");
      const scale = /** @type {{runsColorScale?: unknown}} */ (/** @type {unknown} */ (element));
      const found = window.parent === window ? null : scale.runsColorScale;
      ofPage = typeof found === "function" ? /** @type {Colours} */ (found) : null;
    } catch {
      ofPage = null; // a page of another origin
    }
  }
  return ofPage;
}

/**
 * Runs in the order in which TensorBoard hands out its colours: by start, then by name.
 * @param {readonly RunEntry[]} runs
 */
export function byStart(runs) {
  return [...runs].sort((a, b) => {
    const [x, y] = [a.started ?? Infinity, b.started ?? Infinity];
    return x === y ? (a.run < b.run ? -1 : Number(a.run > b.run)) : x - y;
  });
}

/** Place of each run in that order, per list. @type {WeakMap<readonly RunEntry[], Map<string, number>>} */
const orders = new WeakMap();

/** @param {readonly RunEntry[]} runs */
function orderOf(runs) {
  let found = orders.get(runs);
  if (!found) orders.set(runs, (found = new Map(byStart(runs).map(({ run }, i) => [run, i]))));
  return found;
}

/** @param {string} run @param {readonly RunEntry[]} runs @returns {string} a CSS colour */
export function runColour(run, runs) {
  try {
    const colour = colours()?.(run);
    if (typeof colour === "string") return colour;
  } catch {
    // the page has not listed this run yet
  }
  return PALETTE[(orderOf(runs).get(run) ?? 0) % PALETTE.length];
}
