// @ts-check
/** What captions and colour bars say: values, ranges and faults of channels. */

import { measured, planesIn, position } from "../model/kernel_cells.js";
import { flags, loudest } from "../model/scene.js";
import { endsText, inWordsOf, short, ticks } from "../model/words.js";
import { once } from "../server/cache.js";
import { valueAt, valueRange } from "../server/decode.js";
import { LEGEND } from "../server/palettes.js";

/** @import {AnyScene, Flags, MapsScene, Part} from "../model/model.js" */
/** @import {FaultName, Maps} from "../server/server.js" */

/**
 * False if no value of the batch was finite.
 * @param {Maps} maps @param {string} role @param {number} channel
 */
function anyFinite(maps, role, channel) {
  const { nan, positive, negative } = flags(maps, role, channel);
  const least = maps.arrays[`${role}.minimum`]?.values[channel];
  return !(nan + positive + negative > 0 && least !== undefined && !Number.isFinite(least));
}

/**
 * A value with its uncertainty and the mark that it has, in words.
 * @param {ReturnType<typeof valueAt>} of
 */
export function valueText({ value, unit, mark }) {
  const name = inWordsOf(LEGEND.find(({ code }) => code === mark)?.name ?? "");
  if (Number.isNaN(value)) return name || "no value";
  return `${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}${name ? ` (${name})` : ""}`;
}

/** A position in a tile, in words. @param {AnyScene} scene @param {number} y @param {number} x */
export function placeText(scene, y, x) {
  if (scene.kind === "kernels") return position(scene.a, y, x);
  const name = tokensOf(scene)[x];
  const place = positionText(scene.rows, scene.picture?.block ?? 1, y, x);
  return name === undefined ? place : `${place} “${name}”`;
}

/**
 * The names of the tokens of a text, one per column; none if they are not known, or if a column is
 * of several. @param {AnyScene} scene
 */
export function tokensOf(scene) {
  if (scene.kind !== "maps" || !scene.rows || scene.picture.block > 1) return [];
  return (scene.maps.header.tokens?.[scene.question.sample] ?? []).map(tokenText);
}

/** A token as a text has it: tokenizers write other signs for spaces and ends of lines. */
const tokenText = (/** @type {string} */ name) => name.replace(/[Ġ▁]/g, " ").replace(/[Ċ\n]/g, "⏎");

/**
 * A position in words.
 * @param {boolean} rows of a sequence @param {number} block @param {number} y @param {number} x
 */
export function positionText(rows, block, y, x) {
  if (!rows) return `y ${y}, x ${x}`;
  return block > 1 ? `positions ${x * block} to ${(x + 1) * block - 1}` : `position ${x}`;
}

/**
 * Ends of the colour bar; NaN if no value is finite.
 * @param {MapsScene} scene @param {number} channel
 * @param {number} i the column
 * @returns {[number, number]}
 */
export function drawnRange(scene, channel, i = 0) {
  const ranges = scene.columnRanges[i];
  const { maps, question } = scene.columns[i];
  const finite =
    ranges.hi[channel] !== 0 || (maps && question && anyFinite(maps, question.role, channel));
  return finite ? [ranges.lo[channel], ranges.hi[channel]] : [NaN, NaN];
}

/**
 * Ends of a difference's bar; NaN if none is finite.
 * @param {MapsScene} scene @param {number} channel
 * @returns {[number, number]}
 */
export function differenceRange({ columns, differenceRanges: { lo, hi } }, channel) {
  const known = columns.some(({ difference }) => difference && difference.peak[channel] >= 0);
  return known || hi[channel] > 0 ? [lo[channel], hi[channel]] : [NaN, NaN];
}

/**
 * Range of a tile.
 * @param {AnyScene} scene @param {Part} part @param {number} channel
 * @param {number} digits significant ones, at least
 */
export function rangeText(scene, part, channel, digits = 2) {
  const { side, difference, maps, question } = scene.columns[part.column];
  const planes = planesIn(scene, channel);
  if (part.isDifference) {
    if (!difference) return "";
    const least = Math.min(...planes.map((each) => difference.least[each]));
    const most = Math.max(...planes.map((each) => difference.most[each]));
    if (Number.isNaN(most)) return "no finite value";
    return endsText(least, most, digits);
  }
  if (scene.kind === "kernels") {
    const { lo, hi } = measured(side ?? scene.a, planes);
    return endsText(lo, hi, digits);
  }
  if (maps && question && !anyFinite(maps, question.role, channel)) return "no finite value";
  const ends = ["minimum", "maximum"].map((name) => maps?.arrays[`${question?.role}.${name}`]);
  if (ends.every((of) => of?.values[channel] === 0)) return "0"; // it has no scale
  if (!side) return "";
  const [lo, hi] = valueRange(side, channel);
  return endsText(lo, hi, digits);
}

