// @ts-check
/** What a film strip shows: inputs, maps and kernels of each step, and the scales at the left. */

import { faultAt, isBeyond, kernelStep, scaleWords } from "../model/film_scale.js";
import { mapsOf } from "../model/scene.js";
import { inWordsOf, labelOf, short, tileText } from "../model/words.js";
import { once } from "../server/cache.js";
import { pictureOf } from "../server/decode.js";
import { kernelsOf } from "../server/kernels.js";
import { MARK, badMark, css, ramp } from "../server/palettes.js";
import { cutStart, onPage } from "./canvas.js";
import { faultOf, rangeText } from "./captions.js";
import { FILM_CAPTION, FILM_GUTTER, FILM_HEADING, GAP, visibleSteps } from "./layouts.js";
import {
  BELOW,
  LINE,
  badge,
  captionSize,
  cellLines,
  drawTile,
  label,
  longest,
  markTile,
  paint,
  regionsOf,
  wrapped,
} from "./painter.js";
import {
  curveTile,
  isCurve,
  isNanPicture,
  kernelPixels,
  pixelsOf,
  tileCanvas,
  wholeMark,
} from "./pixels.js";

/** @import {Side, Strip} from "../model/model.js" */
/** @import {FaultName, Kernels} from "../server/server.js" */
/** @import {Box, FilmLayout, Fixed, Look, Tile, Where} from "./picture.js" */

/** Narrower than this, a step is named by its number alone, CSS px. */
const SHORTEST_NAME = 28;
/** Length of a colour bar, CSS px. */
const RAMP = 126;

/**
 * The most severe fault, exact once its frame is there.
 * @param {Strip} film @param {number} i @param {number} channel
 */
export function faultOfFrame(film, i, channel) {
  const exact = faultOf(film, mapsOf(i), channel);
  return exact ?? faultAt(film.history, film.role, film.steps[i], channel);
}

/**
 * Why a frame shows no map; "" if it does, or is loading.
 * @param {Strip} film @param {number} i @param {number} channel
 */
export function whyNoFrame({ columns, layer }, i, channel) {
  const { side, why } = columns[i];
  const last = (side?.planes.channels ?? Infinity) - 1;
  return channel > last
    ? inWordsOf(`only channels 0 to ${last} are drawn at this step`, layer)
    : why;
}

/**
 * What is below a frame without a fault.
 * @param {Strip} film @param {number} i @param {number} channel
 */
function captionOf(film, i, channel) {
  const isFar = isBeyond(film, i, channel);
  return { text: isFar ? "▲ beyond" : rangeText(film, mapsOf(i), channel), isFar };
}

/** The longest captions of a strip. */
const longestOf = once((/** @type {Strip} */ film) =>
  longest(
    film.columns.flatMap(({ side }, i) =>
      film.order
        .filter((channel) => side && !faultOfFrame(film, i, channel))
        .map((channel) => captionOf(film, i, channel).text),
    ),
  ),
);

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {Strip} film @param {FilmLayout} of
 * @param {Where} where `hovered` is the index of a step @param {Look} look
 */
