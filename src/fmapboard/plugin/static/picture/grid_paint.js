// @ts-check
/** Paints the visible tiles of a scene, for the screen and for saved files. */

import { columnOf, isDifference } from "../model/scene.js";
import { caption, rowNames } from "./captions.js";
import { paintTiles, pixelsOf } from "./paint.js";
import { corner, visible } from "./tile_layout.js";

/** @import {MapsScene, Part} from "../model/scene.js" */
/** @import {Look} from "./canvas.js" */
/** @import {Layout} from "./tile_layout.js" */

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
  const [first, last] = visible(of, where.top, where.top + where.height);
  paintTiles(
    context,
    where,
    look.background,
    tilesOf(scene, of, [first, last], where, look.palette),
  );
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
 * @param {MapsScene} scene @param {Layout} of @param {number[]} cells first and last + 1
 * @param {Where} where @param {string} palette
 */
function* tilesOf(scene, of, [first, last], where, palette) {
  const how = { across: of.factor, down: of.factorDown };
  for (let cell = first; cell < last; cell += 1) {
    for (const [p, part] of scene.parts.entries()) {
      if (!isDrawn(scene, part)) continue;
      const { left, top } = corner(of, cell, p);
      const pixels = pixelsOf(scene, part, scene.order[cell], palette);
      yield { ...pixels, ...how, left: left - (where.left ?? 0), top: top - where.top };
    }
  }
}