/**
 * The most severe fault of a tile's channel.
 * @param {AnyScene} scene @param {Part} part @param {number} channel
 */
export function faultOf(scene, part, channel) {
  if (part.isDifference) return null;
  const { maps, question, side } = scene.columns[part.column];
  return maps && question && side ? loudest(flags(maps, question.role, channel)) : null;
}

/** The states of a channel, the most severe first. @param {Flags} of @returns {FaultName[]} */
function statesOf({ kind, large, dead, constant }) {
  const worst = kind === "unchanged" ? null : kind;
  const more = [large && "large", dead && "dead", constant && "constant"];
  const all = [worst, ...more].filter(Boolean);
  return /** @type {FaultName[]} */ ([...new Set(all)]);
}

/**
 * The states of more than half of the tiles of each column, which are said once above them. `isAll`
 * if no tile is without a fault.
 */
export const commonFaults = once((/** @type {MapsScene} */ scene) =>
  scene.columns.map(({ maps, question, side }) => {
    const isKnown = maps && question && side;
    const states = scene.order.map((channel) =>
      isKnown ? statesOf(flags(maps, question.role, channel)) : [],
    );
    const isCommon = (/** @type {FaultName} */ kind) =>
      2 * states.filter((each) => each.includes(kind)).length > states.length;
    const kinds = [...new Set(states.flat().filter(isCommon))];
    return { kinds, isAll: states.every(({ length }) => length) };
  }),
);

/**
 * Names of the marks in the pictures of a scene, as in `LEGEND`, or "large", and the channels of
 * each column that have them.
 */
export const marksIn = once((/** @type {MapsScene} */ scene) => {
  /** @type {Map<string, number[][]>} */
  const found = new Map();
  for (const [column, { maps, question, side }] of scene.columns.entries()) {
    if (!maps || !question || !side) continue;
    for (const channel of scene.order) {
      const { nan, positive, negative, large, constant, dead } = flags(
        maps,
        question.role,
        channel,
      );
      const faults = { NaN: nan, "+Inf": positive, "−Inf": negative, large, dead, constant };
      for (const [name, isSo] of Object.entries(faults)) {
        if (!isSo) continue;
        const having = found.get(name) ?? scene.columns.map(() => []);
        having[column].push(channel);
        found.set(name, having);
      }
    }
  }
  return found;
});

// Chooses the labels below a colour bar so that none touches another.

/** Least space between two labels, CSS px. */
const GAP = 8;

/**
 * Labels from left to right: both ends, with as few digits as it takes, and round values between
 * them where there is space; one label if both ends are equal, or the bar too narrow for two.
 * @param {number} lo @param {number} hi @param {number} width of the bar, CSS px
 * @param {(text: string) => number} widthOf
 */
export function barLabels(lo, hi, width, widthOf) {
  if (Number.isNaN(lo)) return [{ text: "no finite value", left: 0, end: true }];
  const fits = (/** @type {number} */ digits) =>
    widthOf(short(lo, digits)) + GAP + widthOf(short(hi, digits)) <= width;
  const digits = [3, 2].find(fits);
  if (!(hi > lo) || digits === undefined) {
    return [{ text: endsText(lo, hi), left: 0, end: true }];
  }
  const [first, last] = [short(lo, digits), short(hi, digits)];
  const labels = [{ text: first, left: 0, end: true }];
  const stop = width - widthOf(last);
  let free = widthOf(first) + GAP;
  for (const value of ticks(lo, hi, 4)) {
    const text = short(value);
    const left = ((value - lo) / (hi - lo)) * width - widthOf(text) / 2;
    if (left < free || left + widthOf(text) + GAP > stop) continue;
    labels.push({ text, left, end: false });
    free = left + widthOf(text) + GAP;
  }
  labels.push({ text: last, left: stop, end: true });
  return labels;
}
