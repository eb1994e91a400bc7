// @ts-check
/**
 * Where the tiles of grids, film strips and contact sheets are; nearly always, a map pixel is a
 * whole number of device pixels.
 */

/** @import {GridScene, Strip} from "../model/model.js" */
/** @import {FilmLayout, FilmRequest, Layout, LayoutRequest, ScreenRequest} from "./picture.js" */
/** @import {SheetLayout, Window} from "./picture.js" */

export const GAP = 8;
export const CAPTION = 18;
/** Height of each further line of a caption. */
export const CAPTION_LINE = 15;
/** Between tiles of one cell. */
export const BETWEEN = 6;
const MARGIN = 10;
const FIT_MIN = 48;
const FIT_MAX = 256;
/** Tiles as large as this are all in view rather than larger, CSS px. */
const READABLE = 112;

/** Tile size divided by row height: a tile size of 64 px gives rows of 8 px. */
export const ROW_SHARE = 8;
/** Width for the channel numbers left of rows. */
const GUTTER = 48;
/** Additional width for the numbers of sorted rows. */
export const NUMBERS = 60;
/** Height for the positions above rows. */
const HEADING = 20;
const ROW_MIN = 3;
/** Rows or a matrix of which this share fits the window are shrunk to it. */
const NEARLY = 0.75;
const ROW_MAX = 48;

/**
 * Space between cells of a line: wide enough that tiles of one cell belong together.
 * @param {number} parts
 */
export function gapOf(parts) {
  return parts > 1 ? 2 * GAP : GAP;
}

/** Width of the tiles of one cell, CSS px. @param {{parts: number, tileWidth: number}} of */
export function widthOf({ parts, tileWidth }) {
  return Math.max(parts * tileWidth + (parts - 1) * BETWEEN, 24);
}

/** @param {LayoutRequest} request @returns {Layout} */
export function layout(request) {
  if (request.columns) return matrixLayout(request);
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
 * With tiles that fill the width in as many columns. Their factor is not whole where whole ones
 * leave wide gaps: then some pixels are a device pixel larger than others, and none is hidden.
 * @param {LayoutRequest} request @param {Layout} of with a whole factor
 */
function filled(request, of) {
  const [{ available, ratio, mapWidth }, { columns, parts, factor }] = [request, of];
  if (columns < 2 || of.lines < 2) return of;
  const cell = (available - 2 * MARGIN + gapOf(parts)) / columns - gapOf(parts);
  const wide = (cell - (parts - 1) * BETWEEN) / parts;
  const fitting = Math.floor(wide * ratio) / mapWidth;
  const isNarrow =
    cell - widthOf({ parts, tileWidth: (mapWidth * Math.floor(fitting)) / ratio }) <= GAP;
  return laidOut(request, Math.max(factor, isNarrow ? Math.floor(fitting) : fitting));
}

/** @param {LayoutRequest} request @param {number} factor @returns {Layout} */
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
  return inOneBand({ ...tile, ...cells, left: MARGIN, top: MARGIN, width: 0, height, rows: false });
}

/** @template {{lines: number, height: number}} T @param {T} of */
const inOneBand = (of) => ({ ...of, perBand: of.lines, bandHeight: of.height });

/**
 * A row of pixels per channel, as wide as the window or wider.
 * @param {LayoutRequest} request
 * @returns {Layout}
 */
function rowsLayout(request) {
  const { count, parts, mapWidth, tile, available, windowHeight, ratio } = request;
  const gutter = GUTTER + (request.numbered ? NUMBERS : 0);
  const span = ((available - gutter - MARGIN - (parts - 1) * BETWEEN) * ratio) / parts;
  const exact = span / Math.max(mapWidth, 1);
  const isNear = exact < 1 && exact >= NEARLY; // a few positions share a device pixel with the next
  const fit = isNear ? exact : Math.max(1, Math.floor(exact));
  const factor = fit * Math.max(1, Math.round(tile / 64));
  const each = (windowHeight - HEADING - MARGIN) / Math.max(count, 1);
  const auto = Math.min(ROW_MAX, Math.max(ROW_MIN, each));
  const factorDown = Math.max(1, Math.floor((tile > 0 ? tile / ROW_SHARE : auto) * ratio));
  const of = { columns: 1, gap: 0, left: gutter, top: HEADING, factor, factorDown };
  return { ...inTable(request, of), rows: true };
}

