// @ts-check
/** Rows, columns and cells of the contact sheet: layers × steps as pictures. */

/** Between two cells, CSS px; frames of states are drawn there. */
export const GAP = 6;
/** Smallest side of a cell, CSS px. */
export const LEAST = 24;
/** Side that many layers or steps do not go below, so that a map can be recognized, CSS px. */
const READABLE = 80;
/** Side that a few layers do not go above, CSS px. */
const LARGEST = 160;
/** The map of states is shown first where fewer columns fit. */
const COLUMNS = 4;

/**
 * Lengths in CSS px.
 * @typedef {object} SheetLayout
 * @property {number} side of a cell
 * @property {number} names width of the column of names
 * @property {number[]} steps one per column
 * @property {number} rows per page: a screenful, which is asked for at once
 */

/** Width of the names. @param {number} width */
function namesOf(width) {
  return Math.min(230, Math.max(110, Math.round(width * 0.16)));
}

/** True if a sheet has its least number of columns in this width, CSS px. @param {number} width */
export function fits(width) {
  return width - namesOf(width) >= COLUMNS * (LEAST + GAP);
}

/**
 * @param {object} of
 * @param {number} of.layers number of layers with pictures
 * @param {readonly number[]} of.steps kept ones, ascending
 * @param {readonly number[]} of.onsets kept steps that must have a column
 * @param {number} of.width CSS px @param {number} of.height of the page, CSS px
 * @returns {SheetLayout}
 */
export function sheetLayout({ layers, steps, onsets, width, height }) {
  const names = namesOf(width);
  const wide = Math.max(LEAST + GAP, width - names);
  const whole = Math.floor(wide / Math.max(1, steps.length)) - GAP;
  const high = Math.floor(height / (layers + 1)) - GAP;
  const most = Math.min(LARGEST, Math.max(READABLE, high));
  const side = Math.max(Math.min(READABLE, wide / COLUMNS - GAP), Math.min(whole, most), LEAST);
  const columns = Math.max(1, Math.floor(wide / (side + GAP)));
  const rows = Math.max(1, Math.min(layers, Math.ceil(height / (side + GAP))));
  return { side: Math.floor(side), names, steps: thinned(steps, columns, onsets), rows };
}

/**
 * At most `count` steps, evenly spaced in the list, with the first and the last; onsets take the
 * place of the nearest other step.
 * @param {readonly number[]} steps ascending @param {number} count
 * @param {readonly number[]} onsets the most important first @returns {number[]}
 */
export function thinned(steps, count, onsets) {
  if (steps.length <= count) return [...steps];
  const last = steps.length - 1;
  const chosen = Array.from({ length: count }, (_, i) =>
    count === 1 ? last : Math.round((i * last) / (count - 1)),
  );
  const fixed = new Set();
  for (const onset of onsets.slice(0, count)) {
    const at = steps.indexOf(onset);
    if (at < 0) continue;
    let nearest = -1;
    chosen.forEach((each, i) => {
      const isNearer = nearest < 0 || Math.abs(each - at) < Math.abs(chosen[nearest] - at);
      if (!fixed.has(each) && isNearer) nearest = i;
    });
    if (!chosen.includes(at) && nearest >= 0) chosen[nearest] = at;
    fixed.add(at);
  }
  return chosen.sort((a, b) => a - b).map((i) => steps[i]);
}
