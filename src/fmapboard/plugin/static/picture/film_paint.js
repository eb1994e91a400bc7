// @ts-check
/** Paints the visible part of a film strip, for the screen and for saved files. */

import { ownRanges } from "../model/film_scale.js";
import { captions, crosshairs, gutter, heading } from "./film_captions.js";
import { kernelAt } from "./film_kernels.js";
import { columnLeft, fitted, visibleColumns } from "./film_layout.js";
import { colours, mapPixels, paintTiles, shrunkRow, tileCanvas } from "./paint.js";

/** @import {Frame, InputFrame} from "../model/film.js" */
/** @import {InFilm, ScaleChoice} from "../model/film_scale.js" */
/** @import {History} from "../model/scene.js" */
/** @import {Point} from "../model/state.js" */
/** @import {Ranges} from "../model/value_scale.js" */
/** @import {Unit, Words} from "../model/words.js" */
/** @import {Layer} from "../server/answers.js" */
/** @import {FilmLayout} from "./film_layout.js" */

/** @typedef {import("./grid_paint.js").Look & {second: string}} Look */

/**
 * What a film strip shows; frames are undefined until they have been loaded.
 * @typedef {object} Film
 * @property {Layer} layer
 * @property {string} role
 * @property {number[]} steps
 * @property {Words} words names of the steps
 * @property {Unit} unit what each step is
 * @property {number} current index of the step of the slider
 * @property {number[]} channels
 * @property {History|null} history
 * @property {boolean} isLocked
 * @property {Ranges|null} locked the scale of all steps, null if each step has its own
 * @property {number} leftOut steps with large values, which the locked scale leaves out
 * @property {Map<number, number>} beyond further steps that it leaves out, by channel
 * @property {InFilm} inFilm how many of these the film shows
 * @property {string} sharing letters of the strips with this scale, "" for one alone
 * @property {ScaleChoice} how
 * @property {number} kernelPeak of all steps; 0 if each step has its own
 * @property {boolean} kernelsBeyond it leaves kernels out, of steps with large values
 * @property {Point|null} point
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
  const [first, last] = visibleColumns(of, where.left, where.width);
  paintTiles(
    context,
    where,
    look.background,
    tilesOf(film, of, [first, last], where, look.palette),
  );
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
 * @param {Film} film @param {FilmLayout} of @param {number[]} columns first and last + 1
 * @param {FilmWhere} where @param {string} palette
 */
function* tilesOf(film, of, [first, last], where, palette) {
  const how = { across: Math.max(1, of.factor), down: of.factorDown };
  for (let i = first; i < last; i += 1) {
    const side = film.frame(i)?.side;
    const ranges = side && (film.locked ?? ownRanges(side, film.how));
    for (const [row, channel] of film.channels.entries()) {
      if (!side || !ranges || channel >= side.planes.channels) continue;
      const range = /** @type {const} */ ([ranges.lo[channel], ranges.hi[channel]]);
      const whole = mapPixels(side, channel, range, colours(palette));
      const { width: wide, marks } = side.planes;
      const width = of.factor < 1 ? Math.max(1, Math.round(wide * of.factor)) : wide;
      const own = marks?.subarray(channel * wide, (channel + 1) * wide) ?? null;
      const pixels = of.factor < 1 ? shrunkRow(whole, width, own) : whole;
      const top = of.rowTop + row * of.rowHeight - where.top;
      yield { ...how, pixels, width, left: columnLeft(of, i) - where.left, top };
    }
  }
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
