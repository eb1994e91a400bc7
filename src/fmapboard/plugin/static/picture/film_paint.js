// @ts-check
/** Paints the visible part of a film strip, for the screen and for saved files. */

import { ownRanges } from "../model/film_scale.js";
import { captions, crosshairs, gutter, heading } from "./film_captions.js";
import { kernelAt } from "./film_kernels.js";
import { columnLeft, fitted, visibleColumns } from "./film_layout.js";
import { framePixels, lay, shrunkRow, tileCanvas } from "./paint.js";

/** @typedef {import("../model/film.js").Frame} Frame */
/** @typedef {import("../model/film.js").InputFrame} InputFrame */
/** @typedef {import("./film_layout.js").FilmLayout} FilmLayout */
/** @typedef {import("./grid_paint.js").Look & {second: string}} Look */
/** @typedef {import("../model/value_scale.js").Ranges} Ranges */

/**
 * What a film strip shows; frames are undefined until they have been loaded.
 * @typedef {object} Film
 * @property {import("../server/answers.js").Layer} layer
 * @property {string} role
 * @property {number[]} steps
 * @property {import("../model/words.js").Words} words names of the steps
 * @property {import("../model/words.js").Unit} unit what each step is
 * @property {number} current index of the step of the slider
 * @property {number[]} channels
 * @property {import("../model/scene.js").History|null} history
 * @property {boolean} isLocked
 * @property {Ranges|null} locked the scale of all steps, null if each step has its own
 * @property {number} leftOut steps with large values, which the locked scale leaves out
 * @property {Map<number, number>} beyond further steps that it leaves out, by channel
 * @property {import("../model/film_scale.js").InFilm} inFilm how many of these the film shows
 * @property {string} sharing letters of the strips with this scale, "" for one alone
 * @property {import("../model/film_scale.js").ScaleChoice} how
 * @property {number} kernelPeak of all steps; 0 if each step has its own
 * @property {boolean} kernelsBeyond it leaves kernels out, of steps with large values
 * @property {import("../model/state.js").Point|null} point
 * @property {(i: number) => Frame|undefined} frame
 * @property {(i: number) => Error|undefined} error
 * @property {(step: number) => Frame|undefined} kernelFrame
 * @property {(i: number) => InputFrame|null|undefined} input null if none is stored at this step
 * @property {(i: number) => "same"|"different"|"unknown"|"first"} change of the input since the step before
 */

/**
 * The visible part of the strip, in CSS px.
 * @typedef {object} FilmWhere
 * @property {number} left
 * @property {number} top
 * @property {number} width
 * @property {number} height
 * @property {number} ratio device px per CSS px
 * @property {number|null} hovered index of a step
 */

/**
 * @param {CanvasRenderingContext2D} context of a canvas of `width` × `height` CSS px at `ratio`
 * @param {Film} film @param {FilmLayout} of @param {FilmWhere} where @param {Look} look
 */
export function paintFilm(context, film, of, where, look) {
  const { ratio } = where;
  const width = Math.round(where.width * ratio);
  const height = Math.round(where.height * ratio);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = look.background;
  context.fillRect(0, 0, width, height);
  const [first, last] = visibleColumns(of, where.left, where.width);
  const image = context.getImageData(0, 0, width, height);
  const out = new Uint32Array(image.data.buffer);
  for (let i = first; i < last; i += 1) {
    film.channels.forEach((channel, row) => {
      const tile = tilePixels(film, of, i, channel, look.palette);
      if (!tile) return;
      lay(
        out,
        width,
        height,
        Math.round((columnLeft(of, i) - where.left) * ratio),
        Math.round((of.rowTop + row * of.rowHeight - where.top) * ratio),
        tile.pixels,
        tile.width,
        Math.max(1, of.factor),
        of.factorDown,
      );
    });
  }
  context.putImageData(image, 0, 0);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  for (let i = first; i < last; i += 1) {
    inputPicture(context, film, of, i, where);
    kernelPictures(context, film, of, i, where);
    captions(context, film, of, i, where, look);
    crosshairs(context, film, of, i, where);
  }
  gutter(context, film, of, where, look);
  heading(context, film, of, [first, last], where, look);
}

/**
 * @param {Film} film @param {FilmLayout} of @param {number} i @param {number} channel
 * @param {string} palette
 */
function tilePixels(film, of, i, channel, palette) {
  const side = film.frame(i)?.side;
  if (!side || channel >= side.planes.channels) return null;
  const ranges = film.locked ?? ownRanges(side, film.how);
  const pixels = framePixels(side, channel, ranges, palette);
  const { width, marks } = side.planes;
  if (of.factor >= 1) return { pixels, width };
  const to = Math.max(1, Math.round(width * of.factor));
  const own = marks ? marks.subarray(channel * width, (channel + 1) * width) : null;
  return { pixels: shrunkRow(pixels, to, own), width: to };
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {FilmWhere} where
 */
function inputPicture(context, film, of, i, where) {
  const input = of.inputHeight ? film.input(i) : null;
  if (!input) return;
  const size = fitted(input.picture, Math.max(of.tileWidth, 40), of.inputHeight);
  context.imageSmoothingEnabled = size.width < input.picture.width;
  const [left, top] = [columnLeft(of, i) - where.left, of.inputTop - where.top];
  context.drawImage(input.picture, left, top, size.width, size.height);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Film} film @param {FilmLayout} of
 * @param {number} i @param {FilmWhere} where
 */
function kernelPictures(context, film, of, i, where) {
  if (!of.kernelHeight) return;
  film.channels.forEach((channel, row) => {
    const block = kernelAt(film, i, channel);
    if (typeof block === "string") return;
    const size = fitted(block, of.columnWidth - 8, of.kernelHeight);
    const whole = Math.floor((size.width / block.width) * where.ratio) / where.ratio;
    const factor = whole >= 1 / where.ratio ? whole : size.width / block.width;
    context.imageSmoothingEnabled = factor < 1 / where.ratio;
    context.drawImage(
      tileCanvas(block.pixels, block.width),
      columnLeft(of, i) - where.left,
      of.rowTop + row * of.rowHeight + of.kernelTop - where.top,
      block.width * factor,
      block.height * factor,
    );
  });
}
