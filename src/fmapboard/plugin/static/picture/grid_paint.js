// @ts-check
/** Paints the visible tiles of a scene, for the screen and for saved files. */

import { columnOf, flags, isDifference, loudest, partName } from "../model/scene.js";
import { short, ticks } from "../model/words.js";
import { BORDER, outline, stateFrame, write } from "./canvas.js";
import { badge, faultOf, rangeText } from "./captions.js";
import { paintTiles, pixelsOf } from "./paint.js";
import { CAPTION_LINE, NUMBERS, corner, visible, widthOf } from "./tile_layout.js";

/** @import {MapsScene, Part} from "../model/scene.js" */
/** @import {Look} from "./canvas.js" */
/** @import {Layout} from "./tile_layout.js" */

/**
 * The visible window of the grid in CSS px, and channels: `chosen` are those of the film strip.
 * @typedef {{top: number, left?: number, width: number, height: number, ratio: number,
 *   selected: number|null, hovered: number|null, chosen?: readonly number[]}} Where
 */

/** False for a tile that its column has no picture for. @param {MapsScene} scene @param {Part} part */
export function isDrawn(scene, part) {
  const { side, difference } = columnOf(scene, part);
  return Boolean(isDifference(part) ? difference : side);
}

/** Space between a tile and its caption, for its border and that of a selected cell, CSS px. */
export const BELOW = 6;
/** Narrower tiles, in CSS px, have no range below them. */
const RANGE_FROM = 88;
/** Height of a line, and widths of a fault's mark and of a channel's number at a row, CSS px. */
const [LINE, FAULT, CHANNEL] = [15, 5, 32];
/** Minimum distance between two position labels, CSS px. */
const TICK = 90;

/**
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {MapsScene} scene @param {Layout} of @param {Where} where @param {Look} look
 */
