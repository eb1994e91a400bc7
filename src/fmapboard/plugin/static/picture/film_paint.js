// @ts-check
/** A film strip: one column per step, one row per channel, the input on top; where all is, and its painter. */

import { faultAt, isBeyond, kernelStep, scaleWords } from "../model/film_scale.js";
import { flags, loudest } from "../model/scene.js";
import { ranges as rangesOf } from "../model/value_scale.js";
import { labelOf, short, wordOf } from "../model/words.js";
import { BORDER, cutStart, outline, prepare, stateFrame, write } from "./canvas.js";
import { badge } from "./captions.js";
import { kernelAt, kernelPalette } from "./kernel_paint.js";
import { colours, mapPixels, paintTiles, shrunkRow, tileCanvas } from "./paint.js";
import { drawCrosshair } from "./point.js";
import { css, ramp } from "../server/palettes.js";

/** @import {Look} from "./canvas.js" */

const GUTTER = 156;
const HEADING = 24;
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
    ...{ count, rows, columnWidth, tileWidth, tileHeight, factorDown, inputTop, inputHeight },
    ...{ rowTop, rowHeight, kernelTop, kernelHeight },
    gutter: GUTTER, // the labels at the left, which do not scroll
    factor, // below 1 the map is shrunk
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

/** The channel at a height, with its part above that; below 0 above the channels. @param {FilmLayout} of @param {number} top */
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

/** Visible columns first, then those beside. @param {number} first @param {number} last + 1 @param {number} count @param {number} ahead */
export function loadingOrder(first, last, count, ahead) {
  const order = [];
  for (let i = first; i < last; i += 1) order.push(i);
  for (let away = 0; away < ahead; away += 1) order.push(last + away, first - 1 - away);
  return order.filter((i) => i >= 0 && i < count);
}

/**
 * What is at a point of the strip; null in the gutter and beyond the last step. `u` and `v` (0…1) are the
 * place in a tile, null beside one. @param {FilmLayout} of @param {number} x @param {number} y CSS px
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

/** Size within a box. @param {{width: number, height: number}} of @param {number} width @param {number} height CSS px */
export function fitted(of, width, height) {
  const factor = Math.min(width / of.width, height / of.height);
  return { width: of.width * factor, height: of.height * factor };
}

// Paints the visible part, for the screen and for saved files.

/** @typedef {import("../model/film.js").Strip} Film what is shown; frames are undefined until they have been loaded */

/**
 * @typedef {{left: number, top: number, width: number, height: number, ratio: number,
 *   hovered: number|null}} FilmWhere the visible part in CSS px, and the step under the pointer
 */

/** Narrower than this, a step is named by its number alone, CSS px. */
const SHORTEST_NAME = 28;
/** Height of a line, and length of a colour bar, CSS px. */
const [LINE, RAMP] = [15, 126];

/** The most severe fault, exact once its frame is there. @param {Film} film @param {number} i @param {number} channel */
export function faultOfFrame(film, i, channel) {
  const frame = film.frame(i);
  const exact = frame ? loudest(flags(frame.maps, film.role, channel)) : null;
  return exact ?? faultAt(film.history, film.role, film.steps[i], channel);
}

/** Why a frame shows no map; "" if it does, or is loading. @param {Film} film @param {number} i @param {number} channel */
export function whyNoFrame(film, i, channel) {
  const error = film.error(i);
  if (error) return `cannot be loaded: ${error.message}`;
  const frame = film.frame(i);
  if (!frame) return "";
  if (frame.side) {
    const { channels } = frame.side.planes;
    return channel < channels ? "" : `only channels 0 to ${channels - 1} are drawn at this step`;
  }
  return frame.maps.missing.includes(film.role)
    ? "TensorBoard no longer keeps this picture"
    : "not logged at this step";
}

/**
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {Film} film @param {FilmLayout} of @param {FilmWhere} where @param {Look} look
 */