/** Top left corner of a tile. @param {Layout} of @param {number} cell @param {number} part */
export function corner(of, cell, part = 0) {
  const line = Math.floor(cell / of.columns);
  const band = Math.floor(line / of.perBand);
  return {
    left: of.left + (cell % of.columns) * of.cellWidth + part * (of.tileWidth + BETWEEN),
    top: of.top + band * of.bandHeight + (line % of.perBand) * of.cellHeight,
  };
}

/** The cells in a window. @param {Layout} of @param {Window} where @returns {number[]} */
export function visible(of, { top, left = 0, width, height }) {
  const [from, to] = linesIn(of, top, top + height);
  const [start, end] = columnsIn(of, left, width);
  const cells = [];
  for (let line = from; line < to; line += 1) {
    for (let column = start; column < end; column += 1) cells.push(line * of.columns + column);
  }
  return cells.filter((cell) => cell < of.count);
}

/**
 * Lines between two heights, [first, last + 1].
 * @param {Layout} of @param {number} top @param {number} bottom
 */
function linesIn(of, top, bottom) {
  const lines = [top, bottom].map((y) => Math.floor((y - of.top) / of.cellHeight));
  const inside = (/** @type {number} */ line) => Math.min(of.lines, Math.max(0, line));
  return [inside(lines[0]), inside(lines[1] + 1)];
}

/**
 * Columns right of what does not scroll, [first, last + 1].
 * @param {Layout} of @param {number} left @param {number} width
 */
function columnsIn(of, left, width) {
  const last = Math.ceil((left + Math.max(0, width - of.left)) / of.cellWidth);
  const inside = (/** @type {number} */ column) => Math.min(of.columns, Math.max(0, column));
  return [inside(Math.floor(left / of.cellWidth)), inside(last)];
}

/**
 * The cell and part at a point, and its place in the tile: null on the caption and between tiles.
 * @param {Layout} of @param {number} x @param {number} y CSS px
 * @returns {{cell: number, part: number, u: number|null, v: number|null}|null}
 */
export function hit(of, x, y) {
  const column = Math.floor((x - of.left) / of.cellWidth);
  const band = Math.floor(y / of.bandHeight);
  const row = Math.floor((y - band * of.bandHeight - of.top) / of.cellHeight);
  if (column < 0 || column >= of.columns || row < 0 || row >= of.perBand) return null;
  const cell = (band * of.perBand + row) * of.columns + column;
  if (cell >= of.count) return null;
  const { left, top } = corner(of, cell);
  const wide = of.tileWidth + BETWEEN;
  const part = Math.min(of.parts - 1, Math.max(0, Math.floor((x - left) / wide)));
  const u = (x - left - part * wide) / of.tileWidth;
  const v = (y - top) / of.tileHeight;
  const inside = u >= 0 && u < 1 && v >= 0 && v < 1;
  return { cell, part, u: inside ? u : null, v: inside ? v : null };
}

// Kernels as a matrix of inputs and outputs.

/** Width for the numbers left of a matrix, and height for the names and numbers above it. */
const [MATRIX_GUTTER, MATRIX_HEADING] = [54, 38];
/** Minimum side of a weight, device px; a larger matrix scrolls, unless it nearly fits. */
const LEAST = 3;
/**
 * Sides of a kernel of a matrix that has no tile size, CSS px: the maximum, and one up to which a
 * matrix as wide as the window is higher than that.
 */
const [MOST, LEGIBLE] = [96, 48];
/** Least height of a weight of a sequence's kernel, CSS px, and its width divided by that. */
const [KERNEL_MIN, KERNEL_SHARE] = [6, 4];

/** @param {LayoutRequest} request @returns {Layout} */
function matrixLayout(request) {
  const { count, columns = 1, parts, rows, mapHeight, mapWidth, tile, ratio } = request;
  const gap = parts > 1 ? 8 : mapWidth === 1 ? 1 : 2;
  const between = (parts - 1) * BETWEEN;
  const wide = request.available - MATRIX_GUTTER - MARGIN;
  const free = request.windowHeight - MATRIX_HEADING - MARGIN;
  const across = (wide / columns - gap - between) / (parts * mapWidth);
  const down = (free / (count / columns) - gap) / mapHeight;
  const longer = Math.max(mapHeight, mapWidth);
  const high = Math.max(down, LEGIBLE / longer);
  const fit = Math.min(across, rows ? across : high, MOST / longer);
  const side = tile > 0 ? Math.max(1, Math.round((tile * ratio) / longer)) : 0;
  // A matrix that nearly fits has weights of which some are a device pixel larger than others.
  const isNear = fit * ratio < LEAST && fit * ratio >= NEARLY * LEAST;
  const factor = side || (isNear ? fit * ratio : Math.max(LEAST, Math.floor(fit * ratio)));
  const row = tile > 0 ? tile / KERNEL_SHARE : Math.min(ROW_MAX, Math.max(KERNEL_MIN, down));
  const factorDown = rows ? Math.max(1, Math.round(row * ratio)) : factor;
  const place = { left: MATRIX_GUTTER, top: MATRIX_HEADING };
  return inTable(request, { columns, gap, ...place, factor, factorDown });
}

