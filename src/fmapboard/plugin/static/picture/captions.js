// @ts-check
/** Captions and frames of the tiles of a grid, each with the numbers of its own tile. */

import { columnOf, flags, isDifference, loudest, partName } from "../model/scene.js";
import { inWordsOf, short, ticks } from "../model/words.js";
import { BORDER, outline, stateFrame, write } from "./canvas.js";
import { CAPTION_LINE, NUMBERS, corner, widthOf } from "./tile_layout.js";
import { valueAt } from "../server/decode.js";
import { LEGEND } from "../server/palettes.js";

/** @import {MapsScene, Part, StateMark} from "../model/scene.js" */
/** @import {Maps} from "../server/decode.js" */
/** @import {Look} from "./canvas.js" */
/** @import {Where} from "./grid_paint.js" */
/** @import {Layout} from "./tile_layout.js" */

/** Space between a tile and its caption, for its border and that of a selected cell, CSS px. */
export const BELOW = 6;
/** Narrower tiles, in CSS px, have no range below them. */
const RANGE_FROM = 88;

/**
 * False if no value of the batch was finite, so that a picture has no range.
 * @param {Maps} maps @param {string} role @param {number} channel
 */
function anyFinite(maps, role, channel) {
  const { nan, positive, negative } = flags(maps, role, channel);
  const least = maps.arrays[`${role}.minimum`]?.values[channel];
  return !(nan + positive + negative > 0 && least !== undefined && !Number.isFinite(least));
}

/** A value with its uncertainty and the mark that it has, in words. @param {ReturnType<typeof valueAt>} of */
export function valueText({ value, unit, mark }) {
  const name = inWordsOf(LEGEND.find(({ code }) => code === mark)?.name ?? "");
  if (Number.isNaN(value)) return name || "no value";
  return `${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}${name ? ` (${name})` : ""}`;
}

/**
 * A position in a map, in words.
 * @param {boolean} rows of a sequence @param {number} block @param {number} y @param {number} x
 */
export function positionText(rows, block, y, x) {
  if (!rows) return `y ${y}, x ${x}`;
  return block > 1 ? `positions ${x * block} to ${(x + 1) * block - 1}` : `position ${x}`;
}

/**
 * Ends of the colour bar of a channel; NaN if it has no finite value in any column.
 * @param {MapsScene} scene @param {number} channel
 * @param {number} [i] the column; without it the scale is that of all columns
 * @returns {[number, number]}
 */
export function drawnRange(scene, channel, i) {
  const ranges = i === undefined ? scene.ranges : scene.columnRanges[i];
  const columns = i === undefined ? scene.columns : [scene.columns[i]];
  const finite =
    ranges.hi[channel] !== 0 ||
    columns.some(
      ({ maps, question }) => maps && question && anyFinite(maps, question.role, channel),
    );
  return finite ? [ranges.lo[channel], ranges.hi[channel]] : [NaN, NaN];
}

/**
 * Ends of the colour bar of the differences of a channel; NaN if none has a finite value.
 * @param {MapsScene} scene @param {number} channel @returns {[number, number]}
 */
export function differenceRange({ columns, differenceRanges: { lo, hi } }, channel) {
  const known = columns.some(({ difference }) => difference && difference.peak[channel] >= 0);
  return known || hi[channel] > 0 ? [lo[channel], hi[channel]] : [NaN, NaN];
}

/**
 * Range of the values in a tile, in words; of a difference, its largest magnitude.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 */
export function rangeText(scene, part, channel) {
  const { side, difference, maps, question } = columnOf(scene, part);
  if (isDifference(part)) {
    if (difference && Number.isNaN(difference.peak[channel])) return "no finite value";
    return difference ? `Δ ±${short(difference.peak[channel], 2)}` : "";
  }
  if (maps && question && !anyFinite(maps, question.role, channel)) return "no finite value";
  if (maps && question && isZero(maps, question.role, channel)) return "0";
  return side ? `${short(side.lo[channel], 2)}…${short(side.hi[channel], 2)}` : "";
}

/** True if all values are 0, which a difference has no scale for. @param {Maps} maps @param {string} role @param {number} channel */
function isZero({ arrays }, role, channel) {
  const [least, most] = [arrays[`${role}.minimum`], arrays[`${role}.maximum`]];
  return least?.values[channel] === 0 && most?.values[channel] === 0;
}

/**
 * The most severe fault of the channel on one side; null for none, and for a difference.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 */
