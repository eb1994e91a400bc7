// @ts-check
/** Paints the visible kernels of a scene, with their numbers. */

import { channelOf, measured, partName } from "../model/kernel_scene.js";
import { short } from "../model/words.js";
import { outline, write } from "./canvas.js";
import { kernelPixels, paintTiles } from "./paint.js";
import { corner, visible } from "./tile_layout.js";
import { channelsOf, placeOf } from "../server/kernels.js";

/** @import {KernelCells, KernelPart} from "../model/kernel_scene.js" */
/** @import {Look} from "./canvas.js" */
/** @import {Where} from "./grid_paint.js" */
/** @import {Layout} from "./tile_layout.js" */

/** Narrower tiles, in CSS px, have no range below them. */
const RANGE_FROM = 88;
const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/**
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {KernelCells} grid @param {Layout} of @param {Where} where `hovered` is a plane
 * @param {Look} look
 */
export function paintKernels(context, grid, of, where, look) {
  const [first, last] = visible(of, where.top, where.top + where.height);
  paintTiles(context, where, look.background, tilesOf(grid, of, [first, last], where));
  context.font = look.font;
  frames(context, grid, of, [first, last], where, look);
  if (grid.columns) headings(context, grid, of, where, look);
  else for (let i = first; i < last; i += 1) caption(context, grid, of, i, where, look);
}

/**
 * @param {KernelCells} grid @param {Layout} of @param {number[]} cells first and last + 1
 * @param {Where} where
 */
function* tilesOf(grid, of, [first, last], where) {
  const how = { width: grid.of.width, across: of.factor, down: of.factorDown };
  for (let cell = first; cell < last; cell += 1) {
    for (const [p, part] of grid.parts.entries()) {
      const place = corner(of, cell, p);
      const left = place.left - (where.left ?? 0);
      if (left > where.width || left + of.tileWidth < 0) continue;
      const pixels = kernelPixels(grid, part, grid.cells[cell]);
      yield { ...how, pixels, left, top: place.top - where.top };
    }
  }
}

/**
 * Frames around the kernels of the selected channel and around the one under the pointer.
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {Layout} of
 * @param {number[]} cells first and last + 1 @param {Where} where @param {Look} look
 */
function frames(context, grid, of, [first, last], where, look) {
  const apart = grid.of.transposed && grid.of.groups > 1; // a channel is part of a column
  const chosen = [];
  for (let cell = first; cell < last; cell += 1) {
    const plane = grid.cells[cell];
    const selected = where.selected !== null && channelOf(grid.of, plane) === where.selected;
    if (selected && grid.columns && !apart) {
      chosen.push(cell);
      continue;
    }
    if (!selected && plane !== where.hovered) continue;
    const { left, top } = corner(of, cell);
    const width = corner(of, cell, of.parts - 1).left + of.tileWidth - left;
    const place = { left: left - (where.left ?? 0), top: top - where.top };
    const [thick, away] = [selected && !grid.columns ? 2 : 1, grid.columns ? 0 : 0.5];
    const box = { ...place, width, height: of.tileHeight };
    outline(context, box, selected ? look.accent : look.text, thick, away);
  }
  if (!chosen.length) return;
  const start = corner(of, chosen[0]);
  const stop = corner(of, chosen[chosen.length - 1], of.parts - 1);
  const size = {
    width: stop.left + of.tileWidth - start.left,
    height: stop.top + of.tileHeight - start.top,
  };
  const place = { left: start.left - (where.left ?? 0), top: start.top - where.top };
  outline(context, { ...place, ...size }, look.accent, 2, 0);
}

/**
 * Number of a cell's output channel (or input), and its range of weights where there is space.
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {Layout} of
 * @param {number} cell @param {Where} where @param {Look} look
 */
function caption(context, grid, of, cell, where, look) {
  const plane = grid.cells[cell];
  const { output, input } = placeOf(grid.of, plane);
  const channels = channelsOf(grid.of, output, input);
  const name = grid.down === "inputs" ? `in ${channels.input}` : String(channels.output);
  const base = corner(of, cell).top - where.top + of.tileHeight + 3;
  const chosen = grid.down === "outputs" && channels.output === where.selected;
  context.textBaseline = "top";
  grid.parts.forEach((part, p) => {
    const { left } = corner(of, cell, p);
    const side = grid.sides.length > 1 ? partName(grid, part) : "";
    const text = p ? side : `${name} ${side}`.trim();
    const most = grid.parts.length > 1 ? of.tileWidth : undefined;
    write(context, text, left, base, chosen ? look.accent : look.text, "left", most);
    const range = rangeText(grid, part, plane);
    const free = of.tileWidth - context.measureText(text).width - 5;
    if (of.tileWidth < RANGE_FROM || context.measureText(range).width > free) return;
    write(context, range, left + of.tileWidth, base, look.muted, "right");
  });
}

