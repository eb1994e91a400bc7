// @ts-check
/** What the tiles of kernels show, their numbers, and one kernel of a film strip. */

import { channelOf, measured, partLetters } from "../model/kernel_scene.js";
import { short } from "../model/words.js";
import { channelsOf, kernelsOf, placeOf } from "../server/kernels.js";
import { write } from "./canvas.js";
import { corner, visible } from "./layouts.js";
import { BELOW, LINE, RANGE_FROM, caption, paint } from "./painter.js";
import { kernelPixels } from "./pixels.js";

/** @import {KernelCells, KernelPart} from "../model/model.js" */
/** @import {Kernels} from "../server/server.js" */
/** @import {Box, Layout, Look, Tile, Where} from "./picture.js" */

const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/**
 * Range of a cell's weights; of a difference, its peak.
 * @param {KernelCells} grid @param {KernelPart} part @param {number} plane
 */
export function weightRange(grid, part, plane) {
  const { kernels: side, difference } = grid.sides[part.side];
  if (!side) return "";
  const planes = grid.colour ? [plane, plane + 1, plane + 2] : [plane];
  if (part.difference && difference) {
    return `Δ ±${short(Math.max(...planes.map((each) => difference.peak[each])), 2)}`;
  }
  const { lo, hi } = measured(side, planes);
  return `${short(lo, 2)}…${short(hi, 2)}`;
}

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {KernelCells} grid @param {Layout} of @param {Where} where `hovered` is a plane
 * @param {Look} look
 */
export function paintKernels(context, grid, of, where, look) {
  context.font = look.font;
  const { left: scrolled = 0, selected = null } = where;
  const isApart = grid.of.transposed && grid.of.groups > 1; // a channel is part of a column
  const cells = visible(of, where);
  const boxOf = (/** @type {number} */ cell, part = 0, to = part) => {
    const [start, stop] = [corner(of, cell, part), corner(of, cell, to)];
    const width = stop.left + of.tileWidth - start.left;
    const place = { left: start.left - scrolled, top: start.top - where.top };
    return { ...place, width, height: of.tileHeight };
  };
  const size = { width: grid.of.width, across: of.factor, down: of.factorDown };
  /** @type {Tile[]} */
  const tiles = cells.flatMap((cell) => {
    const plane = grid.cells[cell];
    const isSelected = selected !== null && channelOf(grid.of, plane) === selected;
    const own = grid.parts.map((part, p) => {
      const [box, pixels] = [boxOf(cell, p), kernelPixels(grid, part, plane)];
      const said = grid.columns
        ? {}
        : kernelCaption(context, grid, plane, p, box, isSelected, look);
      return { box, ...size, pixels, ...said };
    });
    const isInColumn = isSelected && grid.columns > 0 && !isApart;
    if (isInColumn || !(isSelected || plane === where.hovered)) return own;
    const colour = isSelected ? look.accent : look.text;
    const [thick, away] = [isSelected && !grid.columns ? 2 : 1, grid.columns ? 0 : 0.5];
    const line = { box: boxOf(cell, 0, of.parts - 1), colour, thick, away };
    return own.map((tile, p) => (p ? tile : { ...tile, lines: [line] }));
  });
  const chosen = cells.filter((cell) => channelOf(grid.of, grid.cells[cell]) === selected);
  if (grid.columns && !isApart && selected !== null && chosen.length) {
    const [first, last] = [boxOf(chosen[0]), boxOf(chosen[chosen.length - 1], 0, of.parts - 1)];
    const width = last.left + last.width - first.left;
    const box = { ...first, width, height: last.top + last.height - first.top };
    tiles.push({ box, lines: [{ colour: look.accent, thick: 2, away: 0 }] });
  }
  const whole = { left: 0, top: 0, width: where.width, height: where.height };
  const beside = { ...whole, width: of.left - 2 };
  const above = { ...whole, height: of.top - 2 };
  const head = { ...beside, height: above.height };
  const fixed = [
    { box: above, draw: () => axis(context, grid, of, where, look, false) },
    { box: beside, draw: () => axis(context, grid, of, where, look, true) },
    { box: head, draw: () => axisName(context, grid, of, look) },
  ];
  paint(context, where, look, tiles, grid.columns ? fixed : []);
}

/**
 * Number of the output channel (or input) of a kernel, and its range where there is space.
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {number} plane
 * @param {number} p index of the part @param {Box} box @param {boolean} isSelected
 * @param {Look} look
 */
