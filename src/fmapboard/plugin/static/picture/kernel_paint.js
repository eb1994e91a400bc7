// @ts-check
/** Paints the visible kernels of a scene, with their numbers. */

import { kernelStep } from "../model/film_scale.js";
import { channelOf, measured, partLetters } from "../model/kernel_scene.js";
import { short } from "../model/words.js";
import { pictureOf } from "../server/decode.js";
import { channelsOf, kernelsOf, placeOf } from "../server/kernels.js";
import { outline, write } from "./canvas.js";
import { kernelPixels, paintTiles } from "./paint.js";
import { corner, visible } from "./tile_layout.js";

/** @import {KernelCells, KernelPart} from "../model/kernel_scene.js" */
/** @import {Kernels} from "../server/kernels.js" */
/** @import {Look} from "./canvas.js" */
/** @import {Film} from "./film_paint.js" */
/** @import {Where} from "./grid_paint.js" */
/** @import {Layout} from "./tile_layout.js" */

/** Narrower tiles, in CSS px, have no range below them. */
const RANGE_FROM = 88;
const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Range of a cell's weights; of a difference, its peak. @param {KernelCells} grid @param {KernelPart} part @param {number} plane */
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
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {KernelCells} grid @param {Layout} of @param {Where} where `hovered` is a plane @param {Look} look
 */