export function paintFilm(context, film, of, where, look) {
  context.font = look.font;
  const { left: scrolled = 0 } = where;
  const steps = visibleSteps(of, where);
  const wide = of.cellWidth - GAP;
  const isWrapped = of.bands > 1;
  const bandTop = (/** @type {number} */ i) =>
    Math.floor(i / of.columns) * of.bandHeight - where.top;
  const leftOf = (/** @type {number} */ i) => of.left + (i % of.columns) * of.cellWidth - scrolled;
  const rowTop = (/** @type {number} */ row) => of.top + row * of.cellHeight;

  /** In place of what is being loaded. @param {Box} box */
  const awaited = (box) => [{ box, colour: look.line }];

  /** The network's input of a step. @param {number} i @returns {Tile[]} */
  function input(i) {
    const { input: found } = film.columns[i];
    const place = { left: leftOf(i), top: bandTop(i) + of.inputTop };
    const room = { ...place, width: wide, height: 3 * LINE };
    if (found === null) {
      const texts = wrapped(context, "not stored", room, look.muted);
      return [{ box: room, texts }];
    }
    const space = { ...place, width: of.tileWidth, height: of.inputHeight };
    return [found ? inputTile(found.picture, space, look) : { box: room, marks: awaited(space) }];
  }

  /** @param {number} i @param {number} row @returns {Tile} */
  function kernel(i, row) {
    const place = { left: leftOf(i), top: bandTop(i) + rowTop(row) + of.kernelTop };
    const room = { ...place, width: of.tileWidth, height: of.kernelHeight };
    const { history, steps: kept } = film;
    const step = kept[i];
    const from = kernelStep(history, step, kept);
    const isKnown = from !== null && from === kernelStep(history, step, history?.steps ?? []);
    const isSame = film.unit === "image" || history?.unchanged?.includes(step);
    const block = kernelAt(film, kept.indexOf(from ?? step), film.order[row]);
    const isMarked = isSame && typeof block !== "string" && block.mark;
    if (from !== step && !isMarked) {
      const at = { x: room.left + room.width / 2, y: room.top + (room.height - LINE) / 2 };
      const text = isKnown && isSame ? "≈ same" : "not kept";
      const align = /** @type {const} */ ("center");
      return { box: room, texts: [{ text, ...at, align, colour: look.muted, width: wide }] };
    }
    if (typeof block === "string") {
      return block
        ? { box: room, texts: wrapped(context, block, room, look.muted) }
        : { box: room, marks: awaited(room) };
    }
    const { width, pixels, mark, signal } = block;
    if (signal) return curveOf(signal.of, signal.plane, [-signal.peak, signal.peak], room);
    const box = isCurve(film.a.planes) ? room : { ...room, ...fitted(block, room) };
    if (mark) return markTile(box, mark, NaN, look);
    const isSmooth = box.width * where.ratio < width;
    return { box, image: tileCanvas(pixels, width), isSmooth };
  }

  /**
   * A signal as a curve. @param {Side} side @param {number} plane
   * @param {readonly [number, number]} range @param {Box} box
   */
  function curveOf({ planes: { width, levels, marks }, lo, hi }, plane, range, box) {
    const from = plane * width;
    const valueOf = (/** @type {number} */ at) =>
      lo[plane] + ((hi[plane] - lo[plane]) * levels[from + at]) / 255;
    const markAt = (/** @type {number} */ at) => badMark(marks, from + at);
    return curveTile(width, valueOf, markAt, range, box, where.ratio, look);
  }

  /**
   * A map, and what is below it or in its place.
   * @param {number} i @param {number} row
   * @returns {Tile}
   */
  function map(i, row) {
    const channel = film.order[row];
    const [fault, why] = [faultOfFrame(film, i, channel), whyNoFrame(film, i, channel)];
    const { side } = film.columns[i];
    const size = { width: of.tileWidth, height: of.tileHeight };
    const box = { left: leftOf(i), top: bandTop(i) + rowTop(row), ...size };
    const isCurrent = i === film.current;
    const lines = cellLines({ isSelected: isCurrent }, look, box);
    const under = {
      left: box.left,
      top: box.top + box.height + BELOW,
      width: Math.max(of.tileWidth, 40),
    };
    if (!side || why) {
      const within = { ...box, left: box.left + 4, top: box.top + 4, width: box.width - 8 };
      const room = { ...within, height: box.height - 6 };
      const texts = why ? wrapped(context, why, room, look.second) : [];
      const edge = { colour: look.muted, thick: 1, away: -0.5 };
      const said = fault ? badge(context, fault, under, look, texts, true) : { texts };
      const marks = [...(why ? [] : awaited(box)), ...("marks" in said ? said.marks : [])];
      return { box, ...said, marks, lines: why ? [edge, ...lines] : lines };
    }
    const { mark, ...picture } = pixelsOf(film, mapsOf(i), channel, look.palette);
    const one = mark ? markTile(box, mark, NaN, look) : null;
    if (one?.texts?.length) return { ...one, lines, point: film.point };
    const { lo, hi } = film.columnRanges[i];
    const drawn = isCurve(side.planes)
      ? curveOf(side, channel, [lo[channel], hi[channel]], box)
      : of.factor < 1
        ? { image: tileCanvas(picture.pixels, picture.width), isSmooth: true }
        : { across: of.factor, down: of.factorDown, ...picture };
    /** @type {Tile} */
    const tile = { box, point: film.point, map: side.planes, ...(one ?? drawn) };
    tile.lines = [...(tile.lines ?? []), ...lines];
    if (fault) return { ...tile, ...badge(context, fault, under, look, [], true) };
    const { text, isFar } = captionOf(film, i, channel);
    if (!isShown) return tile;
    const place = { x: box.left + of.tileWidth / 2, y: under.top, width: captioned, isSmall };
    const align = /** @type {const} */ ("center");
    return { ...tile, texts: [{ text, align, ...place, colour: isFar ? look.text : look.muted }] };
  }
  // Captions are between the frames' middles, and do not touch.
  const captioned = Math.min(wide, of.tileWidth + GAP / 2);
  const { isShown, isSmall } = captionSize(context, longestOf(film), captioned);

  const tiles = steps.flatMap((i) => [
    ...(of.inputHeight ? input(i) : []),
    ...film.order.flatMap((_, row) => [
      ...(of.kernelHeight ? [kernel(i, row)] : []),
      ...(of.tileHeight ? [map(i, row)] : []),
    ]),
  ]);
  // One band scrolls below its labels and its heading; several scroll with them.
  const bands = [...new Set(steps.map((i) => Math.floor(i / of.columns)))];
  const fixed = (isWrapped ? bands : [0]).flatMap((band) => {
    const top = isWrapped ? band * of.bandHeight - where.top : 0;
    const own = steps.filter((i) => Math.floor(i / of.columns) === band);
    const height = isWrapped ? of.bandHeight : where.height;
    const beside = { left: 0, top, width: of.left - 4, height };
    const above = {
      left: of.left - 2,
      top,
      width: where.width - of.left + 2,
      height: FILM_HEADING - 2,
    };
    const corner = { ...beside, height: FILM_HEADING - 2 };
    // The first band that is in sight from its top has all labels, the others only what they need.
    const isFull = band === (bands.find((each) => each * of.bandHeight >= where.top) ?? bands[0]);
    const up = isWrapped ? top : -where.top;
    const names = (/** @type {number} */ y) => {
      text(context, film.unit, y, look);
      const place = { x: FILM_GUTTER, y, colour: look.text };
      if (of.left > FILM_GUTTER) label(context, { text: "input", ...place, isBold: true }, look);
    };
    /** @type {Fixed[]} */
    return [
      { box: beside, draw: () => gutter(context, film, of, up, look, isFull) },
      { box: corner, draw: () => isFull && names(top + 4) },
      { box: above, draw: () => heading(context, film, of, own, leftOf, top, where, look) },
    ];
  });
  // A cell per channel of a step, band by band.
  const cells = steps.flatMap((i) =>
    film.order.map((_, row) => {
      const [band, column] = [Math.floor(i / of.columns), i % of.columns];
      return (band * of.perBand + row) * of.columns + column;
    }),
  );
  const placeOf = (/** @type {number} */ cell) => {
    const [line, column] = [Math.floor(cell / of.columns), cell % of.columns];
    const [band, row] = [Math.floor(line / of.perBand), line % of.perBand];
    return { i: band * of.columns + column, row };
  };
  /** @type {Map<number, FaultName|null>} */
  const states = new Map();
  const stateOf = (/** @type {number} */ cell) => {
    if (!states.has(cell)) {
      const { i, row } = placeOf(cell);
      const fault = i < of.steps ? faultOfFrame(film, i, film.order[row]) : null;
      states.set(cell, fault?.kind ?? null);
    }
    return states.get(cell) ?? null;
  };
  const regions = regionsOf({
    ...{ cells: of.tileHeight ? cells : [], columns: of.columns, count: of.count, stateOf },
    boxOf(cell) {
      const { i, row } = placeOf(cell);
      const [left, top] = [leftOf(i) - GAP / 2, bandTop(i) + rowTop(row) - GAP / 2];
      const isLast = (cell + 1) % of.columns === 0;
      const goesOn = !isLast && stateOf(cell + 1) === stateOf(cell);
      const width = goesOn ? of.cellWidth : of.tileWidth + GAP;
      return { left, top, width, height: of.tileHeight + GAP / 2 + FILM_CAPTION };
    },
  });
  paint(context, where, look, tiles, { fixed, regions });
}

