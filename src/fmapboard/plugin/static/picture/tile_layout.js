// @ts-check
/** Positions of tiles and rows: nearly always, a map pixel is a whole number of device pixels. */

/** @import {KernelCells} from "../model/kernel_scene.js" */
/** @import {KernelsScene, MapsScene} from "../model/scene.js" */

export const GAP = 8;
export const CAPTION = 18;
/** Height of each further line of a caption. */
export const CAPTION_LINE = 15;
/** Between tiles of one cell: the state borders of two neighbours fit. */
const BETWEEN = 6;
const MARGIN = 10;
const FIT_MIN = 48;
const FIT_MAX = 256;
/** Tiles as large as this are all in view rather than larger, CSS px. */
const READABLE = 112;

/**
 * Cells with `parts` tiles side by side, of maps of that many px; `tile` is the longer side of a tile in
 * CSS px, 0 to about fit the window, `ratio` device px per CSS px. `rows`: sequences, each cell is one row of
 * pixels; `numbered`: a number stands at each cell, below its caption or left of its row.
 * @typedef {{count: number, parts: number, mapHeight: number, mapWidth: number, tile: number,
 *   available: number, windowHeight: number, ratio: number, rows?: boolean,
 *   numbered?: boolean}} LayoutRequest
 */

/** Tile size divided by row height: a tile size of 64 px gives rows of 8 px. */
export const ROW_SHARE = 8;
/** Width for the channel numbers left of rows. */
const GUTTER = 48;
/** Additional width for the numbers of sorted rows. */
export const NUMBERS = 60;
/** Height for the positions above rows. */
const HEADING = 20;
const ROW_MIN = 3;
const ROW_MAX = 24;

/** Space between cells of a line: wide enough that tiles of one cell belong together. @param {number} parts */
export function gapOf(parts) {
  return parts > 1 ? 2 * GAP : GAP;
}

/** Width of the tiles of one cell, CSS px. @param {{parts: number, tileWidth: number}} of */
export function widthOf({ parts, tileWidth }) {
  return Math.max(parts * tileWidth + (parts - 1) * BETWEEN, 24);
}

/** @param {LayoutRequest} request @returns {Layout} */
export function layout(request) {
  if (request.rows) return rowsLayout(request);
  const longer = Math.max(request.mapHeight, request.mapWidth, 1);
  const factorOf = (/** @type {number} */ side) =>
    Math.max(1, Math.round((side * request.ratio) / longer));
  if (request.tile > 0) return laidOut(request, factorOf(request.tile));
  const least = factorOf(FIT_MIN);
  const most = Math.max(least, Math.floor((FIT_MAX * request.ratio) / longer));
  const sizes = Array.from({ length: most - least + 1 }, (_, i) => laidOut(request, most - i))
    .filter((of) => of.factor === least || widthOf(of) <= request.available - 2 * MARGIN)
    .map((of) => filled(request, of));
  // Of all sizes, the one whose tiles fill the window best; twice its height is as bad as half.
  const misfit = (/** @type {Layout} */ of) => Math.abs(Math.log(of.height / request.windowHeight));
  const isInView = (/** @type {Layout} */ of) =>
    of.height <= request.windowHeight && of.tileWidth >= READABLE;
  return (
    sizes.find((of) => isInView(of) && (of.columns > 1 || of.lines === 1)) ??
    sizes.reduce((best, each) => (misfit(each) < misfit(best) ? each : best))
  );
}

/**
 * With tiles that fill the width in as many columns. Their factor is not whole where whole ones leave
 * wide gaps: then some pixels are a device pixel larger than others, and none is hidden.
 * @param {LayoutRequest} request @param {Layout} of with a whole factor
 */
function filled(request, of) {
  const [{ available, ratio, mapWidth }, { columns, parts, factor }] = [request, of];
  if (factor < 2 || columns < 2 || of.lines < 2) return of;
  const cell = (available - 2 * MARGIN + gapOf(parts)) / columns - gapOf(parts);
  const wide = (cell - (parts - 1) * BETWEEN) / parts;
  const fitting = Math.floor(wide * ratio) / mapWidth;
  const isNarrow =
    cell - widthOf({ parts, tileWidth: (mapWidth * Math.floor(fitting)) / ratio }) <= GAP;
  return laidOut(request, Math.max(factor, isNarrow ? Math.floor(fitting) : fitting));
}