/**
 * Cells in a number of columns, with space for what is left of them and above.
 * @param {LayoutRequest} request
 * @param {Pick<Layout, "columns"|"left"|"top"|"factor"|"factorDown"> & {gap: number}} of
 * @returns {Layout}
 */
function inTable({ count, parts, mapHeight, mapWidth, ratio }, { gap, ...of }) {
  const tileWidth = (mapWidth * of.factor) / ratio;
  const tileHeight = (mapHeight * of.factorDown) / ratio;
  const cellWidth = parts * tileWidth + (parts - 1) * BETWEEN + gap;
  const cellHeight = tileHeight + gap;
  const lines = count / of.columns;
  const width = of.left + of.columns * cellWidth + MARGIN;
  const height = of.top + lines * cellHeight + MARGIN;
  const tile = { tileWidth, tileHeight, cellWidth, cellHeight };
  return inOneBand({ ...of, ...tile, count, parts, lines, width, height, rows: false });
}

/**
 * Positions of what a scene shows.
 * @param {GridScene} scene
 * @param {number} tile longer side in CSS px, 0 to about fit the window
 * @param {number} available width, CSS px @param {number} windowHeight @param {number} ratio
 */
export function layoutFor(scene, tile, available, windowHeight, ratio) {
  const { height, width } = scene.a.planes;
  return layout({
    ...{ count: scene.order.length, parts: scene.parts.length, rows: scene.rows },
    ...{ mapHeight: height, mapWidth: width, tile, available, windowHeight, ratio },
    columns: scene.kind === "kernels" ? scene.arranged.columns : 0,
    numbered: Boolean(scene.sorting.texts),
  });
}

// Film strips: a column per step, a line per channel, the input on top.

/** Width of the labels at the left, height of the steps above, and of a caption below a tile. */
export const FILM_GUTTER = 156;
export const FILM_HEADING = 24;
export const FILM_CAPTION = 21;
/** Around a strip, CSS px. */
const FILM_MARGIN = 8;
/** Steps that should be in view at once, as far as frames of the smallest size allow it. */
const COLUMNS_SEEN = 8;
const SEQUENCES_SEEN = 2;
/** Heights of the labels left of a map, and left of a kernel. */
const MAP_LABELS = 85;
const KERNEL_LABELS = 56;
/** Sides of frames, CSS px. */
const SIDES = Object.freeze(Array.from({ length: 55 }, (_, i) => 480 - 8 * i));
/** Frames are made no smaller than this to have all bands in view. */
const LEAST_WHOLE = 80;
/** From this factor on, frames of whole factors nearly fill the width. */
const FILLING = 3;
/**
 * Height of the inputs, which are there to tell what the maps are of, and the largest one that they
 * have if there is nothing else in the window to be shown, CSS px.
 */
const [INPUT, INPUT_MOST] = [56, 160];
/** Least width of a row of a sequence, and of one in a strip of several bands, and its height. */
const [ROW_WIDTH, ROW_LEAST] = [224, 160];
const SEQUENCE_HEIGHT = 60;

/**
 * Positions of what a strip shows, as far as the size of its maps is known.
 * @param {Strip} of @param {ScreenRequest} request
 */
export function stripLayout({ a, order, columns, hasInput, hasMaps, hasKernels }, request) {
  const { height, width } = a.planes;
  return filmLayout({
    ...{ ...request, hasInput, hasMaps, hasKernels, mapHeight: height, mapWidth: width },
    ...{ count: columns.length, rows: order.length, isSequence: height === 1 && width > 1 },
  });
}

