// @ts-check
/** Rows and columns of the map of layers × steps: thinner the more there are, then binned. */

import { middle } from "../model/compare.js";
import * as states from "../model/health_states.js";
import { packed, rgbOf } from "../server/palettes.js";
import { cutStart } from "./canvas.js";
import { paint } from "./painter.js";

/** @import {Hatch} from "../model/model.js" */
/** @import {Binned, Box, MapLayout, MapLook, Names, Text, Tile, Where} from "./picture.js" */

/** Height of a name, CSS px. */
const LINE = 13;
const LEFT_MIN = 60;
const LEFT_MAX = 260;
const LEFT_SHARE = 0.3;
const RIGHT = 144;
/** Below this width there is no space for the words at the right, CSS px. */
const RIGHT_FROM = 620;
const TOP = 21;
/** Columns as wide as this have names of images; mean width of a character, CSS px. */
const [NAMED_FROM, CHARACTER] = [70, 7];
const ROW_MIN = 2;
const ROW_MAX = 44;
const COLUMN_MIN = 2;
const COLUMN_MAX = 240;

/**
 * A row holds one layer or, if there are too many, several; `names` is the width of the longest
 * name, CSS px, and `isSevere` keeps space for words at the right.
 * @param {{layers: number, steps: number, width: number, height: number, names: number,
 *   isSevere: boolean}} of
 */
export function mapLayout({ layers, steps, width, height, names, isSevere }) {
  const left = Math.ceil(
    Math.max(LEFT_MIN, Math.min(names + 10, LEFT_MAX, Math.max(LEFT_MIN, width * LEFT_SHARE))),
  );
  const right = isSevere && width >= RIGHT_FROM ? RIGHT : 0;
  const wide = Math.max(40, width - left - right - 2);
  const high = Math.max(40, height - TOP - 2);
  const rows = Math.min(layers, Math.floor(high / ROW_MIN));
  const columns = Math.min(steps, Math.floor(wide / COLUMN_MIN));
  const cellWidth = side(wide / Math.max(1, columns), COLUMN_MAX);
  const cellHeight = side(high / Math.max(1, rows), ROW_MAX);
  const cells = { count: rows * columns, parts: 1, columns, lines: rows, cellWidth, cellHeight };
  const tile = { tileWidth: cellWidth, tileHeight: cellHeight, factor: 1, factorDown: 1 };
  const size = { width: columns * cellWidth, height: rows * cellHeight };
  const band = { perBand: rows, bandHeight: TOP + size.height };
  return { ...cells, ...tile, ...size, ...band, left, top: TOP, rows: false, layers, steps, right };
}

/**
 * The name of an image where a column is wide enough, otherwise the number of the step.
 * @param {readonly [string, string]} label number, and name or "" @param {number} width CSS px
 */
export function columnText([number, image], width) {
  return image && width >= NAMED_FROM ? middle(image, Math.floor(width / CHARACTER) - 2) : number;
}

/**
 * A side of a cell; whole px unless that would lose much of the space.
 * @param {number} most @param {number} limit
 */
function side(most, limit) {
  if (most >= limit) return limit;
  return most >= 5 ? Math.floor(most) : most;
}

/**
 * First of the `count` members of bin `i` of `bins`.
 * @param {number} i @param {number} count @param {number} bins
 */
export function firstOf(i, count, bins) {
  return Math.floor((i * count) / bins);
}

/** Bin of a member. @param {number} member @param {number} count @param {number} bins */
export function binOf(member, count, bins) {
  return Math.ceil(((member + 1) * bins) / count) - 1;
}

/**
 * @param {MapLayout} of @param {Uint8Array} codes [steps, layers]
 * @param {Uint8Array} levels [steps, layers]
 */
export function binned({ layers, steps, lines: rows, columns }, codes, levels) {
  const found = {
    codes: new Uint8Array(rows * columns),
    levels: new Uint8Array(rows * columns).fill(states.UNKNOWN_LEVEL),
    at: new Int32Array(rows * columns).fill(-1),
  };
  const rowOf = Int32Array.from({ length: layers }, (_, l) => binOf(l, layers, rows) * columns);
  for (let s = 0; s < steps; s += 1) {
    const column = binOf(s, steps, columns);
    for (let l = 0; l < layers; l += 1) {
      const cell = rowOf[l] + column;
      const i = s * layers + l;
      if (found.at[cell] < 0 || codes[i] > found.codes[cell]) {
        found.codes[cell] = codes[i];
        found.levels[cell] = levels[i];
        found.at[cell] = i;
      } else if (codes[i] === found.codes[cell] && levels[i] !== states.UNKNOWN_LEVEL) {
        const held = found.levels[cell];
        if (held === states.UNKNOWN_LEVEL || levels[i] > held) found.levels[cell] = levels[i];
      }
    }
  }
  return found;
}

