// @ts-check
/** Paints the visible tiles of a scene, for the screen and for saved files. */

import { corner, visible } from "./tile_layout.js";
import { flags, loudest } from "./scene.js";
import { rowNames } from "./row_names.js";
import { MARK_COLOURS, css } from "./palettes.js";
import { hatch, lay, tilePixels } from "./paint.js";
import { short } from "./number_text.js";

/** @typedef {import("./scene.js").MapsScene} MapsScene */
/** @typedef {import("./scene.js").Part} Part */
/** @typedef {import("./tile_layout.js").Layout} Layout */

/** Narrower cells, in CSS px, show the channel's number without its range. */
const RANGE_FROM = 96;
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

/**
 * The channel's number, then its fault or (if there is space) its range; frames around the tile.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number} cell @param {Where} where @param {Look} look
 */
function caption(context, scene, of, cell, where, look) {
  const channel = scene.order[cell];
  const { left, top } = corner(of, cell);
  const y = top - where.top;
  const wide = of.cellWidth - 8;
  const fault = loudest(flags(scene.maps, scene.question.role, channel));
  context.font = look.font;
  context.textBaseline = "top";
  context.textAlign = "left";
  context.fillStyle = channel === where.selected ? look.accent : look.text;
  const name = String(channel);
  const base = y + of.tileHeight + 3;
  context.fillText(name, left, base);
  const taken = context.measureText(name).width + 5;
  if (fault) badge(context, fault, left + taken, base, wide - taken, look);
  else rangeText(context, scene, of, channel, left + wide, base, wide - taken, look);
  if (fault) frame(context, left, y, wide, of.tileHeight, css(MARK_COLOURS[fault.mark]), 1.5);
  if (channel === where.hovered) frame(context, left, y, wide, of.tileHeight, look.muted, 1);
  if (channel === where.selected) frame(context, left, y, wide, of.tileHeight, look.accent, 2);
}

/**
 * @param {CanvasRenderingContext2D} context @param {{word: string, mark: number}} fault
 * @param {number} left @param {number} top @param {number} available CSS px @param {Look} look
 */
function badge(context, fault, left, top, available, look) {
  context.fillStyle = css(MARK_COLOURS[fault.mark]);
  context.fillRect(left, top + 1, 7, 7);
  context.fillStyle = look.text;
  if (context.measureText(fault.word).width + 10 <= available) {
    context.fillText(fault.word, left + 10, top);
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number} channel @param {number} right @param {number} top
 * @param {number} available CSS px @param {Look} look
 */
function rangeText(context, scene, of, channel, right, top, available, look) {
  if (!scene.a || of.cellWidth < RANGE_FROM) return;
  const text = `${short(scene.a.lo[channel], 2)}…${short(scene.a.hi[channel], 2)}`;
  if (context.measureText(text).width > available) return;
  context.fillStyle = look.muted;
  context.textAlign = "right";
  context.fillText(text, right, top);
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} left @param {number} top
 * @param {number} width @param {number} height @param {string} colour @param {number} thick CSS px
 */
export function frame(context, left, top, width, height, colour, thick) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  const out = thick / 2 + 0.5;
  context.strokeRect(left - out, top - out, width + 2 * out, height + 2 * out);
}
