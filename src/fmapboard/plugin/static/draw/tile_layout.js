// @ts-check
/** Where tiles and rows stand on the screen: whole device pixels per map pixel, so nothing blurs. */

/**
 * @typedef {object} Layout all lengths in CSS px
 * @property {number} count cells
 * @property {number} parts tiles side by side in one cell
 * @property {number} tileWidth
 * @property {number} tileHeight
 * @property {number} cellWidth
 * @property {number} cellHeight
 * @property {number} columns
 * @property {number} lines of cells
 * @property {number} height of everything
 * @property {number} factor device px per map px, across
 * @property {number} factorDown device px per map px, down
 * @property {number} left of the first tile
 * @property {number} top of the first tile
 * @property {number} width of everything; 0 where it always fits
 * @property {boolean} rows each cell is a row of pixels, without gap or caption
 */

export const GAP = 8;
export const CAPTION = 15;
const BETWEEN = 2;
const MARGIN = 10;
const FIT_LEAST = 48;
const FIT_MOST = 256;
/** A little scrolling is better than tiles half the size. */
const FIT_SLACK = 1.5;

/**
 * @typedef {object} Room what is to be laid out, and where
 * @property {number} count cells
 * @property {number} parts
 * @property {number} mapHeight map px
 * @property {number} mapWidth
 * @property {number} wanted a tile's longer side in CSS px; 0 for about what fits the window
 * @property {number} available width, CSS px
 * @property {number} windowHeight CSS px
 * @property {number} ratio device px per CSS px
 * @property {boolean} [rows] sequences: each cell is one row of pixels
 */

/** The chosen tile size divided by the height of a row: 64 px tiles give 8 px rows. */
export const ROW_SHARE = 8;
/** Left of rows: channel numbers. */
const GUTTER = 44;
/** Above rows: positions. */
const HEADING = 20;
const ROW_LEAST = 3;
const ROW_MOST = 24;

/** @param {Room} room @returns {Layout} */
export function layout(room) {
  if (room.rows) return rowsLayout(room);
  const longer = Math.max(room.mapHeight, room.mapWidth, 1);
  const factorOf = (/** @type {number} */ side) => Math.max(1, Math.round((side * room.ratio) / longer));
  if (room.wanted > 0) return laidOut(room, factorOf(room.wanted));
  const least = factorOf(FIT_LEAST);
  for (let factor = Math.max(least, Math.floor((FIT_MOST * room.ratio) / longer)); factor > least; factor -= 1) {
    const tried = laidOut(room, factor);
    if (tried.height <= room.windowHeight * FIT_SLACK && tried.cellWidth <= room.available - 2 * MARGIN) return tried;
  }
  return laidOut(room, least);
}

/** @param {Room} room @param {number} factor @returns {Layout} */
function laidOut({ count, parts, mapHeight, mapWidth, available, ratio }, factor) {
  const tileWidth = (mapWidth * factor) / ratio;
  const tileHeight = (mapHeight * factor) / ratio;
  const cellWidth = Math.max(parts * tileWidth + (parts - 1) * BETWEEN, 24) + GAP;
  const cellHeight = tileHeight + CAPTION + GAP;
  const columns = Math.max(1, Math.floor((available - 2 * MARGIN + GAP) / cellWidth));
  const rows = Math.ceil(count / columns);
  const height = 2 * MARGIN + rows * cellHeight;
  return {
    count, parts, tileWidth, tileHeight, cellWidth, cellHeight, columns, height, factor, factorDown: factor,
    left: MARGIN, top: MARGIN, width: 0, rows: false, lines: rows,
  };
}

/**
 * One row of pixels per channel: as wide as the window, or wider for large tiles; all rows in the
 * window where they are not too low for that.
 * @param {Room} room @returns {Layout}
 */
function rowsLayout({ count, parts, mapWidth, wanted, available, windowHeight, ratio }) {
  const span = ((available - GUTTER - MARGIN - (parts - 1) * BETWEEN) * ratio) / parts;
  const fit = Math.max(1, Math.floor(span / Math.max(mapWidth, 1)));
  const factor = fit * Math.max(1, Math.round(wanted / 64));
  const auto = Math.min(ROW_MOST, Math.max(ROW_LEAST, (windowHeight - HEADING - MARGIN) / Math.max(count, 1)));
  const factorDown = Math.max(1, Math.floor((wanted > 0 ? wanted / ROW_SHARE : auto) * ratio));
  const tileWidth = (mapWidth * factor) / ratio;
  const tileHeight = factorDown / ratio;
  const cellWidth = parts * tileWidth + (parts - 1) * BETWEEN;
  const height = HEADING + count * tileHeight + MARGIN;
  return {
    count, parts, tileWidth, tileHeight, cellWidth, cellHeight: tileHeight, columns: 1, height, factor, factorDown,
    left: GUTTER, top: HEADING, width: GUTTER + cellWidth + MARGIN, rows: true, lines: count,
  };
}

/** Corner of a part of a cell. @param {Layout} of @param {number} cell @param {number} part */
export function corner(of, cell, part = 0) {
  return {
    left: of.left + (cell % of.columns) * of.cellWidth + part * (of.tileWidth + BETWEEN),
    top: of.top + Math.floor(cell / of.columns) * of.cellHeight,
  };
}

/** Cells that show between two heights, as [first, last + 1). @param {Layout} of @param {number} top @param {number} bottom */
export function visible(of, top, bottom) {
  const first = Math.max(0, Math.floor((top - of.top) / of.cellHeight));
  const last = Math.min(of.lines - 1, Math.floor((bottom - of.top) / of.cellHeight));
  return [Math.min(first * of.columns, of.count), Math.min((last + 1) * of.columns, of.count)];
}

/**
 * What lies under a point: the cell, its part, and the place in the tile (0…1 each way; null
 * where the point is on the caption or between tiles).
 * @param {Layout} of @param {number} x @param {number} y
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