/** @typedef {ReturnType<typeof laidOut>} Layout lengths are CSS px; `factor` and `factorDown` are device px per map px */

/** @param {LayoutRequest} request @param {number} factor */
function laidOut({ count, parts, mapHeight, mapWidth, available, ratio, numbered }, factor) {
  const tileWidth = (mapWidth * factor) / ratio;
  const tileHeight = (mapHeight * factor) / ratio;
  const cellWidth = widthOf({ parts, tileWidth }) + gapOf(parts);
  const cellHeight = tileHeight + CAPTION + (numbered ? CAPTION_LINE : 0) + GAP;
  const columns = Math.max(1, Math.floor((available - 2 * MARGIN + gapOf(parts)) / cellWidth));
  const rows = Math.ceil(count / columns);
  const height = 2 * MARGIN + rows * cellHeight; // the width always fits
  // With more than one line, what is left of the width is put between the cells.
  const free = rows > 1 ? available - 2 * MARGIN + gapOf(parts) - columns * cellWidth : 0;
  const pitch = cellWidth + Math.max(0, Math.floor(free / Math.max(1, columns - 1)));
  const tile = { tileWidth, tileHeight, factor, factorDown: factor };
  const cells = { count, parts, columns, lines: rows, cellWidth: pitch, cellHeight };
  return { ...tile, ...cells, left: MARGIN, top: MARGIN, width: 0, height, rows: false };
}

/** A row of pixels per channel, as wide as the window or wider. @param {LayoutRequest} request @returns {Layout} */
function rowsLayout(request) {
  const { count, parts, mapWidth, tile, available, windowHeight, ratio } = request;
  const gutter = GUTTER + (request.numbered ? NUMBERS : 0);
  const span = ((available - gutter - MARGIN - (parts - 1) * BETWEEN) * ratio) / parts;
  const fit = Math.max(1, Math.floor(span / Math.max(mapWidth, 1)));
  const factor = fit * Math.max(1, Math.round(tile / 64));
  const each = (windowHeight - HEADING - MARGIN) / Math.max(count, 1);
  const auto = Math.min(ROW_MAX, Math.max(ROW_MIN, each));
  const factorDown = Math.max(1, Math.floor((tile > 0 ? tile / ROW_SHARE : auto) * ratio));
  const tileWidth = (mapWidth * factor) / ratio;
  const tileHeight = factorDown / ratio;
  const cellWidth = parts * tileWidth + (parts - 1) * BETWEEN;
  const height = HEADING + count * tileHeight + MARGIN;
  const cells = { count, parts, columns: 1, lines: count, cellWidth, cellHeight: tileHeight };
  const place = { left: gutter, top: HEADING, width: gutter + cellWidth + MARGIN, height };
  return { tileWidth, tileHeight, factor, factorDown, ...cells, ...place, rows: true };
}

/** Top left corner of a tile. @param {Layout} of @param {number} cell @param {number} part */
export function corner(of, cell, part = 0) {
  return {
    left: of.left + (cell % of.columns) * of.cellWidth + part * (of.tileWidth + BETWEEN),
    top: of.top + Math.floor(cell / of.columns) * of.cellHeight,
  };
}

/** Visible cells, [first, last + 1]. @param {Layout} of @param {number} top @param {number} bottom */
export function visible(of, top, bottom) {
  const first = Math.max(0, Math.floor((top - of.top) / of.cellHeight));
  const last = Math.min(of.lines - 1, Math.floor((bottom - of.top) / of.cellHeight));
  return [Math.min(first * of.columns, of.count), Math.min((last + 1) * of.columns, of.count)];
}

/**
 * The cell and part at a point, and its place in the tile: null on the caption and between tiles.
 * @param {Layout} of @param {number} x @param {number} y CSS px
 * @returns {{cell: number, part: number, u: number|null, v: number|null}|null}
 */
