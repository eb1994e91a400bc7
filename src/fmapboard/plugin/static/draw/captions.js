// @ts-check
/** Captions and frames of the tiles of a grid, each with the numbers of its own tile. */

import { short } from "./number_text.js";
import { flags, loudest } from "./scene.js";
import { corner } from "./tile_layout.js";

/** @typedef {import("./grid_paint.js").Look} Look */
/** @typedef {import("./grid_paint.js").Where} Where */
/** @typedef {import("./scene.js").MapsScene} MapsScene */
/** @typedef {import("./scene.js").Part} Part */
/** @typedef {import("./tile_layout.js").Layout} Layout */

/** Narrower tiles, in CSS px, have no range below them. */
const RANGE_FROM = 88;

/**
 * Range of the values in a tile, in words; of a difference, its largest magnitude.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 */
export function rangeText(scene, part, channel) {
  if (part === "difference") {
    return scene.difference ? `Δ ±${short(scene.difference.peak[channel], 2)}` : "";
  }
  const side = part === "b" ? scene.b : scene.a;
  return side ? `${short(side.lo[channel], 2)}…${short(side.hi[channel], 2)}` : "";
}

/**
 * The most severe fault of the channel on one side; null for none, and for a difference.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 */
export function faultOf(scene, part, channel) {
  if (part === "difference") return null;
  const [maps, question] =
    part === "b" ? [scene.otherMaps, scene.otherQuestion] : [scene.maps, scene.question];
  return maps && question ? loudest(flags(maps, question.role, channel)) : null;
}

/**
 * The channel's number; per tile its fault or (if there is space) its range; frames.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number} cell @param {Where} where @param {Look} look
 */
export function caption(context, scene, of, cell, where, look) {
  const channel = scene.order[cell];
  const { left, top } = corner(of, cell);
  const y = top - where.top;
  const wide = of.cellWidth - 8;
  const base = y + of.tileHeight + 3;
  context.font = look.font;
  context.textBaseline = "top";
  context.textAlign = "left";
  context.fillStyle = channel === where.selected ? look.accent : look.text;
  const name = String(channel);
  context.fillText(name, left, base);
  const taken = context.measureText(name).width + 5;
  scene.parts.forEach((part, p) => {
    const start = corner(of, cell, p).left;
    const used = p === 0 ? taken : 4;
    const end = scene.parts.length === 1 ? left + wide : start + of.tileWidth;
    const fault = faultOf(scene, part, channel);
    if (fault) {
      badge(context, fault, start + used, base, end - start - used, look);
      frame(context, start, y, end - start, of.tileHeight, fault.colour, 1.5);
    } else if (end - start >= RANGE_FROM) {
      range(context, rangeText(scene, part, channel), end, base, end - start - used, look);
    }
  });
  if (where.chosen?.includes(channel)) {
    context.setLineDash([4, 3]);
    frame(context, left, y, wide, of.tileHeight, look.accent, 2);
    context.setLineDash([]);
  }
  if (channel === where.hovered) frame(context, left, y, wide, of.tileHeight, look.muted, 1);
  if (channel === where.selected) frame(context, left, y, wide, of.tileHeight, look.accent, 2);
}

/**
 * @param {CanvasRenderingContext2D} context @param {NonNullable<ReturnType<typeof faultOf>>} fault
 * @param {number} left @param {number} top @param {number} available CSS px @param {Look} look
 */
function badge(context, fault, left, top, available, look) {
  context.fillStyle = fault.colour;
  context.fillRect(left, top + 1, 7, 7);
  context.textAlign = "left";
  context.fillStyle = look.text;
  const fits = (/** @type {string} */ text) => context.measureText(text).width + 10 <= available;
  const text = [fault.word, fault.brief].find(fits);
  if (text) context.fillText(text, left + 10, top);
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} text
 * @param {number} right @param {number} top @param {number} available CSS px @param {Look} look
 */
function range(context, text, right, top, available, look) {
  if (!text || context.measureText(text).width > available) return;
  context.fillStyle = look.muted;
  context.textAlign = "right";
  context.fillText(text, right, top);
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} left @param {number} top
 * @param {number} width @param {number} height @param {string} colour @param {number} thick CSS px
 */
function frame(context, left, top, width, height, colour, thick) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  const out = thick / 2 + 0.5;
  context.strokeRect(left - out, top - out, width + 2 * out, height + 2 * out);
}