/** @param {FilmRequest} request @returns {FilmLayout} */
export function filmLayout(request) {
  if (request.tile > 0) return film(request, request.tile);
  const all = SIDES.map((side) => film(request, side));
  const isWhole = (/** @type {FilmLayout} */ of) => of.height <= request.windowHeight;
  const whole = all.filter((_, i) => SIDES[i] >= LEAST_WHOLE).find(isWhole);
  const seen = Math.min(request.count, request.isSequence ? SEQUENCES_SEEN : COLUMNS_SEEN);
  const fits = (/** @type {FilmLayout} */ of) =>
    of.bandHeight <= request.windowHeight && of.left + seen * of.cellWidth <= request.windowWidth;
  const usual = all.find(fits) ?? all[all.length - 1];
  return request.wraps ? filling(request, widened(request, whole ?? usual)) : usual;
}

/**
 * A strip in as many bands, with frames that fill the width. The factor of maps is not whole: then
 * some pixels are a device pixel larger than others, and none is hidden.
 * @param {FilmRequest} request @param {FilmLayout} of with a whole factor
 */
function widened(request, of) {
  const { windowWidth, windowHeight, hasMaps, isSequence } = request;
  const wide = windowWidth - FILM_GUTTER - FILM_MARGIN;
  const most = Math.floor(wide / of.columns) - GAP;
  if (isSequence && most > of.side) return film(request, most);
  if (!hasMaps || of.factor >= FILLING) return of;
  const isWhole = of.height <= windowHeight;
  for (let side = most; side > of.tileWidth; side -= 1) {
    const wider = film(request, side, { isExact: true });
    const height = isWhole ? wider.height : wider.bandHeight;
    if (wider.bands <= of.bands && height <= windowHeight) return wider;
  }
  return of;
}

/**
 * A strip with larger kernels, and then inputs, if it is lower than the window.
 * @param {FilmRequest} request @param {FilmLayout} of
 */
function filling(request, of) {
  if (of.height > request.windowHeight) return of;
  const { isExact } = of;
  const free = (request.windowHeight - of.height) / of.bands; // of each band
  const kernel = of.kernelHeight ? Math.floor(free / request.rows) : 0;
  const { height } = film(request, of.side, { kernel, isExact });
  const input = Math.floor((request.windowHeight - height) / of.bands);
  return film(request, of.side, { kernel, input, isExact });
}

/**
 * @param {FilmRequest} request @param {number} side CSS px
 * @param {{kernel?: number, input?: number, isExact?: boolean}} more height of each, CSS px, and
 *   whether frames have exactly this side
 */
export function film(request, side, { kernel = 0, input = 0, isExact = false } = {}) {
  const { count, rows, mapHeight, mapWidth, ratio, isSequence } = request;
  const longer = Math.max(mapHeight, mapWidth, 1);
  const wide = isSequence ? Math.max(request.wraps ? ROW_LEAST : ROW_WIDTH, side) : side;
  const whole = isSequence
    ? Math.floor((wide * ratio) / Math.max(mapWidth, 1))
    : Math.round((wide * ratio) / longer);
  // Only a sequence is shrunk: a map smaller than its pixels would hide some of them.
  const exact = (wide * ratio) / (isSequence ? mapWidth : longer);
  const isShrunk = isSequence && whole < 1;
  const factor = isShrunk || isExact ? exact : Math.max(1, whole);
  const factorDown = isSequence ? Math.round(SEQUENCE_HEIGHT * ratio) : factor;
  const tileWidth = request.hasMaps ? Math.round(mapWidth * factor) / ratio : side;
  const tileHeight = request.hasMaps ? (mapHeight * factorDown) / ratio : 0;
  const columnWidth = Math.max(tileWidth, 40) + GAP;
  const inputHeight = request.hasInput ? Math.min(columnWidth - GAP, INPUT_MOST, INPUT + input) : 0;
  const inputTop = FILM_HEADING;
  const rowTop = FILM_HEADING + (inputHeight ? inputHeight + FILM_CAPTION : 0);
  const usual = isSequence ? 28 : Math.max(40, Math.min(72, side * 0.6), side * 0.4);
  const kernelHeight = request.hasKernels
    ? Math.min(columnWidth - GAP, request.hasMaps ? usual + kernel : side)
    : 0;
  const caption = tileHeight + (request.hasMaps ? FILM_CAPTION : 0);
  const ofMaps = request.hasMaps ? MAP_LABELS : FILM_CAPTION;
  const kernelTop = kernelHeight ? Math.max(caption, ofMaps) : caption;
  const labels = ofMaps + (kernelHeight ? KERNEL_LABELS : 0);
  const pictures = kernelTop + (kernelHeight ? kernelHeight + FILM_CAPTION : 0) + FILM_MARGIN;
  const rowHeight = Math.max(pictures, labels);
  const places = Math.floor((request.windowWidth - FILM_GUTTER - FILM_MARGIN) / columnWidth);
  const most = request.wraps ? Math.max(1, Math.min(places, count)) : Math.max(1, count);
  const bands = Math.max(1, Math.ceil(count / most));
  const across = Math.ceil(Math.max(1, count) / bands); // no band has only a few
  const bandHeight = rowTop + rows * rowHeight + FILM_MARGIN;
  const over = Math.max(0, bands * bandHeight - request.windowHeight);
  // The last bands can be scrolled to without a part of one above them.
  const isSnapped = bands > 1 && bandHeight <= request.windowHeight;
  const cut = isSnapped ? Math.ceil(over / bandHeight) * bandHeight - over : 0;
  const cells = { count: bands * rows * across, parts: 1, columns: across, lines: bands * rows };
  return {
    ...{ tileWidth, tileHeight, factor, factorDown, ...cells, perBand: rows, bandHeight },
    ...{ cellWidth: columnWidth, cellHeight: rowHeight, rows: false, steps: count, bands },
    ...{ inputTop, inputHeight, kernelTop, kernelHeight, side, isExact },
    left: FILM_GUTTER, // the labels at the left, which do not scroll
    top: rowTop,
    width: FILM_GUTTER + across * columnWidth + FILM_MARGIN,
    height: bands * bandHeight + cut,
  };
}