// The map of layers × steps as a tile: cells, names of rows, steps, and words for severe states.

/** Smallest cell with a gap around it, CSS px. */
const GAP_FROM = 7;

/**
 * Paints the cells into pixels of a region.
 * @param {Uint32Array} out [height, width] @param {number} width device px @param {number} height
 * @param {{rows: number, columns: number}} of @param {Binned} cells @param {MapLook} look
 * @param {number} gap between cells, device px
 */
export function fillCells(out, width, height, { rows, columns }, cells, look, gap) {
  const { table, lines } = states.coloursOf(look.theme);
  const unit = Math.max(1, Math.round(look.ratio));
  /** @param {number} i @param {number} count @param {number} whole */
  const edge = (i, count, whole) => Math.round((i * whole) / count);
  for (let row = 0; row < rows; row += 1) {
    const bottom = Math.max(edge(row, rows, height) + 1, edge(row + 1, rows, height) - gap);
    for (let y = edge(row, rows, height); y < bottom; y += 1) {
      const v = Math.floor(y / unit);
      for (let column = 0; column < columns; column += 1) {
        const cell = row * columns + column;
        const code = cells.codes[cell];
        if (!code) continue;
        const level = cells.levels[cell];
        const shade = code * states.LEVELS + (level < states.LEVELS ? level : states.LEVELS / 2);
        const colour = table[shade];
        const hatch = states.HATCHES[code];
        const from = edge(column, columns, width);
        const to = Math.max(from + 1, edge(column + 1, columns, width) - gap);
        const isGap = level === states.UNKNOWN_LEVEL && states.isShaded(code);
        const box = { left: from, top: edge(row, rows, height), right: to, bottom };
        const dots = isGap ? unknownMark(box, v, unit) : null;
        const line = y * width;
        if (!hatch && !dots) out.fill(colour, line + from, line + to);
        else {
          for (let x = from; x < to; x += 1) {
            const u = Math.floor(x / unit);
            out[line + x] = hatch?.(u, v) || dots?.(u, v) ? lines[shade] : colour;
          }
        }
      }
    }
  }
}

/** Smallest side of a cell that has a dash, CSS px. */
const DASH_FROM = 9;
const DASH = 3;

/**
 * Mark of a cell of unknown brightness: a dash in its middle, or dots if it is small; null on other
 * lines.
 * @param {{left: number, top: number, right: number, bottom: number}} box device px
 * @param {number} v line, CSS px @param {number} unit device px per CSS px
 * @returns {Hatch|null}
 */
function unknownMark({ left, top, right, bottom }, v, unit) {
  if (Math.min(right - left, bottom - top) < DASH_FROM * unit) return states.DOTS;
  if (Math.floor((top + bottom) / 2 / unit) !== v) return null;
  const centre = Math.floor((left + right) / 2 / unit);
  return (u) => Math.abs(u - centre) <= DASH;
}

/**
 * Cells as one tile of as many pixels as the screen has there.
 * @param {Box} box @param {{rows: number, columns: number}} of @param {Binned} cells
 * @param {MapLook} look @param {number} gap between cells, device px
 * @returns {Tile}
 */
function tileOf(box, of, cells, look, gap) {
  const [width, height] = [box.width, box.height].map((side) => Math.round(side * look.ratio));
  const pixels = new Uint32Array(width * height).fill(packed(rgbOf(look.background)));
  fillCells(pixels, width, height, of, cells, look, gap);
  return { box, pixels, width };
}

/**
 * A single cell, as large as its canvas.
 * @param {CanvasRenderingContext2D} context @param {number} code @param {number} level
 * @param {{width: number, height: number}} size CSS px @param {MapLook} look
 */