function kernelCaption(context, grid, plane, p, box, isSelected, look) {
  const { output, input } = placeOf(grid.of, plane);
  const channels = channelsOf(grid.of, output, input);
  const isOutput = grid.down === "outputs";
  const name = isOutput ? String(channels.output) : `in ${channels.input}`;
  const letters = grid.sides.length > 1 ? partLetters(grid, grid.parts[p]) : "";
  const text = p ? letters : `${name} ${letters}`.trim();
  const colour = isOutput && isSelected ? look.accent : look.text;
  const range = box.width < RANGE_FROM ? "" : weightRange(grid, grid.parts[p], plane);
  const place = { left: box.left, top: box.top + box.height + BELOW, width: box.width };
  return caption(context, place, [{ text, colour, isNeeded: true }], null, range, look);
}

/**
 * Numbers of the columns or rows of a matrix, as many as have space.
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {Layout} of
 * @param {Where} where @param {Look} look @param {boolean} isDown of the rows
 */
function axis(context, grid, of, where, look, isDown) {
  const { selected, left: scrolled = 0 } = where;
  const isOutputs = (grid.down === "outputs") === isDown;
  const chosen = grid.cells.findIndex((plane) => channelOf(grid.of, plane) === selected);
  const own = isDown ? Math.floor(chosen / of.columns) : chosen % of.columns;
  const isFlat = grid.of.rowOf !== null; // one column, without a number
  const [count, size] = isDown
    ? [of.lines, of.cellHeight]
    : [isFlat ? 0 : of.columns, of.cellWidth];
  const least = isDown ? LINE : context.measureText("000").width + 6;
  const every = STRIDES.find((stride) => stride * size >= least) ?? 1000;
  context.textBaseline = "middle";
  for (let i = 0; i < count; i += every) {
    const { output, input } = placeOf(grid.of, grid.cells[isDown ? i * of.columns : i]);
    const text = String(isOutputs ? output : input);
    const colour = chosen >= 0 && isOutputs && i === own ? look.accent : look.muted;
    const at = (isDown ? of.top - where.top : of.left - scrolled) + (i + 0.5) * size;
    if (at < (isDown ? of.top : of.left)) continue;
    if (isDown) write(context, text, of.left - 6, at, colour, "right");
    else write(context, text, at, of.top / 2 + 2, colour, "center");
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {Layout} of
 * @param {Look} look
 */
function axisName(context, grid, of, look) {
  const isFlat = grid.of.rowOf !== null;
  const text = isFlat ? "row" : grid.down === "outputs" ? "out\\in" : "in\\out";
  context.textBaseline = "middle";
  write(context, text, of.left - 6, of.top / 2 + 2, look.muted, "right");
}

// The kernel of one channel, for a film strip.

/**
 * The kernel of a channel, drawn between -peak and peak; otherwise why it cannot be, in words.
 * @param {Kernels} of @param {number} channel output channel @param {number} peak of the scale
 */
export function kernelBlock(of, channel, peak) {
  if (of.rowOf !== null) return "the weight has no kernel per channel";
  const { planes: tiles } = kernelsOf(of, channel);
  const isApart = of.transposed && of.groups > 1;
  if (!tiles.length) {
    const each = isApart ? " of each group" : "";
    return `only the kernels of channels 0 to ${of.outputs - 1}${each} are stored`;
  }
  const colour = of.rgb && !isApart;
  const sides = [{ letter: "", question: null, kernels: of, difference: null }];
  const grid = { sides, colour, peak, differencePeak: 0 };
  const part = { side: 0, difference: false };
  const { height, width } = of;
  const shown = colour ? tiles.slice(0, 1) : tiles;
  const isLine = height === 1 && width > 1; // 1-D kernels are stacked
  const perRow = isLine ? 1 : Math.ceil(Math.sqrt(shown.length));
  const rows = Math.ceil(shown.length / perRow);
  const gap = height === 1 ? 0 : 1;
  const [wide, high] = [perRow * (width + gap) - gap, rows * (height + gap) - gap];
  const pixels = new Uint32Array(wide * high);
  shown.forEach((plane, i) => {
    const kernel = kernelPixels(grid, part, plane);
    const start = Math.floor(i / perRow) * (height + gap) * wide + (i % perRow) * (width + gap);
    for (let y = 0; y < height; y += 1) {
      pixels.set(kernel.subarray(y * width, (y + 1) * width), start + y * wide);
    }
  });
  return { pixels, width: wide, height: high };
}
