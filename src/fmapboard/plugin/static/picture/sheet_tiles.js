// @ts-check
/** What the cells of a contact sheet show: maps, what is in place of one, and frames of states. */

import { endsText } from "../model/words.js";
import { once } from "../server/cache.js";
import { MARK, MARK_TABLE, VALUES, badMark, packed, stored } from "../server/palettes.js";
import { onPage } from "./canvas.js";
import { SHEET_GAP, corner } from "./layouts.js";
import { markTile, paint, regionsOf } from "./painter.js";
import { curveTile, isCurve, tileCanvas, wholeMark } from "./pixels.js";

/** @import {FaultName, SheetPage} from "../server/server.js" */
/** @import {Box, Layout, Look, Tile} from "./picture.js" */

/** Between the outlines of two rows, with ranges below the pictures and without, CSS px. */
const [ROW_SPACE, NARROW_SPACE] = [5, 3];
/** Share of a square cell's height that a map of one row of pixels has. */
const ROW_SHARE = 0.3;

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
export function markOf({ pixels, height, width, starts }, i) {
  const size = height[i] * width[i];
  return size ? wholeMark(pixels, starts[i], size) : MARK.PADDING;
}

/** Marks of single pixels that are not finite, in maps that also have others. */
export const pixelMarksOf = once((/** @type {SheetPage} */ page) => {
  const { pixels, height, width, starts } = page;
  /** @type {Set<number>} */
  const found = new Set();
  for (const [i, from] of starts.entries()) {
    if (markOf(page, i)) continue;
    for (let at = from; at < from + height[i] * width[i]; at += 1) {
      if (badMark(pixels, at)) found.add(pixels[at]);
    }
  }
  return found;
});

/** False of a map in which no pixel is finite. @param {SheetPage} page @param {number} i */
export function hasValue({ pixels, height, width, starts }, i) {
  const all = pixels.subarray(starts[i], starts[i] + height[i] * width[i]);
  return all.some((level) => level < VALUES || level >= MARK.CONSTANT);
}

/**
 * The value of a map that has only one; NaN of others.
 * @param {SheetPage} page @param {number} i
 */
export function onlyValue(page, i) {
  const { height, width, lo, hi } = page;
  return hasValue(page, i) && (lo[i] === hi[i] || height[i] * width[i] === 1) ? lo[i] : NaN;
}

/**
 * The range of each row, without states in which values are far off, if there are others.
 * @param {SheetPage} page @param {(row: number, column: number) => FaultName|null} stateOf
 */
export function rowRanges({ rows, steps, lo, hi }, stateOf) {
  return rows.map((_, row) => {
    const all = Array.from({ length: steps }, (_, column) => column).filter((column) =>
      Number.isFinite(hi[row * steps + column] - lo[row * steps + column]),
    );
    const usual = all.filter((column) => !FAR_OFF.has(stateOf(row, column) ?? ""));
    const of = (usual.length ? usual : all).map((column) => row * steps + column);
    return { lo: Math.min(...of.map((i) => lo[i])), hi: Math.max(...of.map((i) => hi[i])) };
  });
}

/** @type {ReadonlySet<string>} */
const FAR_OFF = new Set(["nonfinite", "large"]);

/**
 * Colours of the palette indices of a map on another scale. @param {Uint32Array} colours
 * @param {number} lo @param {number} hi of the map @param {{lo: number, hi: number}} on
 */
function rescaled(colours, lo, hi, on) {
  const found = colours.slice();
  for (let level = 0; level < VALUES; level += 1) {
    const value = lo + ((hi - lo) * level) / (VALUES - 1);
    const share = (value - on.lo) / (on.hi - on.lo);
    found[level] = colours[Math.round(Math.min(1, Math.max(0, share)) * (VALUES - 1))];
  }
  return found;
}

/**
 * A map of one value; its channel need not be constant in the other images of the batch.
 * @param {Box} box @param {number} value @param {FaultName|null} state of the layer
 * @param {Pick<Look, "text">} look
 */
export function constantTile(box, value, state, look) {
  return markTile(box, state === "constant" ? MARK.CONSTANT : 0, value, look, "one value");
}

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of the page
 * @param {SheetPage} page @param {Layout} of
 * @param {(row: number, column: number) => FaultName|null} stateOf @param {Look} look
 * @param {number} ratio device px per CSS px
 * @param {boolean} isPerRow one scale per row, instead of each picture's own
 */
