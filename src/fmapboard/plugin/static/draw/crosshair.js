// @ts-check
/** The point that is looked at: its cell in a map, and a cross hair over a tile. */

import { corner, visible } from "./tile_layout.js";

/** A dark line below a light one, which is visible on any colour. */
const LINES = Object.freeze(
  /** @type {[string, number][]} */ ([
    ["#000000", 3],
    ["#ffffff", 1],
  ]),
);

/** @typedef {{u: number, v: number}} Point relative place in a picture, 0…1 from the top left */

/** The point of an address, as `0.43,0.61`; null for none. @param {string} text @returns {Point|null} */
export function pointOf(text) {
  if (!text) return null;
  const [u, v] = text.split(",").map(Number);
  return { u, v };
}

/** The address of a point, rounded to a thousandth. @param {Point} point */
export function pointText({ u, v }) {
  const inside = (/** @type {number} */ x) => Number(Math.min(1, Math.max(0, x)).toFixed(4));
  return `${inside(u)},${inside(v)}`;
}

/**
 * The cell of a map that a point is in.
 * @param {Point} point @param {number} height @param {number} width of the map, px
 */
export function cellOf({ u, v }, height, width) {
  return {
    y: Math.min(height - 1, Math.max(0, Math.floor(v * height))),
    x: Math.min(width - 1, Math.max(0, Math.floor(u * width))),
  };
}

/**
 * The centre of a cell, some cells away from that of a point, within the map.
 * @param {Point} point @param {number} height @param {number} width of the map, px
 * @param {number} down @param {number} right cells @returns {Point}
 */
export function movedPoint(point, height, width, down, right) {
  const { y, x } = cellOf(point, height, width);
  const within = (/** @type {number} */ at, /** @type {number} */ size) =>
    Math.min(size - 1, Math.max(0, at));
  return {
    u: (within(x + right, width) + 0.5) / width,
    v: (within(y + down, height) + 0.5) / height,
  };
}

/**
 * Draws a cross hair over a tile, open around the point, and the outline of its cell.
 * @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number, height: number}} box of the tile, CSS px
 * @param {Point} point @param {{height: number, width: number}|null} map size in px, null for a picture
 */
export function drawCrosshair(context, box, point, map) {
  const { left, top, width, height } = box;
  const [x, y] = [left + point.u * width, top + point.v * height];
  const arm = Math.max(5, Math.min(width, height) / 6);
  const gap = 3;
  for (const [colour, thick] of LINES) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.beginPath();
    for (const [dx, dy] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ]) {
      const end = (/** @type {number} */ at, /** @type {number} */ lo, /** @type {number} */ hi) =>
        Math.min(hi, Math.max(lo, at));
      context.moveTo(end(x + dx * gap, left, left + width), end(y + dy * gap, top, top + height));
      context.lineTo(end(x + dx * arm, left, left + width), end(y + dy * arm, top, top + height));
    }
    context.stroke();
    if (!map || map.width * 3 > width) continue; // a cell of less than 3 px is hidden by its outline
    const cell = cellOf(point, map.height, map.width);
    context.strokeRect(
      left + (cell.x * width) / map.width,
      top + (cell.y * height) / map.height,
      width / map.width,
      height / map.height,
    );
  }
}

/**
 * Cross hairs over all visible tiles of a grid; over sequences, a line at the position.
 * @param {CanvasRenderingContext2D} context @param {import("./scene.js").MapsScene} scene
 * @param {import("./tile_layout.js").Layout} of @param {import("./grid_paint.js").Where} where
 * @param {string} text point of the address, "" for none
 */
export function gridCrosshairs(context, scene, of, where, text) {
  const point = pointOf(text);
  if (!point) return;
  const scrolled = where.left ?? 0;
  const [first, last] = visible(of, where.top, where.top + where.height);
  scene.parts.forEach((_, part) => {
    if (of.rows) {
      const x = corner(of, 0, part).left - scrolled + point.u * of.tileWidth;
      for (const [colour, thick] of LINES) {
        context.fillStyle = colour;
        context.fillRect(x - thick / 2, of.top - where.top, thick, of.count * of.tileHeight);
      }
      return;
    }
    for (let cell = first; cell < last; cell += 1) {
      const { left, top } = corner(of, cell, part);
      const box = { left, top: top - where.top, width: of.tileWidth, height: of.tileHeight };
      drawCrosshair(context, box, point, scene.a.planes);
    }
  });
}
