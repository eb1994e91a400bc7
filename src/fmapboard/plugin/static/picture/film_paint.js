// @ts-check
/** Paints the visible part of a film strip, for the screen and for saved files. */

import { faultAt, isBeyond, kernelStep, ownRanges, scaleWords } from "../model/film_scale.js";
import { flags, loudest } from "../model/scene.js";
import { labelOf, short, wordOf } from "../model/words.js";
import { BORDER, cutStart, outline, prepare, stateFrame, write } from "./canvas.js";
import { badge } from "./captions.js";
import { kernelAt, kernelPalette } from "./kernel_paint.js";
import { BELOW, CAPTION, HEADING, columnLeft, fitted, visibleColumns } from "./film_layout.js";
import { colours, mapPixels, paintTiles, shrunkRow, tileCanvas } from "./paint.js";
import { drawCrosshair } from "./point.js";
import { css, ramp } from "../server/palettes.js";

/** @import {FilmLayout} from "./film_layout.js" */

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
 * @param {Film} film @param {FilmLayout} of @param {FilmWhere} where
 * @param {import("./canvas.js").Look} look
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
      const ranges = side && (film.locked ?? ownRanges(side, film.how));
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

/** What a band is painted on first. @type {HTMLCanvasElement|null} */
let held = null;

/**
 * Paints a band of a wrapped strip.
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} at index of the band @param {number} top in the canvas, CSS px
 * @param {Pick<FilmWhere, "ratio"|"hovered">} how @param {import("./canvas.js").Look} look
 */
export function paintBand(context, film, of, at, top, { ratio, hovered }, look) {
  held ??= document.createElement("canvas");
  const first = at * of.across;
  const columns = Math.min(of.across, of.count - first);
  const size = { width: of.gutter + columns * of.columnWidth - 1, height: Math.ceil(of.height) };
  const where = { left: first * of.columnWidth, top: 0, ...size, ratio, hovered };
  paintFilm(prepare(held, size.width, size.height, ratio), film, of, where, look);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.drawImage(held, 0, Math.round(top * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}
