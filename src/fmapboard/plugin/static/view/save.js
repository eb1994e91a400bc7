// @ts-check
/** Saves the view as a PNG file: all channels, with a title and their scale. */

import { ROLE_NAMES, layerText, origin } from "../model/compare.js";
import { download } from "../model/host.js";
import { kernelMeaning } from "../model/kernel_scene.js";
import { isDifference } from "../model/scene.js";
import { stepsText } from "../model/value_scale.js";
import { counted, runText, short, stepText } from "../model/words.js";
import { theme } from "../picture/canvas.js";
import { columnLeft } from "../picture/film_layout.js";
import { paintFilm } from "../picture/film_paint.js";
import { paintGrid } from "../picture/grid_paint.js";
import { paintKernels } from "../picture/kernel_paint.js";
import { layoutFor } from "../picture/scene_layout.js";
import { css, ramp } from "../server/palettes.js";
import { captionTexts, controlText, effectText, headingText } from "./attribution.js";
import { kernelBars } from "./legend.js";

// Saves the view as a PNG file: all channels, with a title and their scale.

/** @typedef {import("../server/source.js").Model} Model */
/** @typedef {import("../model/scene.js").KernelsScene} KernelsScene */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/scene.js").Scene} Scene */

const WIDTH = 1200;
const HEAD = 64;
/** Height of the heading of a column, and of its input image. */
const COLUMN = 48;
const LINE = 16;
const INPUT = 40;
/** Height for the line that explains the order. */
const ORDER = 18;
const RAMP = 200;
const OWN = "each channel between its own extremes";
const MAX_PIXELS = 60e6;
/** Height that a matrix of kernels about fits. */
const WINDOW = 900;

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function savePicture(model) {
  const { scene } = model;
  if (!scene || scene.kind === "none") return "Nothing to save";
  const canvas =
    scene.kind === "kernels"
      ? kernels(model, scene, title(scene))
      : grid(model, scene, title(scene));
  const { run, key, step } = scene.question;
  return offer(canvas, `${run}_${layerText(key)}_step${step}`);
}

/**
 * Offers a picture for download.
 * @param {HTMLCanvasElement} canvas @param {string} name of the file, without its ending
 * @returns {Promise<string>} what happened
 */
export async function offer(canvas, name) {
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) return "The picture is too large to save";
  const url = URL.createObjectURL(/** @type {Blob} */ (blob));
  download(url, `${name.replace(/[^\w.-]+/g, "_")}.png`);
  window.setTimeout(() => URL.revokeObjectURL(url), 60000);
  return "Saved";
}

/** Title of the file's picture: the layer, and where it stems from if no columns say so. @param {Scene} scene */
function title({ question, columns }) {
  const layer = layerText(question.key);
  return columns.length > 1 ? layer : `${layer} · ${origin(question)}`;
}

/**
 * A canvas with a title and free space below it.
 * @param {number} width @param {number} height @param {string} text
 */
export function sheet(width, height, text) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const look = theme();
  context.fillStyle = look.background;
  context.fillRect(0, 0, width, height);
  context.fillStyle = look.text;
  context.font = look.font.replace("13px", "600 14px");
  context.fillText(text, 10, 22, width - 20);
  return { canvas, context, look };
}

/** @param {Model} model @param {MapsScene} scene @param {string} text */
function grid(model, scene, text) {
  let tile = model.state.tile || (scene.rows ? 64 : 128);
  let placed = layoutFor(scene, tile, WIDTH, 0, 1);
  while (placed.height * Math.max(WIDTH, placed.width) > MAX_PIXELS && tile > 8) {
    placed = layoutFor(scene, (tile /= 2), WIDTH, 0, 1);
  }
  const width = Math.max(WIDTH, Math.ceil(placed.width));
  const { meaning } = scene.sorting;
  const head = HEAD + headingsHeight(model) + (meaning ? ORDER : 0);
  const { canvas, context, look } = sheet(width, head + Math.ceil(placed.height), text);
  headings(context, model, look);
  bars(context, scene, model, look);
  if (meaning) context.fillText(meaning, 10, head - 8, width - 20);
  const inner = document.createElement("canvas");
  inner.width = width;
  inner.height = Math.ceil(placed.height);
  const below = /** @type {CanvasRenderingContext2D} */ (
    inner.getContext("2d", { willReadFrequently: true })
  );
  const where = { top: 0, width, height: inner.height, ratio: 1, selected: null, hovered: null };
  paintGrid(below, scene, placed, where, { ...look, palette: model.state.colours });
  context.drawImage(inner, 0, head);
  return canvas;
}

