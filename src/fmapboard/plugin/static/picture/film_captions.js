// @ts-check
/** Texts and frames of a film strip: steps, faults, ranges, scales, and what is missing. */

import { faultAt, isBeyond, kernelStep, scaleWords } from "../model/film_scale.js";
import { flags, loudest } from "../model/scene.js";
import { labelOf, short, wordOf } from "../model/words.js";
import { BORDER, cutStart, outline, stateFrame, write } from "./canvas.js";
import { badge } from "./captions.js";
import { kernelAt, kernelPalette } from "./film_kernels.js";
import { BELOW, CAPTION, HEADING, columnLeft, fitted } from "./film_layout.js";
import { drawCrosshair } from "./point.js";
import { css, ramp } from "../server/palettes.js";

/** @import {Rgb} from "../server/palettes.js" */
/** @import {FilmLayout} from "./film_layout.js" */
/** @import {Film, FilmWhere} from "./film_paint.js" */

/** @typedef {import("./grid_paint.js").Look & {second: string}} Look */

/** Narrower than this, a step is named by its number alone, CSS px. */
const SHORTEST_NAME = 28;
/** Height of a line, CSS px. */
const LINE = 15;

/**
 * The most severe fault of a channel at a step, exact once its frame is there.
 * @param {Film} film @param {number} i @param {number} channel
 */
export function faultOfFrame(film, i, channel) {
  const frame = film.frame(i);
  const exact = frame ? loudest(flags(frame.maps, film.role, channel)) : null;
  return exact ?? faultAt(film.history, film.role, film.steps[i], channel);
}

/**
 * Why a frame shows no map, in words; "" if it does, or while it is being loaded.
 * @param {Film} film @param {number} i @param {number} channel
 */
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
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} left
 * @param {number} top @param {number} width CSS px @param {number} lines at most
 */
