// @ts-check
/** Colours of one frame of a film strip. */

import { MARK_TABLE } from "./palettes.js";
import { colours, markedField } from "./paint.js";
import { levelColours } from "./value_scale.js";

/** @typedef {import("./value_scale.js").Ranges} Ranges */
/** @typedef {import("./value_scale.js").Side} Side */

const lookup = new Uint32Array(256);

/**
 * Packed colours of a channel's map, [h * w].
 * @param {Side} side @param {number} channel @param {Ranges} ranges @param {string} palette
 */
export function framePixels({ planes, lo, hi }, channel, ranges, palette) {
  const field = markedField(planes, channel);
  if (field) return field;
  const { height, width, levels, marks } = planes;
  const size = height * width;
  const from = channel * size;
  const out = new Uint32Array(size);
  levelColours(
    lo[channel],
    hi[channel],
    ranges.lo[channel],
    ranges.hi[channel],
    colours(palette),
    lookup,
  );
  for (let i = 0; i < size; i += 1) {
    const mark = marks ? marks[from + i] : 0;
    out[i] = mark ? MARK_TABLE[mark] : lookup[levels[from + i]];
  }
  return out;
}

/**
 * A row of pixels shrunk to fewer. A pixel with a mark that is not finite stays visible; of others
 * the one in the middle of each interval is taken.
 * @param {Uint32Array} row @param {number} to px @param {Uint8Array|null} marks of the row
 */
export function shrunkRow(row, to, marks) {
  const out = new Uint32Array(to);
  for (let x = 0; x < to; x += 1) {
    const start = Math.floor((x * row.length) / to);
    const end = Math.max(start + 1, Math.floor(((x + 1) * row.length) / to));
    let at = (start + end - 1) >> 1;
    for (let i = start; marks && i < end; i += 1) {
      if (marks[i] >= 251 && marks[i] <= 253) at = i;
    }
    out[x] = row[at];
  }
  return out;
}