/**
 * Least and greatest weight of a cell; of a difference, its largest magnitude.
 * @param {KernelCells} grid @param {KernelPart} part @param {number} plane
 */
export function rangeText(grid, part, plane) {
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
 * Numbers of the columns and rows of a matrix, which stay in place while it scrolls.
 * @param {CanvasRenderingContext2D} context @param {KernelCells} grid @param {Layout} of
 * @param {Where} where @param {Look} look
 */
function headings(context, grid, of, where, look) {
  const { left: scrolled = 0 } = where;
  const outputsDown = grid.down === "outputs";
  const chosen = grid.cells.findIndex((plane) => channelOf(grid.of, plane) === where.selected);
  const [column, row] = [chosen % of.columns, Math.floor(chosen / of.columns)];
  context.fillStyle = look.background;
  context.fillRect(0, 0, where.width, of.top - 2);
  context.fillRect(0, 0, of.left - 2, where.height);
  context.textBaseline = "middle";
  const isFlat = grid.of.rowOf !== null; // one column, without a number
  const axis = (/** @type {number} */ cell, /** @type {boolean} */ outputs) => {
    const { output, input } = placeOf(grid.of, grid.cells[cell]);
    return String(outputs ? output : input);
  };
  numbers(isFlat ? 0 : of.columns, of.cellWidth, context.measureText("000").width + 6, (i) => {
    const x = of.left + (i + 0.5) * of.cellWidth - scrolled;
    if (x < of.left) return;
    const colour = chosen >= 0 && !outputsDown && i === column ? look.accent : look.muted;
    write(context, axis(i, !outputsDown), x, of.top / 2 + 2, colour, "center");
  });
  numbers(of.lines, of.cellHeight, 15, (i) => {
    const y = of.top + (i + 0.5) * of.cellHeight - where.top;
    if (y < of.top) return;
    const colour = chosen >= 0 && outputsDown && i === row ? look.accent : look.muted;
    write(context, axis(i * of.columns, outputsDown), of.left - 6, y, colour, "right");
  });
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.left - 2, of.top - 2);
  const corners = grid.of.rowOf !== null ? "row" : outputsDown ? "out\\in" : "in\\out";
  write(context, corners, of.left - 6, of.top / 2 + 2, look.muted, "right");
}

/**
 * Calls `write` for as many numbers as have space.
 * @param {number} count @param {number} size of a cell @param {number} least distance, CSS px
 * @param {(i: number) => void} write
 */
function numbers(count, size, least, write) {
  const every = STRIDES.find((stride) => stride * size >= least) ?? 1000;
  for (let i = 0; i < count; i += every) write(i);
}

/** Minimum side of a weight, device px; a picture larger than the window scrolls. */
const LEAST = 3;
const AROUND = 10;

/**
 * Paints a stored picture of kernels whose arrangement is not known.
 * @param {CanvasRenderingContext2D} context in CSS px @param {ImageBitmap} picture
 * @param {HTMLElement} sheet gets the picture's size @param {HTMLElement} scroller @param {Look} look
 */
export function paintStored(context, picture, sheet, scroller, look) {
  const { clientWidth: width, clientHeight: height } = scroller;
  const ratio = window.devicePixelRatio || 1;
  const fit = Math.min(
    (width - 2 * AROUND) / picture.width,
    (height - 2 * AROUND) / Math.max(picture.height, 1),
  );
  const factor = Math.max(LEAST, Math.floor(fit * ratio)) / ratio;
  sheet.style.height = `${picture.height * factor + 2 * AROUND}px`;
  sheet.style.width = `${picture.width * factor + 2 * AROUND}px`;
  context.fillStyle = look.background;
  context.fillRect(0, 0, width, height);
  context.drawImage(
    picture,
    AROUND - scroller.scrollLeft,
    AROUND - scroller.scrollTop,
    picture.width * factor,
    picture.height * factor,
  );
}