/**
 * A colour bar for the maps and one for the difference, as far as they are drawn.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene
 * @param {Model} model @param {ReturnType<typeof theme>} look
 */
function bars(context, scene, { state, sides }, look) {
  const locked = stepsText(scene.columns, state.locked);
  let left = 10;
  if (scene.parts.some((part) => !isDifference(part))) {
    const { lo, hi } = scene.ranges;
    const several = scene.columns.filter(({ side }) => side).length;
    const own =
      several > 1 && !scene.ownScale
        ? `each channel between the extremes of ${several > 2 ? "all" : "both"} maps`
        : OWN;
    const range = scene.wholeLayer && !scene.ownScale ? `${short(lo[0])} … ${short(hi[0])}` : own;
    left += bar(context, left, state.colours, `${range}${locked}`, look);
  }
  if (!scene.parts.some(isDifference)) return;
  const { lo, hi } = scene.differenceRanges;
  const range =
    state.scale === "layer"
      ? `${short(lo[0])} … ${short(hi[0])}`
      : "each channel between ± its largest difference";
  const mixed = sides?.inputs === "different" ? ", of different inputs" : "";
  bar(context, left, "signed", `difference${mixed}: ${range}`, look);
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} left px @param {string} palette
 * @param {string} text @param {ReturnType<typeof theme>} look @returns {number} its width, px
 */
function bar(context, left, palette, text, look) {
  stripes(palette).forEach((colours, row, { length }) =>
    colours.forEach((colour, i) => {
      context.fillStyle = css(colour);
      context.fillRect(left + i, 34 + (10 * row) / length, 1, 10 / length);
    }),
  );
  context.fillStyle = look.muted;
  context.font = look.font;
  context.fillText(text, left + RAMP + 10, 43);
  return RAMP + 40 + context.measureText(text).width;
}

/**
/**
 * Colours of a bar; of RGB kernels three rows, in each of which the other two inputs are 0.
 * @param {string} palette @returns {import("../server/palettes.js").Rgb[][]}
 */
function stripes(palette) {
  if (palette !== "rgb") return [ramp(palette, RAMP)];
  const greys = ramp("grey", RAMP).map(([grey]) => grey);
  return [
    greys.map((grey) => [grey, 128, 128]),
    greys.map((grey) => [128, grey, 128]),
    greys.map((grey) => [128, 128, grey]),
  ];
}

/** Height of the headings of all columns and of the notes, px. @param {Model} model */
function headingsHeight({ sides }) {
  return (sides?.each.length ?? 0) * COLUMN + (sides?.notes.length ?? 0) * LINE;
}

/**
 * @param {CanvasRenderingContext2D} context @param {Model} model
 * @param {ReturnType<typeof theme>} look
 */
function headings(context, { sides }, look) {
  const columns = sides?.each ?? [];
  columns.forEach((each, i) => heading(context, each, HEAD - 10 + i * COLUMN, look));
  sides?.notes.forEach((note, i) => {
    context.fillText(note, 10, HEAD + columns.length * COLUMN + i * LINE, WIDTH - 20);
  });
}

/**
 * The heading of a column: its letter, run, step and sample, its input image, and what differs.
 * @param {CanvasRenderingContext2D} context @param {import("../model/sides.js").SideFacts} of
 * @param {number} top px @param {ReturnType<typeof theme>} look
 */
