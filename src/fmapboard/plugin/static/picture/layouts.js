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
  // A matrix that is higher than the window if its kernels are legible fills the width instead.
  const high = down * longer < LEGIBLE ? across : down;
  const fit = rows ? across : Math.min(across, high, MOST / longer);
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
/** Steps in view of a strip that scrolls to the right, as far as frames are not too small. */
const SEEN = 8;
/** Heights of the labels left of a map, and left of a kernel. */
const MAP_LABELS = 85;
const KERNEL_LABELS = 62;
/** The largest and the smallest side of frames, CSS px. */
const [FRAME_MOST, FRAME_LEAST] = [480, 24];
/** Least sides of frames as far as the window allows it: of maps, and of curves, CSS px. */
const [MAP_LEGIBLE, CURVE_LEGIBLE] = [60, 120];
/** Of a browser that keeps space for a scroll bar that it does not show, CSS px. */
const SCROLL_BAR = 16;
/** Columns are this much further apart than they must be, to fill the width. */
const SPREAD = 1.5;
/** Height of a curve, as a share of its width, and the least one, CSS px. */
const [CURVE_SHARE, CURVE_HIGH] = [0.5, 40];

/**
 * Positions of what a strip shows, as far as the size of its maps is known.
 * @param {Strip} of @param {ScreenRequest} request
 */
export function stripLayout({ a, order, columns, hasInput, hasMaps, hasKernels }, request) {
  const { height, width } = a.planes;
  const isOneInput = !request.isSaved && columns.every(({ change }) => change !== "different");
  return filmLayout({
    ...{ ...request, hasInput, hasMaps, hasKernels, mapHeight: height, mapWidth: width },
    ...{ count: columns.length, rows: order.length, isSequence: height === 1 && width > 1 },
    isOneInput,
  });
}

/**
 * The strip with the largest frames that are all in view; one that scrolls if these are too small.
 * @param {FilmRequest} request @returns {FilmLayout}
 */
export function filmLayout(request) {
  const { count, tile, wraps, windowHeight, isSequence } = request;
  if (tile > 0) return film(request, tile);
  const legible = isSequence ? CURVE_LEGIBLE : MAP_LEGIBLE;
  let best = largest(request, count);
  if (!wraps) {
    const { side } = best.side < legible ? largest(request, Math.min(count, SEEN)) : best;
    return film(request, side, count);
  }
  for (let bands = 2; bands <= count && bands * MAP_LABELS <= windowHeight; bands += 1) {
    const columns = Math.ceil(count / bands); // no band has only a few
    const of = largest(request, columns, bands);
    if (of.side > best.side) best = of;
  }
  if (best.side < legible) {
    const { left, cellWidth } = film(request, legible, count);
    const seen = Math.max(1, Math.round((request.windowWidth - left) / cellWidth));
    best = largest(request, Math.ceil(count / Math.ceil(count / seen)));
    // As many bands in view as there is space for.
    for (let bands = 2; best.side >= legible; bands += 1) {
      const of = largest(request, best.columns, bands);
      if (of.side < legible) break;
      best = of;
    }
  }
  return isSequence ? stretched(request, best) : best;
}

/**
 * The largest frames of which so many are in view.
 * @param {FilmRequest} request @param {number} columns @param {number} [bands]
 */
function largest(request, columns, bands = 1) {
  let [side, most] = [FRAME_LEAST, FRAME_MOST];
  while (side < most) {
    const middle = Math.ceil((side + most) / 2);
    const { left, cellWidth, bandHeight } = film(request, middle, columns);
    const width = left + columns * cellWidth + FILM_MARGIN;
    if (width <= request.windowWidth && bands * bandHeight <= request.windowHeight) side = middle;
    else most = middle - 1;
  }
  return film(request, side, columns);
}

/**
 * Curves as wide, and nearly as high, as there is space. @param {FilmRequest} request
 * @param {FilmLayout} of
 */
