// @ts-check
/** Rows, columns and cells of the contact sheet: layers × steps as pictures. */

import { inWordsOf } from "../model/words.js";
import { outline } from "./canvas.js";
import { tileCanvas } from "./paint.js";
import { once } from "../server/cache.js";
import { FAULT_COLOURS, LEGEND, MARK, MARK_TABLE, packed, stored } from "../server/palettes.js";

/** @import {FaultName} from "../server/answers.js" */
/** @import {SheetPage as Page} from "../server/health.js" */

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

/** Width of the names. @param {number} width */
function namesOf(width) {
  return Math.min(230, Math.max(110, Math.round(width * 0.16)));
}

/** True if a sheet has its least number of columns in this width, CSS px. @param {number} width */
export function fits(width) {
  return width - namesOf(width) >= COLUMNS * (LEAST + GAP);
}

/** @param {{layers: number, steps: readonly number[], onsets: readonly number[], width: number, height: number}} of */
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

/** @typedef {ReturnType<typeof sheetLayout>} SheetLayout lengths are CSS px; `rows` are those of a page: a screenful, which is asked for at once */

/**
 * At most `count` steps, evenly spaced, with both ends; onsets take the place of the nearest other step.
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

// Paints a page of the contact sheet: maps, what stands in place of a map, and frames of states.

/** Width of a frame, CSS px, and the lengths of its dashes; each state has its own. @type {Readonly<Record<FaultName, {width: number, dash: number[]}>>} */
export const FRAMES = Object.freeze({
  nonfinite: { width: 3, dash: [] },
  large: { width: 3, dash: [12, 3] },
  dead: { width: 2, dash: [6, 4] },
  constant: { width: 2, dash: [2, 3] },
  unchanged: { width: 1, dash: [] },
});

/** Smallest cell that has a word in it, and least height of a map that is one row of pixels, CSS px. */
const [WORD_FROM, ROW_HEIGHT] = [40, 14];

/** Packed colours of the 256 palette indices; 0 where there is no picture. */
const coloursOf = once((/** @type {string} */ name) => {
  const found = MARK_TABLE.slice();
  found.set(stored(name).map(packed));
  found[MARK.PADDING] = 0;
  return found;
});

/** Which mark a map is made of; 0 for values, `MARK.PADDING` for none. @param {Page} page @param {number} i */
export function wholeMark({ pixels, height, width, starts }, i) {
  const [from, size] = [starts[i], height[i] * width[i]];
  if (!size) return MARK.PADDING;
  const mark = pixels[from];
  if (mark < MARK.PADDING) return 0;
  for (let p = from; p < from + size; p += 1) if (pixels[p] !== mark) return 0;
  return mark;
}

/**
 * @param {CanvasRenderingContext2D} context in CSS px, which begins with half a gap @param {Page} page
 * @param {number} side of a cell, CSS px @param {string} palette
 * @param {(row: number, column: number) => FaultName|null} stateOf
 * @param {{text: string, font: string, ratio: number}} look
 */
export function paintPage(context, page, side, palette, stateOf, look) {
  const { ratio } = look;
  const place = (/** @type {number} */ i) => GAP / 2 + i * (side + GAP);
  const cells = page.rows.flatMap((_, row) =>
    Array.from({ length: page.steps }, (__, column) => {
      const i = row * page.steps + column;
      return { i, row, column, x: place(column), y: place(row), mark: wholeMark(page, i) };
    }),
  );
  const colours = coloursOf(palette);
  const pixels = new Uint32Array(page.pixels.length);
  for (let at = 0; at < pixels.length; at += 1) pixels[at] = colours[page.pixels[at]];
  for (const { i, x, y, mark } of cells) if (!mark) tile(context, page, pixels, i, x, y, ratio);
  context.fillStyle = look.text;
  context.font = look.font;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const { row, column, x, y, mark } of cells) {
    const of = LEGEND.find(({ code }) => code === mark);
    if (of) hatched(context, x, y, side, FAULT_COLOURS[of.term]);
    if (of && side >= WORD_FROM)
      context.fillText(inWordsOf(of.name), x + side / 2, y + side / 2, side - 4);
    const state = stateOf(row, column);
    if (state) frame(context, x, y, side, state);
  }
}

/**
 * A map, enlarged to its cell, in the middle of it; the browser copies pixels faster than a script that has
 * just been loaded. @param {CanvasRenderingContext2D} context @param {Page} page @param {Uint32Array} pixels
 * packed @param {number} i row · steps + column @param {number} x @param {number} y CSS px @param {number} ratio
 */
function tile(context, { cell, starts, ...of }, pixels, i, x, y, ratio) {
  const [high, wide] = [of.height[i], of.width[i]];
  const scale = cell / Math.max(high, wide);
  const width = Math.max(1, Math.round(wide * scale));
  const least = Math.min(cell, Math.round(ROW_HEIGHT * ratio));
  const height = Math.max(least, Math.round(high * scale));
  const map = tileCanvas(pixels.subarray(starts[i], starts[i] + high * wide), wide);
  const [left, top] = [Math.round(x * ratio), Math.round(y * ratio)];
  const [right, down] = [width, height].map((side) => (cell - side) >> 1);
  context.drawImage(
    map,
    (left + right) / ratio,
    (top + down) / ratio,
    width / ratio,
    height / ratio,
  );
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} side @param {string} colour */
function hatched(context, x, y, side, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, side, side);
  context.clip();
  context.globalAlpha = 0.18;
  context.strokeStyle = colour;
  context.lineWidth = 5;
  context.beginPath();
  for (let at = -side; at < side; at += 12) {
    context.moveTo(x + at, y + side);
    context.lineTo(x + at + side, y);
  }
  context.stroke();
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} side @param {FaultName} state */
export function frame(context, x, y, side, state) {
  const { width, dash } = FRAMES[state];
  context.setLineDash(dash);
  outline(context, { left: x, top: y, width: side, height: side }, FAULT_COLOURS[state], width, 0);
  context.setLineDash([]);
}