/**
 * Where a window scrolls to for a band that is not all in sight: none is cut at the top.
 * @param {FilmLayout} of @param {{scrollTop: number, clientHeight: number}} window
 * @param {number} top of the band, CSS px
 */
export function bandsFrom({ bandHeight }, { scrollTop, clientHeight }, top) {
  if (top >= scrollTop && top + bandHeight <= scrollTop + clientHeight) return scrollTop;
  const seen = Math.max(1, Math.floor(clientHeight / bandHeight));
  return top < scrollTop ? top : top - (seen - 1) * bandHeight;
}

/**
 * The channel at a height, with its part above that; below 0 above the channels.
 * @param {FilmLayout} of @param {number} top
 */
export function rowAt(of, top) {
  return top < of.top ? top / of.top - 1 : (top - of.top) / of.cellHeight;
}

/**
 * Height in the strip of what `rowAt` returns, CSS px.
 * @param {FilmLayout} of @param {number} row
 */
export function rowTopOf(of, row) {
  return row < 0 ? (row + 1) * of.top : of.top + row * of.cellHeight;
}

/** Steps in a window, ascending. @param {FilmLayout} of @param {Window} where */
export function visibleSteps(of, { top, left = 0, width, height }) {
  const [first, last] = [
    Math.floor(top / of.bandHeight),
    Math.ceil((top + height) / of.bandHeight),
  ];
  const [start, end] = columnsIn(of, left, width);
  const steps = [];
  for (let band = Math.max(0, first); band < Math.min(last, of.bands); band += 1) {
    for (let column = start; column < end; column += 1) steps.push(band * of.columns + column);
  }
  return steps.filter((step) => step < of.steps);
}

/**
 * Visible steps first, then those beside.
 * @param {number[]} shown @param {number} count @param {number} ahead
 */
export function loadingOrder(shown, count, ahead) {
  const order = [...shown];
  const [first, last] = [shown[0] ?? 0, shown[shown.length - 1] ?? -1];
  for (let away = 1; away <= ahead; away += 1) order.push(last + away, first - away);
  return order.filter((i) => i >= 0 && i < count);
}

/**
 * What is at a point of the strip; null in the gutter and beyond the last step. `u` and `v` (0…1)
 * are the place in a tile, null beside one.
 * @param {FilmLayout} of @param {number} x @param {number} y
 * @returns {{column: number, row: number|null, u: number|null, v: number|null}|null}
 */
export function filmHit(of, x, y) {
  const place = Math.floor((x - of.left) / of.cellWidth);
  const column = Math.floor(y / of.bandHeight) * of.columns + place;
  if (place < 0 || place >= of.columns || column >= of.steps || y < 0) return null;
  const at = hit(of, x, y);
  const row = at && Math.floor(at.cell / of.columns) % of.perBand;
  return { column, row, u: at?.u ?? null, v: at?.v ?? null };
}