function stretched(request, { columns, bands, side: before, left }) {
  const most = Math.floor((request.windowWidth - left - FILM_MARGIN) / columns) - GAP;
  const side = Math.max(before, most);
  const { bandHeight, tileHeight } = film(request, side, columns, CURVE_SHARE * before);
  const free = request.windowHeight / bands - bandHeight;
  const each = free / request.rows / (request.hasKernels ? 2 : 1);
  return film(request, side, columns, Math.min(tileHeight + Math.max(0, each), 0.75 * side));
}

/**
 * @param {FilmRequest} request @param {number} side CSS px @param {number} [fixed] columns, in
 *   which frames have exactly this side; else as many as the window has space for, of frames with
 *   a whole factor
 * @param {number} [high] of curves, CSS px
 */
export function film(request, side, fixed = 0, high = CURVE_SHARE * side) {
  const { count, rows, mapHeight, mapWidth, ratio, isSequence, hasMaps } = request;
  const longer = Math.max(mapHeight, mapWidth, 1);
  const exact = (side * ratio) / longer; // below 1, pixels are averaged
  const factor = isSequence || fixed ? exact : Math.max(1, Math.round(exact));
  const curveHeight = Math.floor(Math.max(CURVE_HIGH, high) * ratio);
  const factorDown = isSequence ? curveHeight : factor;
  const tileWidth = hasMaps ? Math.round(mapWidth * factor) / ratio : side;
  const shownHeight = hasMaps ? (mapHeight * factorDown) / ratio : side;
  const tileHeight = hasMaps ? shownHeight : 0;
  const least = Math.max(tileWidth, 40) + GAP;
  const hasRow = request.hasInput && !request.isOneInput;
  const inputHeight = hasRow ? shownHeight : 0;
  const inputTop = FILM_HEADING;
  const top = FILM_HEADING + (hasRow ? inputHeight + FILM_MARGIN : 0);
  const kernelHeight = request.hasKernels ? (isSequence ? shownHeight : tileWidth) : 0;
  const caption = tileHeight + (hasMaps ? FILM_CAPTION : 0);
  const ofMaps = hasMaps ? MAP_LABELS : FILM_CAPTION;
  const kernelTop = kernelHeight ? Math.max(caption + GAP / 2, ofMaps) : caption;
  const labels = ofMaps + (kernelHeight ? KERNEL_LABELS : 0);
  const cellHeight = Math.max(kernelTop + kernelHeight + FILM_MARGIN, labels);
  const left = FILM_GUTTER + (request.hasInput && request.isOneInput ? least : 0);
  const across = request.windowWidth - left - FILM_MARGIN;
  const places = Math.floor(across / least);
  // The window shows whole columns.
  const seen = Math.max(1, Math.min(places, fixed || places));
  const spread =
    fixed > seen
      ? Math.ceil((across + FILM_MARGIN) / seen)
      : Math.floor(Math.min(across / seen, SPREAD * least));
  const cellWidth = fixed ? Math.max(least, spread) : least;
  const most = fixed || (request.wraps ? Math.max(1, Math.min(places, count)) : count);
  const bands = Math.max(1, Math.ceil(count / most));
  const columns = fixed || Math.ceil(Math.max(1, count) / bands); // no band has only a few
  const bandHeight = top + rows * cellHeight + FILM_MARGIN;
  const over = Math.max(0, bands * bandHeight - request.windowHeight);
  // The last bands can be scrolled to without a part of one above them.
  const isSnapped = bands > 1 && bandHeight <= request.windowHeight;
  const cut = isSnapped ? Math.ceil(over / bandHeight) * bandHeight - over : 0;
  return {
    ...{ tileWidth, tileHeight, factor, factorDown, side },
    ...{ count: bands * rows * columns, parts: 1, columns, lines: bands * rows, rows: false },
    ...{ cellWidth, cellHeight, perBand: rows, bandHeight, steps: count, bands },
    ...{ inputTop, inputHeight, kernelTop, kernelHeight },
    ...{ left, top }, // the labels, and an input of all steps, do not scroll
    width:
      columns > seen
        ? (columns - seen) * cellWidth + request.windowWidth + SCROLL_BAR
        : left + columns * cellWidth + FILM_MARGIN,
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