export function paintPage(context, page, of, stateOf, look, ratio, isPerRow) {
  const colours = coloursOf(onPage(look.palette));
  const pixels = new Uint32Array(page.pixels.length);
  const scales = isPerRow ? rowRanges(page, stateOf) : [];
  for (const [i, from] of page.starts.entries()) {
    const on = scales[Math.floor(i / page.steps)];
    const isOther = on && on.hi > on.lo && page.hi[i] > page.lo[i];
    const own = isOther ? rescaled(colours, page.lo[i], page.hi[i], on) : colours;
    const end = from + page.height[i] * page.width[i];
    for (let at = from; at < end; at += 1) pixels[at] = own[page.pixels[at]];
  }
  const hasRanges = !isPerRow && of.cellHeight - of.tileHeight > SHEET_GAP;
  const tiles = Array.from({ length: of.count }, (_, i) => {
    const box = { ...corner(of, i), width: of.tileWidth, height: of.tileHeight };
    const mark = markOf(page, i);
    const value = onlyValue(page, i);
    const state = stateOf(Math.floor(i / of.columns), i % of.columns);
    if (mark === MARK.CONSTANT) return constantTile(box, value, state, look);
    if (mark || !Number.isNaN(value)) return markTile(box, mark, value, look);
    const text = hasValue(page, i) ? endsText(page.least[i], page.most[i]) : "";
    const x = box.left + box.width / 2;
    const y = box.top + box.height + 3;
    const range = { text, x, y, width: box.width - 2, colour: look.muted };
    const texts = [{ ...range, align: /** @type {const} */ ("center") }];
    const size = { height: page.height[i], width: page.width[i] };
    const map = isCurve(size)
      ? curveOf(page, i, scales[Math.floor(i / page.steps)], box, ratio, look)
      : mapOf(page, pixels, i, box, ratio);
    return { ...map, texts: hasRanges ? texts : [] };
  });
  const space = of.cellHeight - of.tileHeight > SHEET_GAP ? ROW_SPACE : NARROW_SPACE;
  const regions = regionsOf({
    ...{ cells: tiles.map((_, i) => i), columns: of.columns, count: of.count },
    stateOf: (cell) => stateOf(Math.floor(cell / of.columns), cell % of.columns),
    boxOf(cell) {
      const { left, top } = corner(of, cell);
      const size = { width: of.cellWidth, height: of.cellHeight - space };
      return { left: left - SHEET_GAP / 2, top: top - SHEET_GAP / 2 + 1, ...size };
    },
  });
  paint(context, { top: 0, ratio, width: of.width, height: of.height }, look, tiles, { regions });
}

/**
 * A signal as a curve. @param {SheetPage} page @param {number} i row · steps + column
 * @param {{lo: number, hi: number}|undefined} scale of the row, or its own
 * @param {Box} box @param {number} ratio @param {Look} look @returns {Tile}
 */
function curveOf({ pixels, width, starts, lo, hi }, i, scale, box, ratio, look) {
  const levels = pixels.subarray(starts[i], starts[i] + width[i]);
  const valueOf = (/** @type {number} */ at) =>
    lo[i] + ((hi[i] - lo[i]) * levels[at]) / (VALUES - 1);
  const markAt = (/** @type {number} */ at) => badMark(levels, at);
  const range = /** @type {const} */ ([scale?.lo ?? lo[i], scale?.hi ?? hi[i]]);
  return curveTile(width[i], valueOf, markAt, range, box, ratio, look);
}

/**
 * A map, enlarged to its cell, in the middle of it; the browser copies pixels faster than a script
 * that has just been loaded. @param {SheetPage} page @param {Uint32Array} pixels packed
 * @param {number} i row · steps + column @param {Box} cell @param {number} ratio @returns {Tile}
 */
function mapOf({ starts, ...of }, pixels, i, cell, ratio) {
  const [high, wide] = [of.height[i], of.width[i]];
  const [x, y, most, deep] = [cell.left, cell.top, cell.width, cell.height].map((side) =>
    Math.round(side * ratio),
  );
  const scale = Math.min(most / wide, deep / high);
  const width = Math.max(1, Math.round(wide * scale));
  const isStrip = deep < most;
  const row = isStrip ? deep : Math.round(ROW_SHARE * deep);
  const height = Math.max(high > 1 ? 1 : row, Math.round(high * scale));
  const image = tileCanvas(pixels.subarray(starts[i], starts[i] + high * wide), wide);
  const box = { left: x + ((most - width) >> 1), top: y + ((deep - height) >> 1), width, height };
  for (const side of /** @type {const} */ (["left", "top", "width", "height"])) box[side] /= ratio;
  return { box, image };
}
