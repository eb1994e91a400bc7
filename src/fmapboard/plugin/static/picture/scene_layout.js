// @ts-check
/** Positions of the kernels of a layer: a matrix of inputs and outputs, or tiles with captions. */

import { layout } from "./tile_layout.js";

/** @import {KernelCells} from "../model/kernel_scene.js" */
/** @import {KernelsScene, MapsScene} from "../model/scene.js" */
/** @import {Layout, LayoutRequest} from "./tile_layout.js" */

/** @typedef {Pick<LayoutRequest, "tile"|"available"|"windowHeight"|"ratio">} KernelRequest */

/** Width for the numbers left of a matrix, and height for those above it. */
const GUTTER = 40;
const HEADING = 22;
const MARGIN = 10;
/** Minimum side of a weight, device px; a larger matrix scrolls. */
const LEAST = 3;
/** Maximum side of a kernel of a matrix that has no tile size, CSS px. */
const MOST = 96;
/** Height of a weight of a sequence's kernel, CSS px. */
const ROW_MIN = 6;
const ROW_MAX = 24;
/** Width of a kernel of a sequence divided by the height of its row. */
const ROW_SHARE = 4;

/** @param {KernelCells} grid @param {KernelRequest} request @returns {Layout} */
export function kernelLayout(grid, request) {
  const { of, cells, columns, parts } = grid;
  if (columns) return matrix(grid, request);
  const count = cells.length;
  return layout({
    ...request,
    parts: parts.length,
    count,
    mapHeight: of.height,
    mapWidth: of.width,
  });
}

/** @param {KernelCells} grid @param {KernelRequest} request @returns {Layout} */
function matrix(
  { of, cells, columns, parts: { length: parts } },
  { tile, available, windowHeight, ratio },
) {
  const lines = cells.length / columns;
  const gap = parts > 1 ? 8 : of.width === 1 ? 1 : 2;
  const between = (parts - 1) * 2; // as `corner` places the parts
  const across = ((available - GUTTER - MARGIN) / columns - gap - between) / (parts * of.width);
  const down = ((windowHeight - HEADING - MARGIN) / lines - gap) / of.height;
  const longer = Math.max(of.height, of.width);
  const fit = Math.min(of.rows ? across : Math.min(across, down), MOST / longer);
  const side = tile > 0 ? Math.max(1, Math.round((tile * ratio) / longer)) : 0;
  const factor = side || Math.max(LEAST, Math.floor(fit * ratio));
  const row = tile > 0 ? tile / ROW_SHARE : Math.min(ROW_MAX, Math.max(ROW_MIN, down));
  const factorDown = of.rows ? Math.max(1, Math.round(row * ratio)) : factor;
  const tileWidth = (of.width * factor) / ratio;
  const tileHeight = (of.height * factorDown) / ratio;
  const cellWidth = parts * tileWidth + between + gap;
  const cellHeight = tileHeight + gap;
  return {
    count: cells.length,
    parts,
    tileWidth,
    tileHeight,
    cellWidth,
    cellHeight,
    columns,
    lines,
    factor,
    factorDown,
    left: GUTTER,
    top: HEADING,
    height: HEADING + lines * cellHeight + MARGIN,
    width: GUTTER + columns * cellWidth + MARGIN,
    rows: false,
  };
}

// Positions of what a scene shows.

/**
 * @param {MapsScene|KernelsScene} scene
 * @param {number} tile longer side in CSS px, 0 to about fit the window
 * @param {number} available width, CSS px @param {number} windowHeight @param {number} ratio
 */
export function layoutFor(scene, tile, available, windowHeight, ratio) {
  if (scene.kind === "kernels" && scene.grid) {
    return kernelLayout(scene.grid, { tile, available, windowHeight, ratio });
  }
  const planes = scene.a?.planes;
  return layout({
    count: scene.order.length,
    parts: scene.parts.length,
    mapHeight: planes?.height ?? 1,
    mapWidth: planes?.width ?? 1,
    tile,
    available,
    windowHeight,
    ratio,
    rows: scene.rows,
    numbered: scene.kind === "maps" && Boolean(scene.sorting.texts),
  });
}