export function paintGrid(context, scene, of, where, look) {
  const [first, last] = visible(of, where.top, where.top + where.height);
  const topOf = (/** @type {number} */ cell) => corner(of, cell).top - where.top;
  const leftOf = (/** @type {number} */ cell, part = 0) =>
    corner(of, cell, part).left - (where.left ?? 0);
  const widthIn = (/** @type {string} */ text) => context.measureText(text).width;

  function* tiles() {
    const how = { across: of.factor, down: of.factorDown };
    for (let cell = first; cell < last; cell += 1) {
      for (const [p, part] of scene.parts.entries()) {
        if (!isDrawn(scene, part)) continue;
        const pixels = pixelsOf(scene, part, scene.order[cell], look.palette);
        yield { ...pixels, ...how, left: leftOf(cell, p), top: topOf(cell) };
      }
    }
  }

  /** An empty, crossed out tile. @param {number} cell @param {number} part */
  function cross(cell, part) {
    const [x, y] = [leftOf(cell, part), topOf(cell)];
    context.strokeStyle = look.muted;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, of.tileWidth - 1, of.tileHeight - 1);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + of.tileWidth, y + of.tileHeight);
    context.moveTo(x + of.tileWidth, y);
    context.lineTo(x, y + of.tileHeight);
    context.stroke();
  }

  /** Number, letters of the columns, faults or ranges, the number that it is sorted by, frames. @param {number} cell */
  function caption(cell) {
    const channel = scene.order[cell];
    const [left, top, height] = [corner(of, cell).left, topOf(cell), of.tileHeight];
    const whole = { left, top, width: widthOf(of), height };
    const base = top + height + BELOW;
    context.textBaseline = "top";
    const [name, isSelected] = [String(channel), channel === where.selected];
    write(context, name, left, base, isSelected ? look.accent : look.text);
    let out = 0;
    scene.parts.forEach((part, p) => {
      const start = corner(of, cell, p).left;
      const width = scene.parts.length === 1 ? whole.width : of.tileWidth;
      let used = p === 0 ? widthIn(name) + 5 : 4;
      const letter = scene.columns.length > 1 ? partName(part) : "";
      if (letter && used + widthIn(letter) + 5 <= width) {
        write(context, letter, start + used, base, look.muted);
        used += widthIn(letter) + 5;
      }
      const fault = faultOf(scene, part, channel);
      if (fault) {
        badge(context, fault, start + used, base, width - used, look.text);
        stateFrame(context, { left: start, top, width, height }, fault);
        out = BORDER;
      } else if (width >= RANGE_FROM) {
        const text = rangeText(scene, part, channel);
        const fits = widthIn(text) <= width - used;
        if (fits) write(context, text, start + width, base, look.muted, "right");
      }
    });
    const numbers = scene.sorting.texts?.(channel) ?? [];
    const text = numbers.find((each) => widthIn(each) <= whole.width);
    if (text) write(context, text, left, base + CAPTION_LINE, look.text);
    if (where.chosen?.includes(channel)) {
      context.setLineDash([4, 3]);
      outline(context, whole, look.accent, 2);
      context.setLineDash([]);
    }
    if (channel === where.hovered) outline(context, whole, look.muted, 1, out + 0.5);
    if (isSelected) outline(context, whole, look.accent, out ? 1.5 : 2, out + 0.5);
  }

  // A sequence: a row of pixels per channel.

  /** The channel's number, and the one that it is sorted by. @param {number} cell @param {string} colour */
  function number(cell, colour) {
    const [channel, middle] = [scene.order[cell], topOf(cell) + of.cellHeight / 2];
    const right = of.left - FAULT - 6;
    context.textBaseline = "middle";
    write(context, String(channel), right, middle, colour, "right");
    const numbers = scene.sorting.texts?.(channel) ?? [];
    const text = numbers.find((each) => widthIn(each) <= NUMBERS);
    if (text) write(context, text, right - CHANNEL, middle, colour, "right");
  }

  /** Labels positions above the rows, per part. */
  function positions() {
    const { block } = scene.picture;
    const all = scene.a.planes.width * block;
    const most = Math.max(1, Math.floor(of.tileWidth / TICK));
    const places = [0, ...ticks(0, all, most).filter((at) => at > 0 && at < all)];
    context.textBaseline = "alphabetic";
    for (let part = 0; part < of.parts; part += 1) {
      for (const position of places) {
        const x = leftOf(0, part) + (position / all) * of.tileWidth;
        context.fillStyle = look.muted;
        context.fillRect(Math.round(x), of.top - where.top - 5, 1, 4);
        write(context, short(position), x + 3, of.top - where.top - 5, look.muted);
      }
    }
  }

  function rows() {
    positions();
    context.fillStyle = look.background;
    context.fillRect(0, 0, of.left - 2, where.height); // hides rows that are scrolled to the left
    const boxOf = (/** @type {number} */ cell) => {
      const size = { width: of.cellWidth, height: of.cellHeight };
      return { left: leftOf(0), top: topOf(cell), ...size };
    };
    const every = Math.ceil(LINE / of.cellHeight);
    let shown = -Infinity; // y of the last number written
    for (let cell = first; cell < last; cell += 1) {
      const [channel, y] = [scene.order[cell], topOf(cell)];
      const fault = loudest(flags(scene.maps, scene.question.role, channel));
      context.fillStyle = fault?.colour ?? "";
      if (fault) context.fillRect(of.left - FAULT - 3, y, FAULT, of.cellHeight);
      if (cell % every === 0 && y - shown >= LINE) {
        number(cell, look.muted);
        shown = y;
      }
      if (channel === where.hovered) outline(context, boxOf(cell), look.muted, 1, 0);
    }
    const chosen = where.selected === null ? -1 : scene.order.indexOf(where.selected);
    if (chosen < first || chosen >= last) return;
    const y = topOf(chosen) + of.cellHeight / 2 - LINE / 2 - 1;
    context.fillStyle = look.background;
    context.fillRect(0, y, of.left - FAULT - 4, LINE + 2);
    number(chosen, look.accent);
    outline(context, boxOf(chosen), look.accent, 2, 0);
  }

  paintTiles(context, where, look.background, tiles());
  context.font = look.font;
  const absent = scene.parts.flatMap((part, p) => (isDrawn(scene, part) ? [] : [p]));
  for (let cell = first; cell < last; cell += 1) {
    for (const p of absent) cross(cell, p);
    if (!of.rows) caption(cell);
  }
  if (of.rows) rows();
}