export function paintKernels(context, grid, of, where, look) {
  const [first, last] = visible(of, where.top, where.top + where.height);
  const { left: scrolled = 0, selected } = where;
  const isOutputsDown = grid.down === "outputs";
  const widthIn = (/** @type {string} */ text) => context.measureText(text).width;

  function* tiles() {
    const how = { width: grid.of.width, across: of.factor, down: of.factorDown };
    for (let cell = first; cell < last; cell += 1) {
      for (const [p, part] of grid.parts.entries()) {
        const place = corner(of, cell, p);
        const left = place.left - scrolled;
        if (left > where.width || left + of.tileWidth < 0) continue;
        const pixels = kernelPixels(grid, part, grid.cells[cell]);
        yield { ...how, pixels, left, top: place.top - where.top };
      }
    }
  }

  /** Box of the cells from one to another. @param {number} cell @param {number} to */
  function boxOf(cell, to = cell) {
    const [start, stop] = [corner(of, cell), corner(of, to, of.parts - 1)];
    const width = stop.left + of.tileWidth - start.left;
    const height = stop.top + of.tileHeight - start.top;
    return { left: start.left - scrolled, top: start.top - where.top, width, height };
  }

  /** Frames around the kernels of the selected channel and around the one under the pointer. */
  function frames() {
    const isApart = grid.of.transposed && grid.of.groups > 1; // a channel is part of a column
    const chosen = [];
    for (let cell = first; cell < last; cell += 1) {
      const plane = grid.cells[cell];
      const isSelected = selected !== null && channelOf(grid.of, plane) === selected;
      if (isSelected && grid.columns && !isApart) chosen.push(cell);
      else if (isSelected || plane === where.hovered) {
        const [thick, away] = [isSelected && !grid.columns ? 2 : 1, grid.columns ? 0 : 0.5];
        outline(context, boxOf(cell), isSelected ? look.accent : look.text, thick, away);
      }
    }
    if (!chosen.length) return;
    outline(context, boxOf(chosen[0], chosen[chosen.length - 1]), look.accent, 2, 0);
  }

  /** Number of a cell's output channel (or input), and its range of weights where there is space. @param {number} cell */
  function caption(cell) {
    const plane = grid.cells[cell];
    const { output, input } = placeOf(grid.of, plane);
    const channels = channelsOf(grid.of, output, input);
    const name = isOutputsDown ? String(channels.output) : `in ${channels.input}`;
    const base = corner(of, cell).top - where.top + of.tileHeight + 3;
    const isChosen = isOutputsDown && channels.output === selected;
    context.textBaseline = "top";
    grid.parts.forEach((part, p) => {
      const { left } = corner(of, cell, p);
      const side = grid.sides.length > 1 ? partLetters(grid, part) : "";
      const text = p ? side : `${name} ${side}`.trim();
      const most = grid.parts.length > 1 ? of.tileWidth : undefined;
      write(context, text, left, base, isChosen ? look.accent : look.text, "left", most);
      const range = weightRange(grid, part, plane);
      const fits = widthIn(range) <= of.tileWidth - widthIn(text) - 5;
      if (of.tileWidth < RANGE_FROM || !fits) return;
      write(context, range, left + of.tileWidth, base, look.muted, "right");
    });
  }

  /** Numbers of the columns and rows of a matrix, which stay in place while it scrolls. */
  function headings() {
    const chosen = grid.cells.findIndex((plane) => channelOf(grid.of, plane) === selected);
    const [column, row] = [chosen % of.columns, Math.floor(chosen / of.columns)];
    const isFlat = grid.of.rowOf !== null; // one column, without a number
    context.fillStyle = look.background;
    context.fillRect(0, 0, where.width, of.top - 2);
    context.fillRect(0, 0, of.left - 2, where.height);
    context.textBaseline = "middle";
    const axis = (/** @type {number} */ cell, /** @type {boolean} */ isOutput) => {
      const { output, input } = placeOf(grid.of, grid.cells[cell]);
      return String(isOutput ? output : input);
    };
    /** As many numbers as have space. @param {number} count @param {number} size of a cell @param {number} least CSS px */
    const spaced = (count, size, least) => {
      const every = STRIDES.find((stride) => stride * size >= least) ?? 1000;
      return Array.from({ length: Math.ceil(count / every) }, (_, i) => i * every);
    };
    for (const i of spaced(isFlat ? 0 : of.columns, of.cellWidth, widthIn("000") + 6)) {
      const x = of.left + (i + 0.5) * of.cellWidth - scrolled;
      const colour = chosen >= 0 && !isOutputsDown && i === column ? look.accent : look.muted;
      const text = axis(i, !isOutputsDown);
      if (x >= of.left) write(context, text, x, of.top / 2 + 2, colour, "center");
    }
    for (const i of spaced(of.lines, of.cellHeight, 15)) {
      const y = of.top + (i + 0.5) * of.cellHeight - where.top;
      const colour = chosen >= 0 && isOutputsDown && i === row ? look.accent : look.muted;
      const text = axis(i * of.columns, isOutputsDown);
      if (y >= of.top) write(context, text, of.left - 6, y, colour, "right");
    }
    context.fillStyle = look.background;
    context.fillRect(0, 0, of.left - 2, of.top - 2);
    const text = isFlat ? "row" : isOutputsDown ? "out\\in" : "in\\out";
    write(context, text, of.left - 6, of.top / 2 + 2, look.muted, "right");
  }

  paintTiles(context, where, look.background, tiles());
  context.font = look.font;
  frames();
  if (grid.columns) headings();
  else for (let cell = first; cell < last; cell += 1) caption(cell);
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

/** @typedef {Exclude<ReturnType<typeof kernelBlock>, string>} Block tiles in rows, 0 between them */

/** The kernel of a channel at a step, or why there is none. @param {Film} film @param {number} i @param {number} channel */
export function kernelAt(film, i, channel) {
  const step = kernelStep(film.history, film.steps[i], film.steps);
  if (step === null) return "no kernel stored up to this step";
  const frame = film.kernelFrame(step);
  if (!frame) return "";
  if (!pictureOf(frame.maps, "kernels")) return "no kernel is stored";
  if (frame.maps.missing.includes("kernels")) return "TensorBoard no longer keeps this kernel";
  if (!frame.kernels) return "the picture does not fit its record";
  return kernelBlock(frame.kernels, channel, film.kernelPeak || frame.kernels.peak);
}

/** Palette of the kernels that have been loaded; "" before. @param {Film} film */
export function kernelPalette({ history, kernelFrame }) {
  const frames = (history?.kernels ?? []).map(({ step }) => kernelFrame(step));
  const known = frames.find((frame) => frame && pictureOf(frame.maps, "kernels"));
  return (known && pictureOf(known.maps, "kernels")?.palette) ?? "";
}