function wrapped(context, text, left, top, width, lines) {
  let line = "";
  let at = 0;
  for (const word of text.split(" ")) {
    const longer = line ? `${line} ${word}` : word;
    if (line && context.measureText(longer).width > width) {
      if (at + 1 >= lines) {
        line += "…";
        break;
      }
      context.fillText(line, left, top + LINE * at, width);
      at += 1;
      line = word;
    } else line = longer;
  }
  context.fillText(line, left, top + LINE * at, width);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {FilmWhere} where @param {Look} look
 */
export function captions(context, film, of, i, where, look) {
  const left = columnLeft(of, i) - where.left;
  const wide = of.columnWidth - 8;
  context.font = look.font;
  context.textBaseline = "top";
  context.textAlign = "left";
  film.channels.forEach((channel, row) => {
    const top = of.rowTop + row * of.rowHeight - where.top;
    if (of.tileHeight) tileCaption(context, film, of, i, channel, left, top, wide, look);
    if (of.kernelHeight) kernelCaption(context, film, of, i, channel, left, top, wide, look);
    if (i === film.current && of.tileHeight) {
      const out = faultOfFrame(film, i, channel) ? BORDER : 0;
      const box = { left, top, width: of.tileWidth, height: of.tileHeight };
      outline(context, box, look.accent, out ? 1.5 : 2, out + 0.5);
    }
  });
  if (of.inputHeight) inputCaption(context, film, of, i, left, of.inputTop - where.top, wide, look);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {number} channel @param {number} left @param {number} top
 * @param {number} wide CSS px @param {Look} look
 */
function tileCaption(context, film, of, i, channel, left, top, wide, look) {
  const fault = faultOfFrame(film, i, channel);
  const why = whyNoFrame(film, i, channel);
  const side = film.frame(i)?.side;
  const base = top + of.tileHeight + BELOW;
  const box = { left, top, width: of.tileWidth, height: of.tileHeight };
  if (!side || why) {
    outline(context, box, look.muted, 1, -0.5);
    context.fillStyle = why ? look.second : look.muted;
    const lines = Math.max(1, Math.floor((of.tileHeight - 6) / LINE));
    wrapped(context, why || "loading", left + 4, top + 4, of.tileWidth - 8, lines);
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
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {number} channel @param {number} left @param {number} top
 * @param {number} wide CSS px @param {Look} look
 */
function kernelCaption(context, film, of, i, channel, left, top, wide, look) {
  const block = kernelAt(film, i, channel);
  const y = top + of.kernelTop;
  context.fillStyle = look.muted;
  if (typeof block === "string") {
    wrapped(context, block || "loading", left, y + 2, wide, Math.floor(of.kernelHeight / LINE));
    return;
  }
  const from = kernelStep(film.history, film.steps[i], film.steps);
  // Images are shown to the same weights.
  const isOther = film.unit === "step" && from !== null && from !== film.steps[i];
  const text = isOther ? `of ${wordOf(film.words, from)}` : "";
  context.fillText(text, left, y + of.kernelHeight + 2, wide);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {number} left @param {number} top @param {number} wide CSS px
 * @param {Look} look
 */
function inputCaption(context, film, of, i, left, top, wide, look) {
  const input = film.input(i);
  context.fillStyle = look.muted;
  if (input === null) wrapped(context, "not stored", left, top + 2, wide, 3);
  if (!input) return;
  if (film.unit === "image") return; // of which each differs from the one before
  if (film.change(i) !== "different") return;
  const size = fitted(input.picture, Math.max(of.tileWidth, 40), of.inputHeight);
  outline(context, { left, top, ...size }, look.second, 2);
  write(context, "≠", left, top + of.inputHeight + 3, look.second, "left", wide);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {FilmWhere} where
 */
export function crosshairs(context, film, of, i, where) {
  const { point } = film;
  const planes = film.frame(i)?.side?.planes;
  if (!point || !planes || !of.tileHeight) return;
  film.channels.forEach((_, row) => {
    const top = of.rowTop + row * of.rowHeight - where.top;
    const left = columnLeft(of, i) - where.left;
    drawCrosshair(
      context,
      { left, top, width: of.tileWidth, height: of.tileHeight },
      point,
      planes,
    );
  });
}

/**
 * Steps above the columns, which do not scroll away.
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number[]} columns first and last + 1 @param {FilmWhere} where @param {Look} look
 */
export function heading(context, film, of, [first, last], where, look) {
  context.fillStyle = look.background;
  context.fillRect(of.gutter - 2, 0, where.width, HEADING - 2);
  context.textBaseline = "top";
  context.textAlign = "left";
  context.save();
  context.beginPath();
  context.rect(of.gutter - 2, 0, where.width, HEADING);
  context.clip();
  for (let i = first; i < last; i += 1) {
    const left = columnLeft(of, i) - where.left;
    const isCurrent = i === film.current;
    if (isCurrent || i === where.hovered) {
      context.fillStyle = isCurrent ? look.accent : look.muted;
      context.fillRect(left - 2, HEADING - 4, of.columnWidth - 4, 2);
    }
    context.font = isCurrent ? look.font.replace("13px", "600 13px") : look.font;
    const wide = of.columnWidth - 4;
    const [number, name] = labelOf(film.words, film.steps[i]);
    const rest = wide - context.measureText(`${number} `).width;
    const named = name && rest > SHORTEST_NAME ? ` ${cutStart(context, name, rest)}` : "";
    write(context, number + named, left, 4, isCurrent ? look.accent : look.text, "left", wide);
  }
  context.restore();
}

// Labels and scale bars left of the rows of a film strip.

/** Length of a colour bar, CSS px. */
const RAMP = 126;

/**
 * Labels and scale bars left of the rows, over what is scrolled below them.
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {FilmWhere} where @param {Look} look
 */
export function gutter(context, film, of, where, look) {
  const left = 10;
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.gutter - 4, where.height);
  context.textBaseline = "top";
  context.textAlign = "left";
  const say = (/** @type {string} */ text, /** @type {number} */ y, bold = false) => {
    context.font = bold ? look.font.replace("13px", "600 13px") : look.font;
    write(context, text, left, y, bold ? look.text : look.muted, "left", of.gutter - 18);
  };
  if (of.inputHeight) say("input", of.inputTop - where.top + 2, true);
  film.channels.forEach((channel, row) => {
    const top = of.rowTop + row * of.rowHeight - where.top;
    say(`channel ${channel}`, top, true);
    if (of.tileHeight) scaleBar(context, film, channel, left, top + CAPTION, look, say);
    if (!of.kernelHeight) return;
    const y = top + Math.max(of.kernelTop, of.tileHeight ? CAPTION + 64 : CAPTION);
    say("its kernel", y, true);
    const peak = short(film.kernelPeak, 2);
    const isRgb = kernelPalette(film) === "rgb";
    if (!isRgb) drawRamp(context, ramp("signed", RAMP), left, y + 19);
    const scale = film.kernelPeak ? `−${peak} … ${peak}, locked` : `each ${film.unit} its own ±max`;
    say(scale, y + (isRgb ? 18 : 32));
    if (isRgb) say("per colour; grey is 0", y + 33);
    if (film.kernelsBeyond) say("(no large values)", y + (isRgb ? 48 : 47));
  });
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.gutter - 4, HEADING - 2);
  say(film.unit, 4);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Rgb[]} colours
 * @param {number} left @param {number} top CSS px
 */
function drawRamp(context, colours, left, top) {
  colours.forEach((colour, x) => {
    context.fillStyle = css(colour);
    context.fillRect(left + x, top, 1, 9);
  });
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {number} channel
 * @param {number} left @param {number} top CSS px @param {Look} look
 * @param {(text: string, y: number) => void} say
 */
function scaleBar(context, film, channel, left, top, look, say) {
  drawRamp(context, ramp(look.palette, RAMP), left, top + 1);
  scaleWords(film, channel).forEach((text, line) => say(text, top + 14 + LINE * line));
}