/**
 * Size within a box. @param {{width: number, height: number}} of
 * @param {{width: number, height: number}} space CSS px
 */
function fitted(of, space) {
  const factor = Math.min(space.width / of.width, space.height / of.height);
  return { width: of.width * factor, height: of.height * factor };
}

/** @param {OffscreenCanvas} picture @param {Box} space @param {Look} look @returns {Tile} */
function inputTile(picture, space, look) {
  const box = { ...space, ...fitted(picture, space) };
  return isNanPicture(picture)
    ? markTile(box, MARK.NAN, NaN, look)
    : { box, image: picture, isSmooth: box.width < picture.width };
}

/**
 * A label at the left. @param {CanvasRenderingContext2D} context @param {string} text
 * @param {number} y CSS px @param {Look} look
 */
function text(context, text, y, look, isBold = false) {
  const colour = isBold ? look.text : look.muted;
  label(context, { text, x: 10, y, colour, width: FILM_GUTTER - 18, isBold }, look);
}

/**
 * Labels and scale bars left of the rows. @param {CanvasRenderingContext2D} context
 * @param {Strip} film @param {FilmLayout} of @param {number} up where the band begins
 * @param {Look} look @param {boolean} isFull with scales; otherwise names where lines differ
 */
function gutter(context, film, of, up, look, isFull) {
  if (!isFull && film.order.length === 1 && !of.inputHeight && !of.kernelHeight) return;
  const write = (/** @type {string} */ said, /** @type {number} */ y, isBold = false) =>
    text(context, said, y, look, isBold);
  const bar = (/** @type {string} */ palette, /** @type {number} */ top) =>
    ramp(onPage(palette), RAMP).forEach((colour, x) => {
      context.fillStyle = css(colour);
      context.fillRect(10 + x, top, 1, 9);
    });
  if (of.inputHeight) write("input", up + of.inputTop, true);
  const { input } = film.columns.find((each) => each.input) ?? {};
  if (input && isFull && of.left > FILM_GUTTER) {
    const height = of.tileHeight || of.kernelHeight;
    const space = { left: FILM_GUTTER, top: up + of.top, width: of.tileWidth, height };
    drawTile(context, inputTile(input.picture, space, look), look);
  }
  const peak = short(film.kernelPeak, 2);
  film.order.forEach((channel, row) => {
    const top = up + of.top + row * of.cellHeight;
    write(tileText(film.layer, channel), top, true);
    if (of.tileHeight && isFull) {
      const isBar = !isCurve(film.a.planes);
      if (isBar) bar(look.palette, top + FILM_CAPTION + 1);
      scaleWords(film, channel).forEach((said, k) =>
        write(said, top + (isBar ? 35 : 18) + LINE * k),
      );
    }
    if (!of.kernelHeight) return;
    const y = top + of.kernelTop;
    write("kernel", y, true);
    if (!isFull) return;
    const isRgb = kernelPalette(film) === "rgb";
    const at = film.columns.findIndex(({ kernels }) => kernels);
    const known = at < 0 ? "" : kernelAt(film, at, channel);
    const isBar = !isRgb && (typeof known === "string" || !known.signal);
    if (isBar) bar("signed", y + FILM_CAPTION + 1);
    const said = [film.kernelPeak ? `−${peak} … ${peak}` : `each ${film.unit} its own`];
    if (isRgb) said.push("per colour; grey is 0");
    if (film.kernelsBeyond) said.push(`without large ${film.unit}s`);
    said.forEach((line, k) => write(line, y + (isBar ? 35 : 18) + LINE * k));
  });
}