export function faultOf(scene, part, channel) {
  if (isDifference(part)) return null;
  const { maps, question, side } = columnOf(scene, part);
  return maps && question && side ? loudest(flags(maps, question.role, channel)) : null;
}

/** Names of the marks of each scene. @type {WeakMap<MapsScene, Set<string>>} */
const marked = new WeakMap();

/** Names of the marks in the pictures of a scene, as in `LEGEND`, or "large". @param {MapsScene} scene */
export function marksIn(scene) {
  const held = marked.get(scene);
  if (held) return held;
  /** @type {Set<string>} */
  const found = new Set();
  for (const { maps, question, side } of scene.columns) {
    if (!maps || !question || !side) continue;
    for (const channel of scene.order) {
      const of = flags(maps, question.role, channel);
      if (of.nan) found.add("NaN");
      if (of.positive) found.add("+Inf");
      if (of.negative) found.add("−Inf");
      if (of.large) found.add("large");
      if (of.dead) found.add("dead");
      if (of.constant) found.add("constant");
    }
  }
  marked.set(scene, found);
  return found;
}

/**
 * The channel's number; per tile the letters of its columns if there are several, and its fault or
 * (if there is space) its range; the number that it is sorted by; frames.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number} cell @param {Where} where @param {Look} look
 */
export function caption(context, scene, of, cell, where, look) {
  const channel = scene.order[cell];
  const { left, top: down } = corner(of, cell);
  const [top, height] = [down - where.top, of.tileHeight];
  const whole = { left, top, width: widthOf(of), height };
  const base = top + height + BELOW;
  context.font = look.font;
  context.textBaseline = "top";
  const name = String(channel);
  write(context, name, left, base, channel === where.selected ? look.accent : look.text);
  const taken = context.measureText(name).width + 5;
  let out = 0;
  scene.parts.forEach((part, p) => {
    const start = corner(of, cell, p).left;
    const width = scene.parts.length === 1 ? whole.width : of.tileWidth;
    const first = p === 0 ? taken : 4;
    const used = first + letter(context, scene, part, start + first, base, start + width, look);
    const fault = faultOf(scene, part, channel);
    const free = width - used;
    if (fault) {
      badge(context, fault, start + used, base, free, look.text);
      stateFrame(context, { left: start, top, width, height }, fault);
      out = BORDER;
    } else if (width >= RANGE_FROM) {
      const text = rangeText(scene, part, channel);
      const fits = context.measureText(text).width <= free;
      if (fits) write(context, text, start + width, base, look.muted, "right");
    }
  });
  const numbers = scene.sorting.texts?.(channel) ?? [];
  const text = numbers.find((each) => context.measureText(each).width <= whole.width);
  if (text) write(context, text, left, base + CAPTION_LINE, look.text);
  if (where.chosen?.includes(channel)) {
    context.setLineDash([4, 3]);
    outline(context, whole, look.accent, 2);
    context.setLineDash([]);
  }
  if (channel === where.hovered) outline(context, whole, look.muted, 1, out + 0.5);
  if (channel === where.selected) outline(context, whole, look.accent, out ? 1.5 : 2, out + 0.5);
}

/**
 * Writes which column a tile is of, if there are several and there is space.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Part} part
 * @param {number} left @param {number} top @param {number} end CSS px @param {Look} look
 * @returns {number} its width, CSS px
 */
function letter(context, scene, part, left, top, end, look) {
  if (scene.columns.length < 2) return 0;
  const text = partName(part);
  const width = context.measureText(text).width + 5;
  if (left + width > end) return 0;
  write(context, text, left, top, look.muted);
  return width;
}

/**
 * A fault's colour and its word, as far as there is space.
 * @param {CanvasRenderingContext2D} context @param {StateMark} fault @param {number} left
 * @param {number} top @param {number} available CSS px @param {string} colour of the word
 * @param {boolean} squeezes the brief word into too little space
 */
export function badge(context, fault, left, top, available, colour, squeezes = false) {
  context.fillStyle = fault.colour;
  context.fillRect(left, top + 2, 8, 8);
  const fits = (/** @type {string} */ text) => context.measureText(text).width + 12 <= available;
  const text = [fault.word, fault.brief].find(fits) ?? (squeezes ? fault.brief : "");
  write(context, text, left + 12, top, colour, "left", squeezes ? available - 12 : undefined);
}

// Labels the rows of a sequence: channel numbers, faults, positions, and the selected row.

const LINE = 15;
const FAULT = 5;
/** Width of a channel's number, CSS px. */
const CHANNEL = 32;
/** Minimum distance between two position labels, CSS px. */
const TICK = 90;

