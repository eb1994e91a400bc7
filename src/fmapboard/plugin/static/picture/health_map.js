// @ts-check
/** Rows and columns of the map of layers × steps: thinner the more there are, then binned. */

import * as states from "../model/health_states.js";
import { stepText } from "../model/words.js";
import { cutStart } from "./canvas.js";

/** @import {Hatch} from "../model/model.js" */
/** @import {Binned, MapLayout, MapLook, Names} from "./picture.js" */

const LEFT_MIN = 60;
const LEFT_MAX = 260;
const LEFT_SHARE = 0.3;
const RIGHT = 128;
/** Below this width there is no space for the words at the right, CSS px. */
const RIGHT_FROM = 620;
const TOP = 21;
const ROW_MIN = 2;
const ROW_MAX = 26;
const COLUMN_MIN = 2;
const COLUMN_MAX = 240;
/** From this height on every row has its name, CSS px. */
export const LINE = 15;

/**
 * A row holds one layer or, if there are too many, several; `names` is the width of the longest
 * name, CSS px.
 * @param {{layers: number, steps: number, width: number, height: number, names: number}} of
 */
export function mapLayout({ layers, steps, width, height, names }) {
  const left = Math.ceil(
    Math.max(LEFT_MIN, Math.min(names + 10, LEFT_MAX, Math.max(LEFT_MIN, width * LEFT_SHARE))),
  );
  const right = width >= RIGHT_FROM ? RIGHT : 0;
  const wide = Math.max(40, width - left - right - 2);
  const high = Math.max(40, height - TOP - 2);
  const rows = Math.min(layers, Math.floor(high / ROW_MIN));
  const columns = Math.min(steps, Math.floor(wide / COLUMN_MIN));
  return {
    ...{ layers, steps, rows, columns, left, top: TOP, right },
    width: columns * side(wide / Math.max(1, columns), COLUMN_MAX),
    height: rows * side(high / Math.max(1, rows), ROW_MAX),
  };
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
 * The row and column under a point; null outside.
 * @param {MapLayout} of @param {number} x @param {number} y
 */
export function cellAt(of, x, y) {
  const column = Math.floor(((x - of.left) / of.width) * of.columns);
  const row = Math.floor(((y - of.top) / of.height) * of.rows);
  const inside = column >= 0 && column < of.columns && row >= 0 && row < of.rows;
  return inside ? { row, column } : null;
}

/** Box of a cell. @param {MapLayout} of @param {number} row @param {number} column */
export function boxOf(of, row, column) {
  const [w, h] = [of.width / of.columns, of.height / of.rows];
  return { left: of.left + column * w, top: of.top + row * h, width: w, height: h };
}

/**
 * @param {MapLayout} of @param {Uint8Array} codes [steps, layers]
 * @param {Uint8Array} levels [steps, layers]
 */
export function binned({ layers, steps, rows, columns }, codes, levels) {
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

// Paints the map of layers × steps: cells, names of rows, steps, and words for severe states.

/** Smallest cell with a gap around it, CSS px. */
const GAP_FROM = 7;

/**
 * Paints the cells into pixels of a region.
 * @param {Uint32Array} out [height, width] @param {number} width device px @param {number} height
 * @param {{rows: number, columns: number}} of @param {Binned} cells @param {MapLook} look
 * @param {number} gap between cells, device px
 */
export function fillCells(out, width, height, { rows, columns }, cells, look, gap) {
  const { table, ink } = states.coloursOf(look.theme);
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
        const colour =
          table[code * states.LEVELS + (level < states.LEVELS ? level : states.LEVELS / 2)];
        const hatch = states.HATCHES[code];
        const from = edge(column, columns, width);
        const to = Math.max(from + 1, edge(column + 1, columns, width) - gap);
        const isGap = level === states.UNKNOWN_LEVEL && states.isDotted(code);
        const box = { left: from, top: edge(row, rows, height), right: to, bottom };
        const dots = isGap ? unknownMark(box, v, unit) : null;
        const line = y * width;
        if (!hatch && !dots) out.fill(colour, line + from, line + to);
        else {
          for (let x = from; x < to; x += 1) {
            const u = Math.floor(x / unit);
            out[line + x] = hatch?.(u, v) || dots?.(u, v) ? ink : colour;
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
  const middle = Math.floor((left + right) / 2 / unit);
  return (u) => Math.abs(u - middle) <= DASH;
}

/**
 * @param {CanvasRenderingContext2D} context @param {MapLayout} of @param {Binned} cells
 * @param {Names} names @param {MapLook} look
 */
export function paintMap(context, of, cells, names, look) {
  const { ratio } = look;
  const { canvas } = context;
  context.fillStyle = look.background;
  context.fillRect(0, 0, canvas.width / ratio, canvas.height / ratio);
  const [width, height] = [Math.round(of.width * ratio), Math.round(of.height * ratio)];
  const [left, top] = [Math.round(of.left * ratio), Math.round(of.top * ratio)];
  const image = context.getImageData(left, top, width, height);
  const cell = boxOf(of, 0, 0);
  const gap = Math.min(cell.width, cell.height) >= GAP_FROM ? Math.max(1, Math.round(ratio)) : 0;
  fillCells(new Uint32Array(image.data.buffer), width, height, of, cells, look, gap);
  context.putImageData(image, left, top);
  context.strokeStyle = look.line;
  context.lineWidth = 1;
  context.strokeRect(of.left - 1.5, of.top - 1.5, of.width + 2 - gap / ratio, of.height + 2);
  context.font = look.font;
  context.textBaseline = "middle";
  const middle = (/** @type {number} */ row) => of.top + (row + 0.5) * cell.height;

  /**
   * Names of the rows, or of one in every n with a tick, as many as fit: preferably of severe ones.
   */
  function rowNames() {
    const every = Math.ceil(LINE / cell.height);
    // The first severe layer of each row, otherwise its first.
    const layers = Array.from({ length: of.rows }, (_, row) => {
      const [from, to] = [row, row + 1].map((each) => firstOf(each, of.layers, of.rows));
      const own = Array.from({ length: to - from }, (__, i) => from + i);
      return own.find(names.severe) ?? from;
    });
    context.textAlign = "right";
    let free = -Infinity;
    for (let start = 0; start < of.rows; start += every) {
      const rows = Array.from({ length: Math.min(every, of.rows - start) }, (_, i) => start + i);
      const fitting = rows.filter((row) => middle(row) >= free);
      const row = fitting.find((each) => names.severe(layers[each])) ?? fitting[0];
      if (row === undefined) continue;
      const y = middle(row);
      free = y + Math.min(LINE, cell.height * every) - 0.01;
      if (every > 1) {
        context.fillStyle = look.muted;
        context.fillRect(of.left - 5, Math.round(y), 4, 1);
      }
      context.fillStyle = names.severe(layers[row]) ? look.text : look.muted;
      context.fillText(cutStart(context, names.layers[layers[row]], of.left - 10), of.left - 7, y);
    }
  }

  function stepNames() {
    const { steps } = names;
    context.fillStyle = look.muted;
    context.textAlign = "center";
    const texts = Array.from({ length: of.columns }, (_, column) =>
      stepText(steps[firstOf(column, of.steps, of.columns)]),
    );
    const last = of.columns - 1;
    texts[last] = stepText(steps[steps.length - 1]);
    const longest = Math.max(...texts.map((text) => context.measureText(text).width)) + 12;
    const every = Math.max(1, Math.ceil(longest / cell.width));
    for (let column = 0; column <= last; column += 1) {
      const isNear = (last - column) * cell.width < longest;
      if (column !== last && (column % every || isNear)) continue;
      const x = of.left + (column + 0.5) * cell.width;
      context.fillText(texts[column], x, of.top - 12);
      context.fillRect(Math.round(x), of.top - 4, 1, 3);
    }
  }

  /** Words behind the rows with a severe state, the worst first where they would overlap. */
  function severeWords() {
    context.textAlign = "left";
    context.fillStyle = look.text;
    /** @type {number[]} */
    const taken = [];
    const severe = [...names.worst.keys()].filter((layer) => names.severe(layer));
    severe.sort((a, b) => names.worst[b] - names.worst[a] || a - b);
    for (const layer of severe) {
      const y = middle(binOf(layer, of.layers, of.rows));
      if (taken.some((other) => Math.abs(other - y) < LINE - 0.5)) continue;
      taken.push(y);
      context.fillText(`◂ ${names.severe(layer)}`, of.left + of.width + 3, y, of.right - 4);
    }
  }
  rowNames();
  stepNames();
  if (of.right) severeWords();
}
