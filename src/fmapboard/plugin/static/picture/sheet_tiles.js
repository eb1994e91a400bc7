// @ts-check
/** What the cells of a contact sheet show: maps, what is in place of one, and frames of states. */

import { inWordsOf } from "../model/words.js";
import { once } from "../server/cache.js";
import { FAULT_COLOURS, LEGEND, MARK, MARK_TABLE, packed, stored } from "../server/palettes.js";
import { corner } from "./layouts.js";
import { paint } from "./painter.js";
import { tileCanvas } from "./pixels.js";

/** @import {FaultName, SheetPage} from "../server/server.js" */
/** @import {Box, Layout, Look, Tile} from "./picture.js" */

/**
 * Width of a frame, CSS px, and the lengths of its dashes; each state has its own.
 * @type {Readonly<Record<FaultName, {width: number, dash: number[]}>>}
 */
export const FRAMES = Object.freeze({
  nonfinite: { width: 3, dash: [] },
  large: { width: 3, dash: [12, 3] },
  dead: { width: 2, dash: [6, 4] },
  constant: { width: 2, dash: [2, 3] },
  unchanged: { width: 1, dash: [] },
});

/**
 * Smallest cell that has a word in it, and least height of a map that is one row of pixels, CSS px.
 */
const [WORD_FROM, ROW_HEIGHT] = [40, 14];

/** Packed colours of the 256 palette indices; 0 where there is no picture. */
const coloursOf = once((/** @type {string} */ name) => {
  const found = MARK_TABLE.slice();
  found.set(stored(name).map(packed));
  found[MARK.PADDING] = 0;
  return found;
});

/**
 * Which mark a map is made of; 0 for values, `MARK.PADDING` for none.
 * @param {SheetPage} page @param {number} i
 */
export function wholeMark({ pixels, height, width, starts }, i) {
  const [from, size] = [starts[i], height[i] * width[i]];
  if (!size) return MARK.PADDING;
  const mark = pixels[from];
  if (mark < MARK.PADDING) return 0;
  for (let p = from; p < from + size; p += 1) if (pixels[p] !== mark) return 0;
  return mark;
}

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of the page
 * @param {SheetPage} page @param {Layout} of
 * @param {(row: number, column: number) => FaultName|null} stateOf @param {Look} look
 * @param {number} ratio device px per CSS px
 */
export function paintPage(context, page, of, stateOf, look, ratio) {
  const colours = coloursOf(look.palette);
  const pixels = new Uint32Array(page.pixels.length);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = colours[page.pixels[at]];
  const tiles = Array.from({ length: of.count }, (_, i) => {
    const box = { ...corner(of, i), width: of.tileWidth, height: of.tileHeight };
    const state = stateOf(Math.floor(i / of.columns), i % of.columns);
    const lines = state ? [frameOf(state)] : [];
    const mark = wholeMark(page, i);
    if (!mark) return { ...mapOf(page, pixels, i, box, ratio), lines };
    const named = LEGEND.find(({ code }) => code === mark);
    if (!named) return { box, lines };
    const { left, top, width, height } = box;
    const place = { x: left + width / 2, y: top + height / 2 - 7, width: width - 4 };
    const text = { text: inWordsOf(named.name), ...place, colour: look.text };
    const texts = width >= WORD_FROM ? [{ ...text, align: /** @type {const} */ ("center") }] : [];
    return { box, lines, texts, hatch: FAULT_COLOURS[named.term] };
  });
  paint(context, { top: 0, ratio, width: of.width, height: of.height }, look, tiles);
}

/**
 * A map, enlarged to its cell, in the middle of it; the browser copies pixels faster than a script
 * that has just been loaded. @param {SheetPage} page @param {Uint32Array} pixels packed
 * @param {number} i row · steps + column @param {Box} cell @param {number} ratio @returns {Tile}
 */
function mapOf({ cell, starts, ...of }, pixels, i, { left, top }, ratio) {
  const [high, wide] = [of.height[i], of.width[i]];
  const scale = cell / Math.max(high, wide);
  const width = Math.max(1, Math.round(wide * scale));
  const least = Math.min(cell, Math.round(ROW_HEIGHT * ratio));
  const height = Math.max(least, Math.round(high * scale));
  const image = tileCanvas(pixels.subarray(starts[i], starts[i] + high * wide), wide);
  const [x, y] = [Math.round(left * ratio), Math.round(top * ratio)];
  const [right, down] = [width, height].map((side) => (cell - side) >> 1);
  const box = { left: x + right, top: y + down, width, height };
  for (const side of /** @type {const} */ (["left", "top", "width", "height"])) box[side] /= ratio;
  return { box, image };
}

/** The frame of a state. @param {FaultName} state */
export function frameOf(state) {
  const { width, dash } = FRAMES[state];
  return { colour: FAULT_COLOURS[state], thick: width, dash, away: 0 };
}
