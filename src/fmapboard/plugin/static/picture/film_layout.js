// @ts-check
/** Positions in a film strip: one column per step, one row per channel, the input on top. */

export const GUTTER = 156;
export const HEADING = 24;
export const CAPTION = 21;
/** Space between a tile and its caption, for the tile's border and that of the current step. */
export const BELOW = 6;
const GAP = 8;
const MARGIN = 8;
/** Steps that should be in view at once, as far as frames of the smallest size allow it. */
const COLUMNS_SEEN = 8;
/** Heights of the labels left of a map, and left of a kernel. */
const MAP_LABELS = 82;
const KERNEL_LABELS = 56;
const SIDES = Object.freeze([192, 160, 128, 96, 80, 64, 48]);
/** Frames are made no smaller than this to have all bands in view. */
const LEAST_WHOLE = 80;
/** Rows of a sequence are this wide and high. */
const ROW_WIDTH = 224;
const ROW_HEIGHT = 28;

/**
 * `count` steps of maps of that many px, a row per channel; `isSequence`: each map is one row of pixels;
 * `tile` is the longer side of a tile in CSS px, 0 to about fit the window, `ratio` device px per CSS px;
 * `wraps`: columns that the window has no place for are in further bands; without `hasMaps` only kernels
 * are shown.
 * @typedef {{count: number, rows: number, mapHeight: number, mapWidth: number, isSequence: boolean,
 *   tile: number, windowWidth: number, windowHeight: number, ratio: number, wraps?: boolean,
 *   hasInput: boolean, hasMaps: boolean, hasKernels: boolean}} FilmRequest
 */

/** @param {FilmRequest} request @returns {FilmLayout} */
export function filmLayout(request) {
  if (request.tile > 0) return laidOut(request, request.tile);
  const all = SIDES.map((side) => laidOut(request, side));
  const isWhole = (/** @type {FilmLayout} */ of) => of.bands * of.height <= request.windowHeight;
  const whole = all.filter((_, i) => SIDES[i] >= LEAST_WHOLE).find(isWhole);
  if (request.wraps && whole) return whole;
  const seen = Math.min(request.count, COLUMNS_SEEN);
  const fits = (/** @type {FilmLayout} */ of) =>
    of.height <= request.windowHeight &&
    (request.isSequence || of.gutter + seen * of.columnWidth <= request.windowWidth);
  return all.find(fits) ?? all[all.length - 1];
}

/** @typedef {ReturnType<typeof laidOut>} FilmLayout lengths are CSS px; `factor` and `factorDown` are device px per map px */

/** @param {FilmRequest} request @param {number} side CSS px */
function laidOut(request, side) {
  const { count, rows, mapHeight, mapWidth, ratio, isSequence } = request;
  const longer = Math.max(mapHeight, mapWidth, 1);
  const wide = isSequence ? Math.max(ROW_WIDTH, side) : side;
  const whole = isSequence
    ? Math.floor((wide * ratio) / Math.max(mapWidth, 1))
    : Math.round((wide * ratio) / longer);
  // Only a sequence is shrunk: a map smaller than its pixels would hide some of them.
  const factor = whole >= 1 || !isSequence ? Math.max(1, whole) : (wide * ratio) / mapWidth;
  const factorDown = isSequence ? Math.round(ROW_HEIGHT * ratio) : factor;
  const tileWidth = request.hasMaps ? Math.round(mapWidth * factor) / ratio : side;
  const tileHeight = request.hasMaps ? (mapHeight * factorDown) / ratio : 0;
  const columnWidth = Math.max(tileWidth, 40) + GAP;
  const inputHeight = request.hasInput ? Math.min(isSequence ? 48 : columnWidth - GAP, 96) : 0;
  const inputTop = HEADING;
  const rowTop = HEADING + (inputHeight ? inputHeight + CAPTION : 0);
  const most = isSequence ? 28 : Math.max(40, Math.min(72, side * 0.6));
  const kernelHeight = request.hasKernels
    ? Math.min(columnWidth - GAP, request.hasMaps ? most : side)
    : 0;
  const kernelTop = tileHeight + (request.hasMaps ? CAPTION : 0);
  const labels = (request.hasMaps ? MAP_LABELS : CAPTION) + (kernelHeight ? KERNEL_LABELS : 0);
  const pictures = kernelTop + (kernelHeight ? kernelHeight + CAPTION : 0) + MARGIN;
  const rowHeight = Math.max(pictures, labels);
  const places = Math.floor((request.windowWidth - GUTTER - MARGIN) / columnWidth);
  const across = request.wraps ? Math.max(1, Math.min(places, count)) : Math.max(1, count);
  return {
    count,
    rows,
    gutter: GUTTER, // the labels at the left, which do not scroll
    columnWidth,
    tileWidth,
    tileHeight,
    factor, // below 1 the map is shrunk
    factorDown,
    inputTop,
    inputHeight,
    rowTop,
    rowHeight,
    kernelTop,
    kernelHeight,
    width: GUTTER + count * columnWidth + MARGIN,
    height: rowTop + rows * rowHeight + MARGIN,
    across, // columns per band
    bands: Math.max(1, Math.ceil(count / across)),
  };
}