/**
 * Names of steps above the columns.
 * @param {CanvasRenderingContext2D} context @param {Strip} film @param {FilmLayout} of
 * @param {number[]} steps @param {(i: number) => number} leftOf @param {number} top CSS px
 * @param {Where} where @param {Look} look
 */
function heading(context, film, of, steps, leftOf, top, where, look) {
  const width = of.cellWidth - 4;
  const isMixed = film.unit !== "image" && film.columns.some(({ change }) => change === "same");
  for (const i of steps) {
    const [left, isCurrent] = [leftOf(i), i === film.current];
    if (isCurrent || i === where.hovered) {
      context.fillStyle = isCurrent ? look.accent : look.muted;
      context.fillRect(left - 2, top + FILM_HEADING - 4, of.tileWidth + 4, 2);
    }
    const [number, name] = labelOf(film.words, film.steps[i]);
    const mark = isMixed && film.columns[i].change === "different" ? " ≠" : "";
    const said = { x: left, y: top + 4, colour: isCurrent ? look.accent : look.text, width };
    label(context, { text: "", ...said, isBold: isCurrent }, look); // to measure in its font
    const rest = width - context.measureText(`${number} `).width;
    const named = name && rest > SHORTEST_NAME ? ` ${cutStart(context, name, rest)}` : "";
    label(context, { text: number + mark + named, ...said, isBold: isCurrent }, look);
  }
}