export function paintCell(context, code, level, size, look) {
  const cell = { codes: Uint8Array.of(code), levels: Uint8Array.of(level), at: Int32Array.of(0) };
  const box = { left: 0, top: 0, ...size };
  const tile = tileOf(box, { rows: 1, columns: 1 }, cell, look, 0);
  paint(context, { ...box, ratio: look.ratio }, look, [tile]);
}

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {MapLayout} of @param {Binned} cells @param {Names} names @param {Where} where
 * @param {MapLook} look
 */
export function paintMap(context, of, cells, names, where, look) {
  context.font = look.font;
  const { cellWidth, cellHeight } = of;
  const isWide = Math.min(cellWidth, cellHeight) >= GAP_FROM;
  const gap = isWide ? Math.max(1, Math.round(look.ratio)) : 0;
  const { left, top, width, height } = of;
  const middleOf = (/** @type {number} */ row) => top + (row + 0.5) * cellHeight;
  /** @type {Text[]} */
  const texts = [];
  /** @type {{box: Box, colour: string}[]} */
  const marks = [];

  /**
   * Names of the rows, or of one in every n with a tick, as many as fit: preferably of severe ones.
   */
  function rowNames() {
    const every = Math.ceil(LINE / cellHeight);
    // The first severe layer of each row, otherwise its first.
    const layers = Array.from({ length: of.lines }, (_, row) => {
      const [from, to] = [row, row + 1].map((each) => firstOf(each, of.layers, of.lines));
      const own = Array.from({ length: to - from }, (__, i) => from + i);
      return own.find(names.severe) ?? from;
    });
    let free = -Infinity;
    for (let start = 0; start < of.lines; start += every) {
      const rows = Array.from({ length: Math.min(every, of.lines - start) }, (_, i) => start + i);
      const fitting = rows.filter((row) => middleOf(row) >= free);
      const row = fitting.find((each) => names.severe(layers[each])) ?? fitting[0];
      if (row === undefined) continue;
      const y = middleOf(row);
      free = y + Math.min(LINE, cellHeight * every) - 0.01;
      const tick = { left: left - 5, top: Math.round(y), width: 4, height: 1 };
      if (every > 1) marks.push({ box: tick, colour: look.muted });
      const text = cutStart(context, names.layers[layers[row]], left - 10);
      const colour = names.severe(layers[row]) ? look.text : look.muted;
      texts.push({ text, x: left - 7, y, colour, align: "right", baseline: "middle" });
    }
  }

  function stepNames() {
    const { steps } = names;
    const all = Array.from({ length: of.columns }, (_, column) =>
      columnText(steps[firstOf(column, of.steps, of.columns)], cellWidth),
    );
    const last = of.columns - 1;
    all[last] = columnText(steps[steps.length - 1], cellWidth);
    const longest = Math.max(...all.map((text) => context.measureText(text).width)) + 12;
    const every = Math.max(1, Math.ceil(longest / cellWidth));
    const colour = look.muted;
    for (let column = 0; column <= last; column += 1) {
      const isNear = (last - column) * cellWidth < longest;
      if (column !== last && (column % every || isNear)) continue;
      const x = left + (column + 0.5) * cellWidth;
      const text = { text: all[column], x, y: top - 12, colour };
      texts.push({ ...text, align: "center", baseline: "middle" });
      marks.push({ box: { left: Math.round(x), top: top - 4, width: 1, height: 3 }, colour });
    }
  }

  /** Words behind the rows with a severe state, the worst first where they would overlap. */
  function severeWords() {
    const x = left + width + 3;
    /** @type {number[]} */
    const taken = [];
    const severe = [...names.worst.keys()].filter((layer) => names.severe(layer));
    severe.sort((a, b) => names.worst[b] - names.worst[a] || a - b);
    for (const layer of severe) {
      const y = middleOf(binOf(layer, of.layers, of.lines));
      if (taken.some((other) => Math.abs(other - y) < LINE - 0.5)) continue;
      taken.push(y);
      const text = { text: `◂ ${names.severe(layer)}`, x, y, colour: look.text };
      texts.push({ ...text, width: of.right - 4, baseline: "middle" });
    }
  }
  rowNames();
  stepNames();
  if (of.right) severeWords();
  const around = { left, top, width: width - 1 - gap / look.ratio, height: height - 1 };
  const lines = [{ box: around, colour: look.line, thick: 1, away: 1 }];
  const tile = tileOf(
    { left, top, width, height },
    { rows: of.lines, columns: of.columns },
    cells,
    look,
    gap,
  );
  paint(context, where, look, [{ ...tile, lines, texts, marks }]);
}