export function hit(of, x, y) {
  const column = Math.floor((x - of.left) / of.cellWidth);
  const row = Math.floor((y - of.top) / of.cellHeight);
  if (column < 0 || column >= of.columns || row < 0) return null;
  const cell = row * of.columns + column;
  if (cell >= of.count) return null;
  const { left, top } = corner(of, cell);
  const wide = of.tileWidth + BETWEEN;
  const part = Math.min(of.parts - 1, Math.max(0, Math.floor((x - left) / wide)));
  const u = (x - left - part * wide) / of.tileWidth;
  const v = (y - top) / of.tileHeight;
  const inside = u >= 0 && u < 1 && v >= 0 && v < 1;
  return { cell, part, u: inside ? u : null, v: inside ? v : null };
}

// Positions of the kernels of a layer: a matrix of inputs and outputs, or tiles with captions.

/** @typedef {Pick<LayoutRequest, "tile"|"available"|"windowHeight"|"ratio">} KernelRequest */

/** Width for the numbers left of a matrix, and height for those above it. */
const [MATRIX_GUTTER, MATRIX_HEADING] = [40, 22];
/** Minimum side of a weight, device px; a larger matrix scrolls. */
const LEAST = 3;
/** Maximum side of a kernel of a matrix that has no tile size, CSS px. */
const MOST = 96;
/** Least height of a weight of a sequence's kernel, CSS px, and its width divided by that. */
const [KERNEL_MIN, KERNEL_SHARE] = [6, 4];

/** @param {KernelCells} grid @param {KernelRequest} request @returns {Layout} */
export function kernelLayout({ of, cells, columns, parts: { length: parts } }, request) {
  const { tile, available, windowHeight, ratio } = request;
  if (!columns) {
    const map = { mapHeight: of.height, mapWidth: of.width };
    return layout({ ...request, ...map, parts, count: cells.length });
  }
  const lines = cells.length / columns;
  const gap = parts > 1 ? 8 : of.width === 1 ? 1 : 2;
  const between = (parts - 1) * BETWEEN;
  const across =
    ((available - MATRIX_GUTTER - MARGIN) / columns - gap - between) / (parts * of.width);
  const down = ((windowHeight - MATRIX_HEADING - MARGIN) / lines - gap) / of.height;
  const longer = Math.max(of.height, of.width);
  const fit = Math.min(of.rows ? across : Math.min(across, down), MOST / longer);
  const side = tile > 0 ? Math.max(1, Math.round((tile * ratio) / longer)) : 0;
  const factor = side || Math.max(LEAST, Math.floor(fit * ratio));
  const row = tile > 0 ? tile / KERNEL_SHARE : Math.min(ROW_MAX, Math.max(KERNEL_MIN, down));
  const factorDown = of.rows ? Math.max(1, Math.round(row * ratio)) : factor;
  const tileWidth = (of.width * factor) / ratio;
  const tileHeight = (of.height * factorDown) / ratio;
  const cellWidth = parts * tileWidth + between + gap;
  const cellHeight = tileHeight + gap;
  const [left, top] = [MATRIX_GUTTER, MATRIX_HEADING];
  const width = left + columns * cellWidth + MARGIN;
  const place = { left, top, width, height: top + lines * cellHeight + MARGIN };
  const count = { count: cells.length, parts, columns, lines, cellWidth, cellHeight };
  return { tileWidth, tileHeight, factor, factorDown, ...count, ...place, rows: false };
}

// Positions of what a scene shows.

/**
 * @param {MapsScene|KernelsScene} scene @param {number} tile longer side in CSS px, 0 to about fit the window
 * @param {number} available width, CSS px @param {number} windowHeight @param {number} ratio
 */
export function layoutFor(scene, tile, available, windowHeight, ratio) {
  if (scene.kind === "kernels") {
    return kernelLayout(scene.grid, { tile, available, windowHeight, ratio });
  }
  const { height = 1, width = 1 } = scene.a?.planes ?? {};
  return layout({
    ...{ count: scene.order.length, parts: scene.parts.length, rows: scene.rows },
    ...{ mapHeight: height, mapWidth: width, tile, available, windowHeight, ratio },
    numbered: scene.kind === "maps" && Boolean(scene.sorting.texts),
  });
}
