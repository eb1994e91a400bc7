// @ts-check
/** Maps values to colours: ranges of channels, and tables from level to colour. */

import { isLarge } from "./health_states.js";
import { short, stepText } from "./words.js";
import { once } from "../server/cache.js";
import { valueRange } from "../server/decode.js";
import { badMark } from "../server/palettes.js";

/** @import {History, Ranges, Scale, SceneColumn, Side, State} from "./model.js" */

/**
 * The range of each channel over sources of [k, channels] values.
 * @param {number} channels @param {Pick<Side, "lo"|"hi">[]} sources
 * @param {{scale: Scale, zeroCentred: boolean}} how
 * @returns {Ranges}
 */
export function ranges(channels, sources, how) {
  const lo = new Float64Array(channels).fill(Infinity);
  const hi = new Float64Array(channels).fill(-Infinity);
  for (const source of sources) {
    const count = source.lo.length;
    for (let i = 0; i < count; i += 1) {
      const c = i % channels;
      if (Number.isFinite(source.lo[i])) lo[c] = Math.min(lo[c], source.lo[i]);
      if (Number.isFinite(source.hi[i])) hi[c] = Math.max(hi[c], source.hi[i]);
    }
  }
  if (how.scale === "layer") {
    lo.fill(lo.reduce((a, b) => Math.min(a, b), Infinity));
    hi.fill(hi.reduce((a, b) => Math.max(a, b), -Infinity));
  }
  for (let c = 0; c < channels; c += 1) {
    if (lo[c] > hi[c]) lo[c] = hi[c] = 0; // no finite value
    if (how.zeroCentred) {
      hi[c] = Math.max(Math.abs(lo[c]), Math.abs(hi[c]));
      lo[c] = -hi[c];
    }
  }
  return { lo, hi };
}

/**
 * Place of a value in a range, 0…1; 0.5 if it has no width.
 * @param {number} value @param {number} lo @param {number} hi
 */
export function place(value, lo, hi) {
  if (!(hi > lo)) return 0.5;
  return Math.min(1, Math.max(0, (value - lo) / (hi - lo)));
}

/**
 * Colours of the 256 stored levels of a channel between `lo` and `hi`, written into an array.
 * @param {number} lo @param {number} hi @param {number} rangeLo value of the first colour
 * @param {number} rangeHi of the last @param {Uint32Array} colours 256
 * @param {Uint32Array} into 256
 */
export function levelColours(lo, hi, rangeLo, rangeHi, colours, into) {
  const span = (Number.isFinite(hi - lo) ? hi - lo : 0) / 255;
  const start = Number.isFinite(lo) ? lo : 0;
  for (let level = 0; level < 256; level += 1) {
    into[level] = colours[Math.round(255 * place(start + span * level, rangeLo, rangeHi))];
  }
  return into;
}

/** The distance of two stored levels. @param {Side} side @param {number} channel */
export function unitOf({ planes, lo, hi }, channel) {
  return ((hi[channel] - lo[channel]) / 255) * planes.coarse;
}

/** A − B; null if their maps differ in size. @param {Side} a @param {Side} b */
export function difference(a, b) {
  const { height, width } = a.planes;
  if (height !== b.planes.height || width !== b.planes.width) return null;
  const channels = Math.min(a.planes.channels, b.planes.channels);
  const size = height * width;
  const values = new Float32Array(channels * size);
  const marks = new Uint8Array(values.length);
  const [least, most] = [NaN, NaN].map((none) => new Float64Array(channels).fill(none));
  for (let c = 0; c < channels; c += 1) {
    const unitA = (a.hi[c] - a.lo[c]) / 255;
    const unitB = (b.hi[c] - b.lo[c]) / 255;
    for (let i = c * size; i < (c + 1) * size; i += 1) {
      const mark = badMark(a.planes.marks, i) || badMark(b.planes.marks, i);
      if (mark) {
        marks[i] = mark;
        values[i] = NaN;
        continue;
      }
      const value = a.lo[c] + unitA * a.planes.levels[i] - (b.lo[c] + unitB * b.planes.levels[i]);
      values[i] = value;
      if (!(value >= least[c])) least[c] = value;
      if (!(value <= most[c])) most[c] = value;
    }
  }
  const peak = most.map((end, c) => Math.max(end, -least[c]));
  return { channels, height, width, values, marks, least, most, peak };
}

