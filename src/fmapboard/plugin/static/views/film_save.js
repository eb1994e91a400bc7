// @ts-check
/** Saves a film strip as PNG: all kept steps, wrapped into bands, with title and scales. */

import { layerText, ROLE_NAMES } from "../state/compare.js";
import { columnLeft } from "../draw/film_layout.js";
import { paintFilm } from "../draw/film_paint.js";
import { counted, stepText } from "../draw/number_text.js";
import { theme } from "../draw/theme.js";
import { offer } from "./save.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../draw/film_layout.js").FilmLayout} FilmLayout */

const WIDTH = 2000;
const HEAD = 56;
const MAX_PIXELS = 60e6;
const MAX_SIDE = 16000;

/**
 * Offers the file for download: all strips, below each other.
 * @param {Model} model @param {Strip[]} strips at least one
 * @param {import("../data/film.js").FilmSource} source
 * @param {(strip: Strip, ratio: number, height: number, tile: number) => FilmLayout} layoutFor
 * @param {(text: string) => void} tell progress @returns {Promise<string>} what happened
 */
export async function saveFilm(model, strips, source, layoutFor, tell) {
  const { state } = model;
  for (const strip of strips) await source.load(strip, [strip.current]); // the size of the maps
  let tile = state.tile || 96;
  let parts = strips.map((strip) => partOf(strip, layoutFor(strip, 1, 0, tile)));
  const height = () => parts.reduce((sum, part) => sum + part.height, 0);
  while (tile > 8 && (height() > MAX_SIDE || height() * WIDTH > MAX_PIXELS)) {
    tile /= 2;
    parts = strips.map((strip) => partOf(strip, layoutFor(strip, 1, 0, tile)));
  }
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(Math.max(700, ...parts.map(({ width }) => width)));
  canvas.height = height();
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const look = { ...theme(), palette: state.colours };
  context.fillStyle = look.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  let top = 0;
  for (const part of parts) {
    titles(context, part.strip, canvas.width, top, look);
    const load = (/** @type {number[]} */ band) => source.load(part.strip, band);
    if (!(await bandsBelow(context, part, top + HEAD, look, load, tell))) {
      return "Not saved: the film strip was left";
    }
    top += part.height;
  }
  const [{ layer, channels }] = strips;
  return offer(
    canvas,
    `${runText(state.run)}_${layerText(layer.key)}_film_channel_${channels.join("_")}`,
  );
}

/**
 * A strip in the file, with its titles.
 * @typedef {object} Part
 * @property {Strip} strip
 * @property {FilmLayout} of
 * @property {number[][]} bands columns of each
 * @property {number} width px
 * @property {number} height px
 */

/** @param {Strip} strip @param {FilmLayout} of @returns {Part} */
function partOf(strip, of) {
  const bands = bandsOf(of);
  const width = of.gutter + Math.max(...bands.map((b) => b.length)) * of.columnWidth + 8;
  return { strip, of, bands, width, height: HEAD + Math.ceil(of.height) * bands.length };
}

/**
 * @param {CanvasRenderingContext2D} context @param {Part} part @param {number} top px
 * @param {ReturnType<typeof theme> & {palette: string}} look
 * @param {(band: number[]) => Promise<boolean>} load loads the frames of some columns; false if
 *   the strip was left meanwhile
 * @param {(text: string) => void} tell progress
 */
async function bandsBelow(context, { strip, of, bands }, top, look, load, tell) {
  const inner = document.createElement("canvas");
  inner.height = Math.ceil(of.height);
  const { height } = inner;
  const letter = strip.of.letter ? `${strip.of.letter}: ` : "";
  for (const [at, band] of bands.entries()) {
    tell(`${letter}Loading ${strip.unit} ${band[0] + 1} of ${strip.steps.length}…`);
    if (!(await load(band))) return false;
    inner.width = of.gutter + band.length * of.columnWidth;
    const below = /** @type {CanvasRenderingContext2D} */ (
      inner.getContext("2d", { willReadFrequently: true })
    );
    const left = columnLeft(of, band[0]) - of.gutter;
    const where = { left, top: 0, width: inner.width, height, ratio: 1, hovered: null };
    paintFilm(below, { ...strip, current: -1 }, of, where, look);
    context.drawImage(inner, 0, top + at * height);
  }
  return true;
}

/** Columns of each band, so that a band is about `WIDTH` px wide. @param {FilmLayout} of @returns {number[][]} */
function bandsOf(of) {
  const each = Math.max(1, Math.floor((WIDTH - of.gutter) / of.columnWidth));
  const bands = [];
  for (let first = 0; first < of.count; first += each) {
    bands.push(Array.from({ length: Math.min(each, of.count - first) }, (_, i) => first + i));
  }
  return bands;
}

/**
 * @param {CanvasRenderingContext2D} context @param {Strip} strip
 * @param {number} width px @param {number} top px
 * @param {{text: string, muted: string, font: string}} look
 */
function titles(context, strip, width, top, look) {
  const { letter, run, sample } = strip.of;
  context.fillStyle = look.text;
  context.font = look.font.replace("11px", "600 14px");
  const [first, last] = [strip.steps[0], strip.steps[strip.steps.length - 1]];
  context.fillText(
    `${letter ? `${letter} · ` : ""}${runText(run)} · ${layerText(strip.layer.key)} · channel ${strip.channels.join(", ")}`,
    10,
    top + 22,
    width - 20,
  );
  context.font = look.font;
  context.fillStyle = look.muted;
  const scale = strip.locked
    ? `one scale per ${strip.how.scale === "layer" ? "layer" : "channel"}, locked over the ${(strip.history?.steps.length ?? 0) > strip.steps.length ? "logged" : "kept"} ${strip.unit}s`
    : `each ${strip.unit} has its own scale: colours do not compare between ${strip.unit}s`;
  context.fillText(
    `${ROLE_NAMES[strip.role]} of sample ${sample} at ${counted(strip.steps.length, `kept ${strip.unit}`)}, ` +
      `${stepText(first)} to ${stepText(last)} · ${scale}`,
    10,
    top + 42,
    width - 20,
  );
}