/**
 * The kernel of a channel at a step, or why there is none.
 * @param {Strip} film @param {number} i @param {number} channel
 */
export function kernelAt(film, i, channel) {
  const { maps, kernels } = film.columns[i];
  if (!maps) return "";
  if (!pictureOf(maps, "kernels")) return "not kept";
  if (maps.missing.includes("kernels")) return `this kernel ${film.lost}`;
  if (!kernels) return "the picture does not fit its record";
  return kernelBlock(kernels, channel, film.kernelPeak || kernels.peak);
}

/** Palette of the kernels that have been loaded; "" before. @param {Strip} film */
export function kernelPalette({ columns }) {
  const known = columns.flatMap(({ maps }) => (maps && pictureOf(maps, "kernels")) ?? []);
  return known[0]?.palette ?? "";
}

/**
 * The kernel of a channel, drawn between -peak and peak, and the mark that all its weights have, or
 * 0, and itself if it is one row of weights; otherwise why it cannot be, in words.
 * @param {Kernels} of @param {number} channel output channel @param {number} peak of the scale
 */
export function kernelBlock(of, channel, peak) {
  if (of.rowOf !== null) return "the weight has no kernel per channel";
  const { planes: tiles } = kernelsOf(of, channel);
  const isApart = of.transposed && of.groups > 1;
  if (!tiles.length) {
    const each = isApart ? " of each group" : "";
    return `only the kernels of channels 0 to ${of.outputs - 1}${each} are stored`;
  }
  const isColour = of.rgb && !isApart;
  const { depth, height, width } = of;
  const shown = isColour ? tiles.slice(0, 1) : tiles;
  const isLine = isCurve(of); // kernels of a sequence are below each other
  const perRow = isLine ? 1 : Math.ceil(Math.sqrt(shown.length));
  const rows = Math.ceil(shown.length / perRow);
  // A line between depth slices, and two between kernels that have some.
  const gap = height === 1 ? 0 : Math.min(depth, 2);
  const spread = width + depth - 1;
  const each = width / depth;
  const [wide, high] = [perRow * (spread + gap) - gap, rows * (height + gap) - gap];
  const pixels = new Uint32Array(wide * high);
  shown.forEach((plane, i) => {
    const kernel = kernelPixels(of, plane, peak, isColour);
    const start = Math.floor(i / perRow) * (height + gap) * wide + (i % perRow) * (spread + gap);
    kernel.forEach((colour, at) => {
      const [y, x] = [Math.floor(at / width), at % width];
      pixels[start + y * wide + x + Math.floor(x / each)] = colour;
    });
  });
  const size = height * width;
  const marks = shown.map((plane) => wholeMark(of.planes.marks, plane * size, size));
  const mark = marks.every((each) => each === marks[0]) ? marks[0] : 0;
  const signal = isLine && shown.length === 1 ? { of, plane: shown[0], peak } : null;
  return { pixels, width: wide, height: high, mark, signal };
}