// The scale of a column, at its step or locked over all kept ones.

/**
 * The extremes of a role's maps at each kept step, [drawn].
 * @param {History|null} history @param {string} [role]
 */
export function stepRanges(history, role) {
  const [lo, hi] = ["lo", "hi"].map((end) => history?.arrays[`${role}.${end}`]);
  const width = lo?.shape[1];
  if (!lo || !hi || !width) return [];
  return Array.from({ length: lo.values.length / width }, (_, i) => ({
    lo: lo.values.subarray(i * width, (i + 1) * width),
    hi: hi.values.subarray(i * width, (i + 1) * width),
  }));
}

/**
 * The range of each channel of a column; if it is locked, over all kept steps.
 * @param {Pick<State, "scale"|"colours">} state @param {SceneColumn} column
 * @param {number} channels drawn @returns {Ranges}
 */
export function rangesIn({ scale, colours }, { side, history, question }, channels) {
  const cut = (/** @type {ArrayLike<number>} */ ends) =>
    Array.prototype.slice.call(ends, 0, channels);
  const sources = side ? [side, ...stepRanges(history, question?.role)] : [];
  const drawn = sources.map(({ lo, hi }) => ({ lo: cut(lo), hi: cut(hi) }));
  return ranges(channels, drawn, { scale, zeroCentred: colours === "signed" });
}

/**
 * Steps that a column's locked scale covers, to follow what it is of.
 * @param {SceneColumn} column @param {boolean} locked
 */
export function stepsText({ history, question }, locked) {
  if (!locked) return "";
  const { length } = stepRanges(history, question?.role);
  if (!length) return ", only this step (the others are not known)";
  return `, over ${stepText(length)} logged step${length > 1 ? "s" : ""}`;
}

/**
 * What a range is of.
 * @param {{columns: SceneColumn[]}} scene @param {Pick<State, "locked"|"sample">} state
 */
export function drawnOf({ columns }, { locked, sample }) {
  const { length } = columns.filter(({ side }) => side);
  const of = length < 2 ? `sample ${sample}` : "A's map";
  return `${of}${stepsText(columns[0], locked)}`;
}

// The scale of each column of a scene: that of A or its own.

/**
 * The range of each channel of each column.
 * @param {Pick<State, "scale"|"colours">} state @param {SceneColumn[]} columns
 * @param {number} channels drawn @param {boolean} ownScale
 * @returns {Ranges[]}
 */
export function columnRanges(state, columns, channels, ownScale) {
  return columns.map((_, i) => rangesIn(state, columns[ownScale ? i : 0], channels));
}

/**
 * What the columns' colours mean, with the values of both.
 * @param {{columns: SceneColumn[], ownScale: boolean}} of
 */
export function scaleNote({ columns, ownScale }) {
  const shown = columns.filter(({ side }) => side);
  if (shown.length < 2) return "";
  const values = shown.map(extent).join(", ");
  return `${ownScale ? "Each on its own scale" : "Both on A's scale"}: ${values}.`;
}

/** The values of a column, in words. @param {SceneColumn} column */
function extent({ letter, maps, question, side }) {
  const [lo, hi] = side ? drawnExtent(side) : [0, 0];
  if (!(lo <= hi)) return `${letter} no finite value`;
  const codes = maps?.arrays[`${question?.role}.code`]?.values;
  const large = codes?.some(isLarge) ? " (large)" : "";
  return `${letter}\u00a0${short(lo, 2)}…\u2060${short(hi, 2)}${large}`; // in one line
}

/** The least and the largest value of all maps of a column. */
const drawnExtent = once((/** @type {Side} */ side) => {
  const ranges = Array.from(side.lo, (_, channel) => valueRange(side, channel)).flat();
  const finite = ranges.filter(Number.isFinite);
  return [Math.min(...finite), Math.max(...finite)];
});
