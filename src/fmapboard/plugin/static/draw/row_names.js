// @ts-check
/** Labels the rows of a sequence: channel numbers, faults, positions, and the selected row. */

import { short, ticks } from "./number_text.js";
import { flags, loudest } from "./scene.js";
import { NUMBERS, corner } from "./tile_layout.js";

/** @typedef {import("./grid_paint.js").Look} Look */
/** @typedef {import("./grid_paint.js").Where} Where */
/** @typedef {import("./scene.js").MapsScene} MapsScene */
/** @typedef {import("./tile_layout.js").Layout} Layout */

const LINE = 12;
const FAULT = 5;
/** Width of a channel's number, CSS px. */
const CHANNEL = 28;
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
    if (channel === where.hovered) outline(context, of, y, where, look.muted, 1);
  }
  const chosen = where.selected === null ? -1 : scene.order.indexOf(where.selected);
  if (chosen < first || chosen >= last) return;
  const y = corner(of, chosen).top - where.top;
  context.fillStyle = look.background;
  context.fillRect(0, y + of.cellHeight / 2 - LINE / 2 - 1, of.left - FAULT - 4, LINE + 2);
  number(context, scene, scene.order[chosen], y + of.cellHeight / 2, of, look.accent);
  outline(context, of, y, where, look.accent, 2);
}

/**
 * The channel's number, and the one that it is sorted by.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {number} channel
 * @param {number} middle CSS px @param {Layout} of @param {string} colour
 */
function number(context, scene, channel, middle, of, colour) {
  context.fillStyle = colour;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillText(String(channel), of.left - FAULT - 6, middle);
  const numbers = scene.sorting.texts?.(channel) ?? [];
  const text = numbers.find((each) => context.measureText(each).width <= NUMBERS);
  if (text) context.fillText(text, of.left - FAULT - 6 - CHANNEL, middle);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Layout} of @param {number} y CSS px
 * @param {Where} where @param {string} colour @param {number} thick CSS px
 */
function outline(context, of, y, where, colour, thick) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  const out = thick / 2;
  context.strokeRect(
    of.left - (where.left ?? 0) - out,
    y - out,
    of.cellWidth + 2 * out,
    of.cellHeight + 2 * out,
  );
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
  context.textAlign = "left";
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
      context.fillText(short(position), x + 3, of.top - where.top - 5);
    }
  }
}