/** Left edge of a column in the strip. @param {FilmLayout} of @param {number} column */
export function columnLeft(of, column) {
  return of.gutter + column * of.columnWidth;
}

/**
 * The channel at a height of the strip, with its part above that: 0 at the first channel, below 0
 * above the channels.
 * @param {FilmLayout} of @param {number} top in the strip, CSS px
 */
export function rowAt(of, top) {
  return top < of.rowTop ? top / of.rowTop - 1 : (top - of.rowTop) / of.rowHeight;
}

/** Height in the strip of what `rowAt` returns, CSS px. @param {FilmLayout} of @param {number} row */
export function rowTopOf(of, row) {
  return row < 0 ? (row + 1) * of.rowTop : of.rowTop + row * of.rowHeight;
}

/** Visible columns, [first, last + 1]. @param {FilmLayout} of @param {number} left @param {number} width CSS px */
export function visibleColumns(of, left, width) {
  const first = Math.max(0, Math.floor(left / of.columnWidth));
  const last = Math.ceil((left + Math.max(0, width - of.gutter)) / of.columnWidth);
  return [Math.min(first, of.count), Math.min(Math.max(last, 0), of.count)];
}

/** Visible bands, [first, last + 1]. @param {FilmLayout} of @param {number} top scrolled @param {number} height CSS px */
export function visibleBands(of, top, height) {
  const last = Math.ceil((top + height) / of.height);
  return [Math.max(0, Math.floor(top / of.height)), Math.max(0, Math.min(last, of.bands))];
}

/**
 * Columns in the order they should be loaded: visible ones, then those next to them.
 * @param {number} first @param {number} last visible ones, last + 1 @param {number} count
 * @param {number} ahead columns on each side
 */
export function loadingOrder(first, last, count, ahead) {
  const order = [];
  for (let i = first; i < last; i += 1) order.push(i);
  for (let away = 0; away < ahead; away += 1) order.push(last + away, first - 1 - away);
  return order.filter((i) => i >= 0 && i < count);
}

/**
 * What is at a point of the strip; null in the gutter and beyond the last step. `u` and `v` (0…1)
 * are the place in a tile, null beside one; `row` is null above the channels.
 * @param {FilmLayout} of @param {number} x in the strip @param {number} y in the strip, CSS px
 * @returns {{column: number, row: number|null, u: number|null, v: number|null}|null}
 */
export function filmHit(of, x, y) {
  const band = Math.floor(y / of.height);
  const place = Math.floor((x - of.gutter) / of.columnWidth);
  const column = band * of.across + place;
  if (place < 0 || place >= of.across || column >= of.count || y < 0) return null;
  const down = y - band * of.height;
  const at = Math.floor((down - of.rowTop) / of.rowHeight);
  const row = at >= 0 && at < of.rows ? at : null;
  const u = (x - columnLeft(of, place)) / of.tileWidth;
  const v = row === null ? -1 : (down - of.rowTop - row * of.rowHeight) / of.tileHeight;
  const inside = u >= 0 && u < 1 && v >= 0 && v < 1;
  return { column, row, u: inside ? u : null, v: inside ? v : null };
}

/**
 * Size of a picture within a box, CSS px.
 * @param {{width: number, height: number}} of @param {number} width @param {number} height
 */
export function fitted(of, width, height) {
  const factor = Math.min(width / of.width, height / of.height);
  return { width: of.width * factor, height: of.height * factor };
}