function heading(context, { letter, text, match, follows, input, notes }, top, look) {
  let left = 10;
  if (input) {
    const wide = (INPUT * input.width) / input.height;
    context.drawImage(input, left, top, wide, INPUT);
    left += wide + 10;
  }
  context.fillStyle = look.text;
  context.font = look.font.replace("13px", "600 13px");
  const first = [letter, text, follows, match].filter(Boolean).join(" · ");
  context.fillText(first, left, top + 14, WIDTH - left - 10);
  context.font = look.font;
  context.fillText(notes.join(" · "), left, top + 30, WIDTH - left - 10);
}

/** @param {Model} model @param {KernelsScene} scene @param {string} text */
function kernels(model, scene, text) {
  const { grid } = scene;
  if (!grid) return storedKernels(scene, text);
  const placed = layoutFor(scene, model.state.tile, WIDTH, WINDOW, 1);
  const width = Math.max(WIDTH, Math.ceil(placed.width));
  const height = Math.ceil(placed.height);
  const head = HEAD + headingsHeight(model) + ORDER;
  const { canvas, context, look } = sheet(width, head + height, text);
  headings(context, model, look);
  let left = 10;
  for (const each of Object.values(kernelBars(scene))) {
    if (!each) continue;
    const scale = `${each.title}: ${short(-each.peak)} … ${short(each.peak)}`;
    left += bar(context, left, each.palette, scale, look);
  }
  context.fillText(kernelMeaning(scene), 10, head - 8, width - 20);
  const inner = document.createElement("canvas");
  [inner.width, inner.height] = [width, height];
  const below = /** @type {CanvasRenderingContext2D} */ (
    inner.getContext("2d", { willReadFrequently: true })
  );
  const where = { top: 0, width, height, ratio: 1, selected: null, hovered: null };
  paintKernels(below, grid, placed, where, { ...look, palette: "signed" });
  context.drawImage(inner, 0, head);
  return canvas;
}

/** @param {KernelsScene} scene @param {string} text */
function storedKernels(scene, text) {
  const picture = scene.kernels;
  const factor = Math.max(1, Math.floor(1000 / picture.width));
  const { canvas, context } = sheet(
    Math.max(600, picture.width * factor + 20),
    HEAD + picture.height * factor,
    text,
  );
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 10, HEAD - 10, picture.width * factor, picture.height * factor);
  return canvas;
}

// Saves the attribution view as a PNG file: both pictures of each layer, with what they show.

/** @typedef {import("../model/attribution.js").Row} Row */
/** @typedef {import("../model/attribution.js").Tile} Tile */

const ATTRIBUTION_WIDTH = 1200;
const MARGIN = 10;
/** Longer side of a picture, px. */
const SIDE = 220;
const GAP = 8;
/** Width of a layer: two pictures and the space behind them. */
const CELL = 2 * SIDE + GAP + 26;
/** Heights of the title, of a line of text, of a layer's heading, and of its captions. */
const [TITLE, ATTRIBUTION_LINE, HEADING, CAPTIONS] = [34, 15, 20, 44];

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function saveAttribution({ state, attribution }) {
  const rows = attribution?.rows ?? [];
  if (!attribution || !rows.length) return "Nothing to save";
  if (attribution.loading) return "Not saved: pictures are being loaded";
  const { step } = rows[0].now;
  const run = runText(state.run);
  const title = `Attribution · ${run} · step ${stepText(step)} · sample ${attribution.sample}`;
  const lines = linesOf([effectText(rows), controlText(rows), LEGEND]);
  const columns = Math.max(
    1,
    Math.min(rows.length, Math.floor((ATTRIBUTION_WIDTH - MARGIN) / CELL)),
  );
  const high = Math.max(...rows.map((row) => sizeOf(row.now)[1]));
  const head = TITLE + lines.length * ATTRIBUTION_LINE + 14;
  const height = head + Math.ceil(rows.length / columns) * (HEADING + high + CAPTIONS);
  const { canvas, context, look } = sheet(ATTRIBUTION_WIDTH, height, title);
  context.font = look.font;
  context.fillStyle = look.muted;
  lines.forEach((text, i) => context.fillText(text, MARGIN, TITLE + 8 + i * ATTRIBUTION_LINE));
  rows.forEach((row, i) => {
    const left = MARGIN + (i % columns) * CELL;
    const top = head + Math.floor(i / columns) * (HEADING + high + CAPTIONS);
    context.fillStyle = look.text;
    context.font = look.font.replace("13px", "600 13px");
    context.fillText(headingText(row.series), left, top + 12, CELL - GAP);
    context.font = look.font;
    [row.now, row.first].forEach((tile, k) => {
      if (tile) paintTile(context, row, tile, left + k * (SIDE + GAP), top + HEADING, look);
    });
  });
  return offer(canvas, `${run}_attribution_step${step}`);
}