export function paintFilm(context, film, of, where, look) {
  const [first, last] = visibleColumns(of, where.left, where.width);
  const bold = look.font.replace("13px", "600 13px");
  const wide = of.columnWidth - 8;
  const leftOf = (/** @type {number} */ i) => columnLeft(of, i) - where.left;
  const topOf = (/** @type {number} */ row) => of.rowTop + row * of.rowHeight - where.top;

  function* tiles() {
    const how = { across: Math.max(1, of.factor), down: of.factorDown };
    for (let i = first; i < last; i += 1) {
      const side = film.frame(i)?.side;
      const ranges = side && (film.locked ?? rangesOf(side.planes.channels, [side], film.how));
      for (const [row, channel] of film.channels.entries()) {
        if (!side || !ranges || channel >= side.planes.channels) continue;
        const range = /** @type {const} */ ([ranges.lo[channel], ranges.hi[channel]]);
        const whole = mapPixels(side, channel, range, colours(look.palette));
        const { width: all, marks } = side.planes;
        const width = of.factor < 1 ? Math.max(1, Math.round(all * of.factor)) : all;
        const own = marks?.subarray(channel * all, (channel + 1) * all) ?? null;
        const pixels = of.factor < 1 ? shrunkRow(whole, width, own) : whole;
        yield { ...how, pixels, width, left: leftOf(i), top: topOf(row) };
      }
    }
  }

  /** @param {string} text @param {number} left @param {number} top @param {number} width CSS px @param {number} lines at most */
  function wrapped(text, left, top, width, lines) {
    let [line, at] = ["", 0];
    for (const word of text.split(" ")) {
      const longer = line ? `${line} ${word}` : word;
      const isFull = line && context.measureText(longer).width > width;
      if (isFull && at + 1 >= lines) {
        line += "…";
        break;
      }
      if (isFull) context.fillText(line, left, top + LINE * at, width);
      if (isFull) at += 1;
      line = isFull ? word : longer;
    }
    context.fillText(line, left, top + LINE * at, width);
  }

  /** The network's input of a step. @param {number} i */
  function input(i) {
    const [found, left, top] = [film.input(i), leftOf(i), of.inputTop - where.top];
    context.fillStyle = look.muted;
    if (found === null) wrapped("not stored", left, top + 2, wide, 3);
    if (!found) return;
    const size = fitted(found.picture, Math.max(of.tileWidth, 40), of.inputHeight);
    context.imageSmoothingEnabled = size.width < found.picture.width;
    context.drawImage(found.picture, left, top, size.width, size.height);
    // Each image differs from the one before.
    if (film.unit === "image" || film.change(i) !== "different") return;
    outline(context, { left, top, ...size }, look.second, 2);
    write(context, "≠", left, top + of.inputHeight + 3, look.second, "left", wide);
  }

  /** @param {number} i @param {number} channel @param {number} top CSS px */
  function kernel(i, channel, top) {
    const [block, left] = [kernelAt(film, i, channel), leftOf(i)];
    context.fillStyle = look.muted;
    if (typeof block === "string") {
      wrapped(block || "loading", left, top + 2, wide, Math.floor(of.kernelHeight / LINE));
      return;
    }
    const size = fitted(block, wide, of.kernelHeight);
    const whole = Math.floor((size.width / block.width) * where.ratio) / where.ratio;
    const factor = whole >= 1 / where.ratio ? whole : size.width / block.width;
    context.imageSmoothingEnabled = factor < 1 / where.ratio;
    const picture = tileCanvas(block.pixels, block.width);
    context.drawImage(picture, left, top, block.width * factor, block.height * factor);
    const from = kernelStep(film.history, film.steps[i], film.steps);
    // Images are shown to the same weights.
    const isOther = film.unit === "step" && from !== null && from !== film.steps[i];
    const text = isOther ? `of ${wordOf(film.words, from)}` : "";
    context.fillText(text, left, top + of.kernelHeight + 2, wide);
  }

  /** What stands at a map, or in its place. @param {number} i @param {number} channel @param {number} top CSS px */
  function map(i, channel, top) {
    const [fault, why] = [faultOfFrame(film, i, channel), whyNoFrame(film, i, channel)];
    const [side, left] = [film.frame(i)?.side, leftOf(i)];
    const base = top + of.tileHeight + BELOW;
    const box = { left, top, width: of.tileWidth, height: of.tileHeight };
    if (!side || why) {
      outline(context, box, look.muted, 1, -0.5);
      context.fillStyle = why ? look.second : look.muted;
      const lines = Math.max(1, Math.floor((of.tileHeight - 6) / LINE));
      wrapped(why || "loading", left + 4, top + 4, of.tileWidth - 8, lines);
    }
    if (fault) {
      stateFrame(context, box, fault);
      badge(context, fault, left, base, wide, look.text, true);
    } else if (side && !why) {
      const far = isBeyond(film, side, channel);
      const range = `${short(side.lo[channel], 2)}…${short(side.hi[channel], 2)}`;
      const texts = far ? ["▲ beyond scale", "▲ beyond"] : [range];
      const text = texts.find((each) => context.measureText(each).width <= wide * 1.2);
      if (text) write(context, text, left, base, far ? look.text : look.muted, "left", wide);
    }
    if (i === film.current) {
      const out = fault ? BORDER : 0;
      outline(context, box, look.accent, out ? 1.5 : 2, out + 0.5);
    }
    if (film.point && side) drawCrosshair(context, box, film.point, side.planes);
  }

  /** @param {string} text @param {number} y CSS px */
  function label(text, y, isBold = false) {
    context.font = isBold ? bold : look.font;
    write(context, text, 10, y, isBold ? look.text : look.muted, "left", of.gutter - 18);
  }

  /** @param {string} palette @param {number} top CSS px */
  function bar(palette, top) {
    ramp(palette, RAMP).forEach((colour, x) => {
      context.fillStyle = css(colour);
      context.fillRect(10 + x, top, 1, 9);
    });
  }

  /** Labels and scale bars left of the rows, over what is scrolled below them. */
  function gutter() {
    context.fillStyle = look.background;
    context.fillRect(0, 0, of.gutter - 4, where.height);
    if (of.inputHeight) label("input", of.inputTop - where.top + 2, true);
    const peak = short(film.kernelPeak, 2);
    film.channels.forEach((channel, row) => {
      const top = topOf(row);
      label(`channel ${channel}`, top, true);
      if (of.tileHeight) {
        bar(look.palette, top + CAPTION + 1);
        scaleWords(film, channel).forEach((text, k) => label(text, top + CAPTION + 14 + LINE * k));
      }
      if (!of.kernelHeight) return;
      const y = top + Math.max(of.kernelTop, of.tileHeight ? CAPTION + 64 : CAPTION);
      label("its kernel", y, true);
      const isRgb = kernelPalette(film) === "rgb";
      if (!isRgb) bar("signed", y + 19);
      const own = `each ${film.unit} its own ±max`;
      label(film.kernelPeak ? `−${peak} … ${peak}, locked` : own, y + (isRgb ? 18 : 32));
      if (isRgb) label("per colour; grey is 0", y + 33);
      if (film.kernelsBeyond) label("(no large values)", y + (isRgb ? 48 : 47));
    });
    context.fillStyle = look.background;
    context.fillRect(0, 0, of.gutter - 4, HEADING - 2);
    label(film.unit, 4);
  }

  /** Steps above the columns, which do not scroll away. */
  function heading() {
    context.fillStyle = look.background;
    context.fillRect(of.gutter - 2, 0, where.width, HEADING - 2);
    context.save();
    context.beginPath();
    context.rect(of.gutter - 2, 0, where.width, HEADING);
    context.clip();
    for (let i = first; i < last; i += 1) {
      const [left, isCurrent, room] = [leftOf(i), i === film.current, of.columnWidth - 4];
      if (isCurrent || i === where.hovered) {
        context.fillStyle = isCurrent ? look.accent : look.muted;
        context.fillRect(left - 2, HEADING - 4, room, 2);
      }
      context.font = isCurrent ? bold : look.font;
      const [number, name] = labelOf(film.words, film.steps[i]);
      const rest = room - context.measureText(`${number} `).width;
      const named = name && rest > SHORTEST_NAME ? ` ${cutStart(context, name, rest)}` : "";
      write(context, number + named, left, 4, isCurrent ? look.accent : look.text, "left", room);
    }
    context.restore();
  }

  paintTiles(context, where, look.background, tiles());
  context.font = look.font;
  context.textBaseline = "top";
  context.textAlign = "left";
  for (let i = first; i < last; i += 1) {
    if (of.inputHeight) input(i);
    film.channels.forEach((channel, row) => {
      if (of.kernelHeight) kernel(i, channel, topOf(row) + of.kernelTop);
      if (of.tileHeight) map(i, channel, topOf(row));
    });
  }
  gutter();
  heading();
}

/** What a band is painted on first. @type {OffscreenCanvas|null} */
let held = null;

/**
 * Paints a band of a wrapped strip. @param {CanvasRenderingContext2D} context @param {Film} film
 * @param {FilmLayout} of @param {number} at index @param {number} top in the canvas, CSS px
 * @param {Pick<FilmWhere, "ratio"|"hovered">} how @param {Look} look
 */
export function paintBand(context, film, of, at, top, { ratio, hovered }, look) {
  held ??= new OffscreenCanvas(1, 1);
  const first = at * of.across;
  const columns = Math.min(of.across, of.count - first);
  const size = { width: of.gutter + columns * of.columnWidth - 1, height: Math.ceil(of.height) };
  const where = { left: first * of.columnWidth, top: 0, ...size, ratio, hovered };
  paintFilm(prepare(held, size.width, size.height, ratio), film, of, where, look);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(held, 0, Math.round(top * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}
