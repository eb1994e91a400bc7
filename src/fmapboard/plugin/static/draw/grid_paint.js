// @ts-check
/** Paints the visible tiles of a scene, for the screen and for saved files. */

import { corner, visible } from "./tile_layout.js";
import { caption } from "./captions.js";
import { rowNames } from "./row_names.js";
import { hatch, lay, tilePixels } from "./paint.js";

/** @typedef {import("./scene.js").MapsScene} MapsScene */
/** @typedef {import("./scene.js").Part} Part */
/** @typedef {import("./tile_layout.js").Layout} Layout */

/** Distance of the hatch lines over a constant or dead row, in map px. */
const ROW_HATCH = 6;

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
  if (of.rows) rowNames(context, scene, of, [first, last], where, look);
  else {
    for (let cell = first; cell < last; cell += 1) caption(context, scene, of, cell, where, look);
  }
}

/**
 * Pixels of a tile; a dead or constant one is hatched.
 * @param {MapsScene} scene @param {Part} part @param {number} channel @param {string} palette
 */
export function pixelsOf(scene, part, channel, palette) {
  const pixels = tilePixels(scene, part, channel, palette);
  const side = part === "b" ? scene.b : scene.a;
  const width = side ? side.planes.width : 1;
  if (part !== "difference" && side?.planes.marks && wholly(side.planes, channel)) {
    hatch(pixels, width, side.planes.height === 1 ? ROW_HATCH : Math.max(3, Math.round(width / 8)));
  }
  return { pixels, width };
}

/**
 * True if the whole tile is marked, as that of a dead or constant channel.
 * @param {import("../data/decode.js").Planes} planes @param {number} channel
 */
function wholly(planes, channel) {
  const size = planes.height * planes.width;
  const marks = /** @type {Uint8Array} */ (planes.marks);
  return marks[channel * size] >= 254;
}
