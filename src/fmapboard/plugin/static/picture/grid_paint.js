// @ts-check
/** Paints the visible tiles of a scene, for the screen and for saved files. */

import { columnOf, isDifference } from "../model/scene.js";
import { caption, rowNames } from "./captions.js";
import { lay, markedField, stretched, tilePixels } from "./paint.js";
import { corner, visible } from "./tile_layout.js";

/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/scene.js").Part} Part */
/** @typedef {import("./tile_layout.js").Layout} Layout */

/**
 * Colours and font of the page, and the palette of the maps.
 * @typedef {object} Look
 * @property {string} palette
 * @property {string} background
 * @property {string} text
 * @property {string} muted
 * @property {string} accent
 * @property {string} font
 */

/**
 * The visible window of the grid, in CSS px.
 * @typedef {object} Where
 * @property {number} top
 * @property {number} [left]
 * @property {number} width
 * @property {number} height
 * @property {number} ratio device px per CSS px
 * @property {number|null} selected channel
 * @property {number|null} hovered channel
 * @property {readonly number[]} [chosen] channels of the film strip
 */

/**
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {MapsScene} scene @param {Layout} of @param {Where} where @param {Look} look
 */
export function paintGrid(context, scene, of, where, look) {
  const { ratio, left: scrolled = 0 } = where;
  const width = Math.round(where.width * ratio);
  const height = Math.round(where.height * ratio);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = look.background;
  context.fillRect(0, 0, width, height);
  const [first, last] = visible(of, where.top, where.top + where.height);
  const image = context.getImageData(0, 0, width, height);
  const out = new Uint32Array(image.data.buffer);
  for (let cell = first; cell < last; cell += 1) {
    scene.parts.forEach((part, p) => {
      const { left, top } = corner(of, cell, p);
      if (!isDrawn(scene, part)) return;
      const pixels = pixelsOf(scene, part, scene.order[cell], look.palette);
      lay(
        out,
        width,
        height,
        Math.round((left - scrolled) * ratio),
        Math.round((top - where.top) * ratio),
        pixels.pixels,
        pixels.width,
        of.factor,
        of.factorDown,
      );
    });
  }
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const absent = scene.parts.flatMap((part, p) => (isDrawn(scene, part) ? [] : [p]));
  for (let cell = first; cell < last; cell += 1) {
    for (const p of absent) cross(context, of, cell, p, where, look);
  }
  if (of.rows) rowNames(context, scene, of, [first, last], where, look);
  else {
    for (let cell = first; cell < last; cell += 1) caption(context, scene, of, cell, where, look);
  }
}

/** False for a tile that its column has no picture for. @param {MapsScene} scene @param {Part} part */
export function isDrawn(scene, part) {
  const { side, difference } = columnOf(scene, part);
  return Boolean(isDifference(part) ? difference : side);
}

/**
 * An empty, crossed out tile.
 * @param {CanvasRenderingContext2D} context @param {Layout} of @param {number} cell
 * @param {number} part @param {Where} where @param {Look} look
 */
function cross(context, of, cell, part, where, look) {
  const { left, top } = corner(of, cell, part);
  const [x, y] = [left - (where.left ?? 0), top - where.top];
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

/**
 * Pixels of a tile. A map of another size than the main column's is stretched to it.
 * @param {MapsScene} scene @param {Part} part @param {number} channel @param {string} palette
 */
export function pixelsOf(scene, part, channel, palette) {
  const planes = columnOf(scene, part).side?.planes ?? scene.a.planes;
  const field = isDifference(part) ? null : markedField(planes, channel);
  const pixels = field ?? tilePixels(scene, part, channel, palette);
  const { height, width } = scene.a.planes;
  return { pixels: stretched(pixels, planes, height, width), width };
}