/**
 * A picture and its captions.
 * @param {CanvasRenderingContext2D} context @param {Row} row @param {Tile} tile one of its two
 * @param {number} left px @param {number} top px @param {{text: string, muted: string}} look
 */
function paintTile(context, row, tile, left, top, look) {
  const [wide, high] = sizeOf(tile);
  context.fillStyle = look.text;
  if (!tile.picture) {
    context.fillText(tile.problem, left, top + 12, SIDE);
    return;
  }
  context.drawImage(tile.picture, left, top, wide, high);
  const [when, norm] = captionTexts(row, tile, tile.picture);
  context.fillText(when, left, top + high + 14, SIDE);
  context.fillStyle = look.muted;
  context.fillText(norm, left, top + high + 14 + ATTRIBUTION_LINE, SIDE);
}

/** Size of a picture in the file, px. @param {Tile} tile @returns {[number, number]} */
function sizeOf({ picture }) {
  if (!picture) return [SIDE, SIDE];
  const scale = SIDE / Math.max(picture.width, picture.height);
  return [Math.round(picture.width * scale), Math.round(picture.height * scale)];
}

const LEGEND =
  "From grey, the input, to yellow, the maximum of the picture. An even grey picture: the map is " +
  "negligible or not finite.";
/** Longest line, in characters, that fits into the width. */
const CHARACTERS = 190;

/** Texts as lines of words. @param {string[]} texts @returns {string[]} */
function linesOf(texts) {
  return texts.filter(Boolean).flatMap((text) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length >= CHARACTERS) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines;
  });
}

// Saves a film strip as PNG: all kept steps, wrapped into bands, with title and scales.

/** @typedef {import("../model/film.js").Strip} Strip */
/** @typedef {import("../picture/film_layout.js").FilmLayout} FilmLayout */

const FILM_WIDTH = 2000;
const FILM_HEAD = 56;
const FILM_PIXELS = 60e6;
const MAX_SIDE = 16000;

/**
 * Offers the file for download: all strips, below each other.
 * @param {Model} model @param {Strip[]} strips at least one
 * @param {import("../model/film.js").FilmSource} source
 * @param {(strip: Strip, ratio: number, height: number, tile: number) => FilmLayout} layoutFor
 * @param {(text: string) => void} tell progress @returns {Promise<string>} what happened
 */
export async function saveFilm(model, strips, source, layoutFor, tell) {
  const { state } = model;
  for (const strip of strips) await source.load(strip, [strip.current]); // the size of the maps
  let tile = state.tile || 96;
  let parts = strips.map((strip) => partOf(strip, layoutFor(strip, 1, 0, tile)));
  const height = () => parts.reduce((sum, part) => sum + part.height, 0);
  while (tile > 8 && (height() > MAX_SIDE || height() * FILM_WIDTH > FILM_PIXELS)) {
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
    if (!(await bandsBelow(context, part, top + FILM_HEAD, look, load, tell))) {
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
  return { strip, of, bands, width, height: FILM_HEAD + Math.ceil(of.height) * bands.length };
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
  const each = Math.max(1, Math.floor((FILM_WIDTH - of.gutter) / of.columnWidth));
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
  context.font = look.font.replace("13px", "600 14px");
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