/**
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number[]} cells first and last + 1 @param {Where} where @param {Look} look
 */
export function rowNames(context, scene, of, [first, last], where, look) {
  context.font = look.font;
  positions(context, scene, of, where, look);
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.left - 2, where.height); // hides rows that are scrolled to the left
  const size = { width: of.cellWidth, height: of.cellHeight };
  const rowOf = (/** @type {number} */ y) => ({
    left: of.left - (where.left ?? 0),
    top: y,
    ...size,
  });
  const every = Math.ceil(LINE / of.cellHeight);
  let shown = -Infinity; // y of the last number written
  for (let cell = first; cell < last; cell += 1) {
    const channel = scene.order[cell];
    const y = corner(of, cell).top - where.top;
    const fault = loudest(flags(scene.maps, scene.question.role, channel));
    if (fault) {
      context.fillStyle = fault.colour;
      context.fillRect(of.left - FAULT - 3, y, FAULT, of.cellHeight);
    }
    if (cell % every === 0 && y - shown >= LINE) {
      number(context, scene, channel, y + of.cellHeight / 2, of, look.muted);
      shown = y;
    }
    if (channel === where.hovered) outline(context, rowOf(y), look.muted, 1, 0);
  }
  const chosen = where.selected === null ? -1 : scene.order.indexOf(where.selected);
  if (chosen < first || chosen >= last) return;
  const y = corner(of, chosen).top - where.top;
  context.fillStyle = look.background;
  context.fillRect(0, y + of.cellHeight / 2 - LINE / 2 - 1, of.left - FAULT - 4, LINE + 2);
  number(context, scene, scene.order[chosen], y + of.cellHeight / 2, of, look.accent);
  outline(context, rowOf(y), look.accent, 2, 0);
}

/**
 * The channel's number, and the one that it is sorted by.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {number} channel
 * @param {number} middle CSS px @param {Layout} of @param {string} colour
 */
function number(context, scene, channel, middle, of, colour) {
  context.textBaseline = "middle";
  write(context, String(channel), of.left - FAULT - 6, middle, colour, "right");
  const numbers = scene.sorting.texts?.(channel) ?? [];
  const text = numbers.find((each) => context.measureText(each).width <= NUMBERS);
  if (text) write(context, text, of.left - FAULT - 6 - CHANNEL, middle, colour, "right");
}

/**
 * Labels positions above the rows, per part.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {Where} where @param {Look} look
 */
function positions(context, scene, of, where, look) {
  const block = scene.picture?.block ?? 1;
  const columns = scene.a?.planes.width ?? 1;
  const most = Math.max(1, Math.floor(of.tileWidth / TICK));
  context.textBaseline = "alphabetic";
  for (let part = 0; part < of.parts; part += 1) {
    const { left } = corner(of, 0, part);
    const start = left - (where.left ?? 0);
    for (const position of [
      0,
      ...ticks(0, columns * block, most).filter((at) => at > 0 && at < columns * block),
    ]) {
      const x = start + (position / block / columns) * of.tileWidth;
      context.fillStyle = look.muted;
      context.fillRect(Math.round(x), of.top - where.top - 5, 1, 4);
      write(context, short(position), x + 3, of.top - where.top - 5, look.muted);
    }
  }
}

// Chooses the labels below a colour bar so that none touches another.

/** Least space between two labels, CSS px. */
const GAP = 8;

/**
 * @typedef {object} BarLabel
 * @property {string} text
 * @property {number} left start of the text, CSS px
 * @property {boolean} end it is that of an end of the bar
 */

/**
 * Labels from left to right: both ends, with as few digits as it takes, and round values between
 * them where there is space.
 * @param {number} lo @param {number} hi @param {number} width of the bar, CSS px
 * @param {(text: string) => number} widthOf width of a text, CSS px
 * @returns {BarLabel[]} one label if both ends are equal, or the bar too narrow for two
 */
export function barLabels(lo, hi, width, widthOf) {
  if (Number.isNaN(lo)) return [{ text: "no finite value", left: 0, end: true }];
  const fits = (/** @type {number} */ digits) =>
    widthOf(short(lo, digits)) + GAP + widthOf(short(hi, digits)) <= width;
  const digits = [3, 2, 1].find(fits);
  if (!(hi > lo) || digits === undefined) {
    const text = hi > lo ? `${short(lo, 1)}…${short(hi, 1)}` : short(lo);
    return [{ text, left: 0, end: true }];
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
