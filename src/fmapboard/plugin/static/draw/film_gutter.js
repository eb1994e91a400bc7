// @ts-check
/** Labels and scale bars left of the rows of a film strip. */

import { kernelPalette } from "./film_kernels.js";
import { CAPTION, HEADING } from "./film_layout.js";
import { scaleWords } from "./film_scale.js";
import { short } from "./number_text.js";
import { css, ramp } from "./palettes.js";

/** @typedef {import("./film_layout.js").FilmLayout} FilmLayout */
/** @typedef {import("./film_paint.js").Film} Film */
/** @typedef {import("./film_paint.js").FilmWhere} FilmWhere */
/** @typedef {import("./grid_paint.js").Look & {second: string}} Look */

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
  const write = (/** @type {string} */ text, /** @type {number} */ y, bold = false) => {
    context.font = bold ? look.font.replace("11px", "600 12px") : look.font;
    context.fillStyle = bold ? look.text : look.muted;
    context.fillText(text, left, y, of.gutter - 18);
  };
  if (of.inputHeight) {
    write("input", of.inputTop - where.top + 2, true);
    if (film.unit === "step") {
      write("compared with the", of.inputTop - where.top + 18);
      write("step before it", of.inputTop - where.top + 30);
    }
  }
  film.channels.forEach((channel, row) => {
    const top = of.rowTop + row * of.rowHeight - where.top;
    write(`channel ${channel}`, top, true);
    if (of.tileHeight) scaleBar(context, film, channel, left, top + CAPTION, look, write);
    if (!of.kernelHeight) return;
    const y = top + Math.max(of.kernelTop, of.tileHeight ? CAPTION + 52 : CAPTION);
    write("its kernel", y, true);
    const peak = short(film.kernelPeak, 2);
    const isRgb = kernelPalette(film) === "rgb";
    if (!isRgb) drawRamp(context, ramp("signed", RAMP), left, y + 16);
    const scale = film.kernelPeak ? `−${peak} … ${peak}, locked` : `each ${film.unit} its own ±max`;
    write(scale, y + (isRgb ? 15 : 28));
    if (isRgb) write("per colour; grey is 0", y + 27);
    if (film.kernelsBeyond) write("(no large values)", y + (isRgb ? 39 : 40));
  });
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.gutter - 4, HEADING - 2);
  write(film.unit, 4);
}

/**
 * @param {CanvasRenderingContext2D} context @param {import("./palettes.js").Rgb[]} colours
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
 * @param {(text: string, y: number) => void} write
 */
function scaleBar(context, film, channel, left, top, look, write) {
  drawRamp(context, ramp(look.palette, RAMP), left, top + 1);
  scaleWords(film, channel).forEach((text, line) => write(text, top + 13 + 12 * line));
}
