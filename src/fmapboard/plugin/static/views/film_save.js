// @ts-check
/** Saves a film strip as PNG: all kept steps, wrapped into bands, with title and scales. */

import { layerText, ROLE_NAMES } from "../state/compare.js";
import { columnLeft } from "../draw/film_layout.js";
import { paintFilm } from "../draw/film_paint.js";
import { stepText } from "../draw/number_text.js";
import { theme } from "../draw/theme.js";
import { h } from "./dom.js";

/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../draw/film_layout.js").FilmLayout} FilmLayout */

const WIDTH = 2000;
const HEAD = 56;
const MAX_PIXELS = 60e6;
const MAX_SIDE = 16000;

/**
 * Offers the file for download.
 * @param {Model} model @param {Strip} strip
 * @param {(columns: number[]) => Promise<boolean>} load loads the frames of some columns; false if
 *   the strip was left meanwhile
 * @param {(strip: Strip, ratio: number, height: number, tile: number) => FilmLayout} layoutFor
 * @param {(text: string) => void} tell progress @returns {Promise<string>} what happened
 */
export async function saveFilm(model, strip, load, layoutFor, tell) {
  const { state } = model;
  const count = strip.steps.length;
  await load([strip.current]); // so that the size of the maps is known
  let tile = state.tile || 96;
  let of = layoutFor(strip, 1, 0, tile);
  let bands = bandsOf(of);
  while (
    tile > 8 &&
    (bands.length * of.height > MAX_SIDE || bands.length * of.height * WIDTH > MAX_PIXELS)
  ) {
    of = layoutFor(strip, 1, 0, (tile /= 2));
    bands = bandsOf(of);
  }
  const wide = Math.max(
    700,
    of.gutter + Math.max(...bands.map((b) => b.length)) * of.columnWidth + 8,
  );
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(wide);
  canvas.height = HEAD + Math.ceil(of.height) * bands.length;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const look = { ...theme(), palette: state.colours };
  context.fillStyle = look.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  titles(context, model, strip, canvas.width, look);
  const inner = document.createElement("canvas");
  inner.height = Math.ceil(of.height);
  for (const [at, band] of bands.entries()) {
    tell(`Loading step ${band[0] + 1} of ${count}…`);
    if (!(await load(band))) return "Not saved: the film strip was left";
    inner.width = of.gutter + band.length * of.columnWidth;
    const below = /** @type {CanvasRenderingContext2D} */ (
      inner.getContext("2d", { willReadFrequently: true })
    );
    const left = columnLeft(of, band[0]) - of.gutter;
    const where = {
      left,
      top: 0,
      width: inner.width,
      height: inner.height,
      ratio: 1,
      hovered: null,
    };
    paintFilm(below, { ...strip, current: -1 }, of, where, look);
    context.drawImage(inner, 0, HEAD + at * inner.height);
  }
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) return "The picture is too large to save";
  const url = URL.createObjectURL(/** @type {Blob} */ (blob));
  const name = `${state.run}_${layerText(strip.layer.key)}_film_channel_${strip.channels.join("_")}`;
  h("a", { href: url, download: `${name.replace(/[^\w.-]+/g, "_")}.png` }).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 60000);
  return "Saved";
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
 * @param {CanvasRenderingContext2D} context @param {Model} model @param {Strip} strip
 * @param {number} width px @param {{text: string, muted: string, font: string}} look
 */
function titles(context, { state }, strip, width, look) {
  context.fillStyle = look.text;
  context.font = look.font.replace("11px", "600 14px");
  const [first, last] = [strip.steps[0], strip.steps[strip.steps.length - 1]];
  context.fillText(
    `${state.run || "."} · ${layerText(strip.layer.key)} · channel ${strip.channels.join(", ")}`,
    10,
    22,
    width - 20,
  );
  context.font = look.font;
  context.fillStyle = look.muted;
  const scale = strip.locked
    ? `one scale per ${strip.how.scale === "layer" ? "layer" : "channel"}, locked over all kept steps`
    : "each step has its own scale: colours do not compare between steps";
  context.fillText(
    `${ROLE_NAMES[strip.role]} of sample ${state.sample} at ${strip.steps.length} kept steps, ` +
      `${stepText(first)} to ${stepText(last)} · ${scale}`,
    10,
    42,
    width - 20,
  );
}