// Contact sheets: a line per layer, a column per step, in pages of a screenful.

/** Between two cells, CSS px; frames of states are drawn there. */
export const SHEET_GAP = 6;
/** Smallest side of a cell, CSS px. */
export const SHEET_LEAST = 24;
/** Side that many steps do not go below, so that a map can be recognized, CSS px. */
const RECOGNIZED = 80;
/** Side that a few steps do not go above, CSS px, and as a share of the height. */
const LARGEST = 320;
const LARGEST_SHARE = 0.4;
/**
 * Height of the ranges below the pictures, and the smallest side of a cell that has one, CSS px.
 */
export const SHEET_CAPTION = 16;
export const CAPTIONED = 60;
/** Height of maps that are one row of pixels, where all are, and the least width, CSS px. */
const [STRIP, STRIP_MOST, STRIP_LEAST] = [36, 140, 160];
/** The map of states is shown first where fewer columns fit. */
const LEAST_COLUMNS = 4;

/** Width of the names. @param {number} width */
function namesOf(width) {
  return Math.min(230, Math.max(110, Math.round(width * 0.16)));
}

/** True if a sheet has its least number of columns in this width, CSS px. @param {number} width */
export function fits(width) {
  return width - namesOf(width) >= LEAST_COLUMNS * (SHEET_LEAST + SHEET_GAP);
}

/**
 * `isFlat`: each map is one row of pixels.
 * @param {{layers: number, steps: readonly number[], onsets: readonly number[], width: number,
 *   height: number, isFlat?: boolean}} of
 */
export function sheetLayout({ layers, steps, onsets, width, height, isFlat = false }) {
  const names = namesOf(width);
  const wide = Math.max(SHEET_LEAST + SHEET_GAP, width - names);
  const usual = isFlat ? STRIP_LEAST : RECOGNIZED;
  const least = Math.max(SHEET_LEAST, Math.min(usual, wide / LEAST_COLUMNS - SHEET_GAP));
  const shown = thinned(steps, Math.max(1, Math.floor(wide / (least + SHEET_GAP))), onsets);
  const filling = wide / Math.max(1, shown.length) - SHEET_GAP;
  const most = isFlat ? filling : Math.min(LARGEST, LARGEST_SHARE * height, filling);
  const side = Math.floor(Math.max(least, most));
  const below = SHEET_GAP + (side < CAPTIONED ? 0 : SHEET_CAPTION);
  const strip = Math.floor(height / Math.max(1, layers)) - below;
  const high = isFlat ? Math.min(STRIP_MOST, Math.max(STRIP, strip)) : side;
  const line = high + below;
  const rows = Math.max(1, Math.min(layers, Math.ceil(height / line)));
  return { side, high, line, names, steps: shown, rows };
}

/**
 * At most `count` steps: each 1st, 2nd, 4th, … one, so that fewer columns are some of more ones,
 * the last one, and onsets besides.
 * @param {readonly number[]} steps ascending @param {number} count
 * @param {readonly number[]} onsets the most important first
 * @returns {number[]}
 */
export function thinned(steps, count, onsets) {
  const last = steps.length - 1;
  const begins = onsets.map((onset) => steps.indexOf(onset)).filter((at) => at >= 0);
  for (let stride = 1; stride < steps.length; stride *= 2) {
    const chosen = new Set([...begins, last]);
    for (let at = 0; at < steps.length; at += stride) chosen.add(at);
    if (chosen.size <= count) return [...chosen].sort((a, b) => a - b).map((at) => steps[at]);
  }
  const few = [...new Set([last, ...begins.slice(0, 1), 0, ...begins])].slice(0, count);
  return few.sort((a, b) => a - b).map((at) => steps[at]);
}

/** A page of the sheet. @param {SheetLayout} of @param {number} lines @returns {Layout} */
export function pageLayout({ side, high, line, steps: { length: columns } }, lines) {
  const pitch = side + SHEET_GAP;
  const [width, height] = [columns * pitch, lines * line];
  return inOneBand({
    ...{
      count: columns * lines,
      parts: 1,
      columns,
      lines,
      left: SHEET_GAP / 2,
      top: SHEET_GAP / 2,
    },
    ...{ cellWidth: pitch, cellHeight: line, tileWidth: side, tileHeight: high, width, height },
    ...{ factor: 1, factorDown: 1, rows: false },
  });
}
