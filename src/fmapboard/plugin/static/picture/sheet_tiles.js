// @ts-check
/** What the cells of a contact sheet show: maps, what is in place of one, and frames of states. */

import { inWordsOf, short } from "../model/words.js";
import { once } from "../server/cache.js";
import {
  FAULT_COLOURS,
  LEGEND,
  MARK,
  MARK_TABLE,
  VALUES,
  packed,
  stored,
} from "../server/palettes.js";
import { SHEET_GAP, corner } from "./layouts.js";
import { LINE, paint } from "./painter.js";
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

/** Smallest cell that has a word in it, CSS px. */
const WORD_FROM = 40;
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
export function wholeMark({ pixels, height, width, starts }, i) {
  const [from, size] = [starts[i], height[i] * width[i]];
  if (!size) return MARK.PADDING;
  const mark = pixels[from];
  if (mark < MARK.PADDING) return 0;
  for (let p = from; p < from + size; p += 1) if (pixels[p] !== mark) return 0;
  return mark;
}

/**
 * The value of a map that has only one; NaN of others.
 * @param {SheetPage} page @param {number} i
 */
export function onlyValue(page, i) {
  const { height, width, lo, hi } = page;
  const mark = wholeMark(page, i);
  const isValue = mark === 0 || mark >= MARK.CONSTANT;
  return isValue && (lo[i] === hi[i] || height[i] * width[i] === 1) ? lo[i] : NaN;
}

/** A range, as exact as needed to tell its ends apart. @param {number} lo @param {number} hi */
export function rangeText(lo, hi) {
  const digits = [2, 3, 4, 5].find((count) => short(lo, count) !== short(hi, count)) ?? 6;
  return `${short(lo, digits)} … ${short(hi, digits)}`;
}

/**
 * Rectangles of neighbouring cells in one state, as [row, column, rows, columns].
 * @template {string} T @param {number} rows @param {number} columns
 * @param {(row: number, column: number) => T|null} stateOf
 */
export function regions(rows, columns, stateOf) {
  /** @type {{state: T, row: number, column: number, rows: number, columns: number}[]} */
  const found = [];
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0, end = 0; column < columns; column = end) {
      const state = stateOf(row, column);
      end = column + 1;
      while (state && end < columns && stateOf(row, end) === state) end += 1;
      if (!state) continue;
      const wide = end - column;
      const above = found.find(
        (each) =>
          each.state === state &&
          each.row + each.rows === row &&
          each.column === column &&
          each.columns === wide,
      );
      if (above) above.rows += 1;
      else found.push({ state, row, column, rows: 1, columns: wide });
    }
  }
  return found;
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

/** Factor between the ranges of neighbours from which both are written. */
const JUMP = 4;

/**
 * Which cells of a row have their range below them: the first and the last one that is drawn, and
 * where the range jumps. @param {SheetPage} page @param {number} row @returns {Set<number>} columns
 */
export function withRange(page, row) {
  const { steps, lo, hi } = page;
  const size = (/** @type {number} */ column) => {
    const i = row * steps + column;
    return Math.max(Math.abs(lo[i]), Math.abs(hi[i]));
  };
  const isMap = (/** @type {number} */ i) =>
    !wholeMark(page, i) && Number.isNaN(onlyValue(page, i));
  const columns = Array.from({ length: steps }, (_, column) => column);
  const drawn = columns.filter((column) => isMap(row * steps + column) && size(column) >= 0);
  const found = new Set([...drawn.slice(0, 1), ...drawn.slice(-1)]);
  drawn.slice(1).forEach((column, i) => {
    const [before, now] = [size(drawn[i]), size(column)];
    if (Math.max(before, now) > JUMP * Math.min(before, now)) found.add(column);
  });
  return found;
}

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
 * @param {CanvasRenderingContext2D} context of a canvas of the size of the page
 * @param {SheetPage} page @param {Layout} of
 * @param {(row: number, column: number) => FaultName|null} stateOf @param {Look} look
 * @param {number} ratio device px per CSS px
 * @param {boolean} isPerRow one scale per row, instead of each picture's own
 */
export function paintPage(context, page, of, stateOf, look, ratio, isPerRow) {
  const colours = coloursOf(look.palette);
  const pixels = new Uint32Array(page.pixels.length);
  const scales = isPerRow ? rowRanges(page, stateOf) : [];
  for (const [i, from] of page.starts.entries()) {
    const on = scales[Math.floor(i / page.steps)];
    const isOther = on && on.hi > on.lo && page.hi[i] > page.lo[i];
    const own = isOther ? rescaled(colours, page.lo[i], page.hi[i], on) : colours;
    const end = from + page.height[i] * page.width[i];
    for (let at = from; at < end; at += 1) pixels[at] = own[page.pixels[at]];
  }
  const ranged = page.rows.map((_, row) => withRange(page, row));
  const framed = new Map(
    regions(page.rows.length, page.steps, stateOf).map(({ state, row, column, rows, columns }) => {
      const [first, last] = [
        [row, column],
        [row + rows - 1, column + columns - 1],
      ].map(([down, right]) => corner(of, down * of.columns + right));
      const width = last.left - first.left + of.tileWidth;
      const box = { ...first, width, height: last.top - first.top + of.tileHeight };
      return [row * of.columns + column, [{ ...frameOf(state), box }]];
    }),
  );
  const hasRanges = of.cellHeight - of.tileHeight > SHEET_GAP;
  const tiles = Array.from({ length: of.count }, (_, i) => {
    const box = { ...corner(of, i), width: of.tileWidth, height: of.tileHeight };
    const lines = framed.get(i) ?? [];
    const mark = wholeMark(page, i);
    const value = onlyValue(page, i);
    const { left, top, width, height } = box;
    const place = { x: left + width / 2, width: width - 2, align: /** @type {const} */ ("center") };
    if (!mark && Number.isNaN(value)) {
      const isRanged = hasRanges && ranged[Math.floor(i / of.columns)].has(i % of.columns);
      const range = rangeText(page.lo[i], page.hi[i]);
      const at = { ...place, y: top + height + 3, colour: look.muted };
      return {
        ...mapOf(page, pixels, i, box, ratio),
        lines,
        texts: isRanged ? [{ text: range, ...at }] : [],
      };
    }
    const named = LEGEND.find(({ code }) => code === mark);
    const words = [named ? inWordsOf(named.name) : "", Number.isNaN(value) ? "" : short(value, 3)];
    const said = width >= WORD_FROM ? words.filter(Boolean) : [];
    const middle = top + (height - LINE * said.length) / 2;
    const texts = said.map((text, line) => ({
      ...{ text, ...place, y: middle + LINE * line, colour: look.text },
    }));
    return { box, lines, texts, ...(named ? { hatch: FAULT_COLOURS[named.term] } : {}) };
  });
  paint(context, { top: 0, ratio, width: of.width, height: of.height }, look, tiles);
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

/** The frame of a state. @param {FaultName} state */
export function frameOf(state) {
  const { width, dash } = FRAMES[state];
  return { colour: FAULT_COLOURS[state], thick: width, dash, away: 0 };
}
