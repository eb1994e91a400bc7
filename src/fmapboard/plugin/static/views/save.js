// @ts-check
/** Saves the view as a PNG file: all channels, with a title and their scale. */

import { layerText, origin } from "../state/compare.js";
import { download } from "../host.js";
import { paintGrid } from "../draw/grid_paint.js";
import { stepsText } from "../draw/locked_scale.js";
import { isDifference } from "../draw/scene_columns.js";
import { paintKernels } from "../draw/kernel_paint.js";
import { kernelMeaning } from "../draw/kernel_scene.js";
import { short } from "../draw/number_text.js";
import { css, ramp } from "../draw/palettes.js";
import { layoutFor } from "../draw/scene_layout.js";
import { theme } from "../draw/theme.js";
import { kernelBars } from "./kernel_bars.js";

/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../draw/scene.js").KernelsScene} KernelsScene */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */
/** @typedef {import("../draw/scene.js").Scene} Scene */

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
  context.font = look.font.replace("11px", "600 14px");
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
 * @param {string} palette @returns {import("../draw/palettes.js").Rgb[][]}
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
 * @param {CanvasRenderingContext2D} context @param {import("../state/sides.js").SideFacts} of
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
  context.font = look.font.replace("11px", "600 12px");
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
