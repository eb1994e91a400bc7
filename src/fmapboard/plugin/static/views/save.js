// @ts-check
/** Saves the view as a PNG file: all channels, with a title and their scale. */

import { sideName } from "../state/compare.js";
import { h } from "./dom.js";
import { paintGrid } from "../draw/grid_paint.js";
import { short } from "../draw/number_text.js";
import { css, ramp } from "../draw/palettes.js";
import { theme } from "../draw/theme.js";
import { layoutFor } from "./view_grid.js";

/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../draw/scene.js").KernelsScene} KernelsScene */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */

const WIDTH = 1200;
const HEAD = 64;
const MAX_PIXELS = 60e6;

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function savePicture(model) {
  const { scene, layer } = model;
  if (!scene || !layer || scene.kind === "none") return "Nothing to save";
  const canvas =
    scene.kind === "kernels" ? kernels(scene, title(model)) : grid(model, scene, title(model));
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) return "The picture is too large to save";
  const url = URL.createObjectURL(/** @type {Blob} */ (blob));
  const name = `${model.state.run}_${layer.label}_step${scene.question.step}`.replace(
    /[^\w.-]+/g,
    "_",
  );
  h("a", { href: url, download: `${name}.png` }).click();
  window.setTimeout(() => URL.revokeObjectURL(url), 60000);
  return "Saved";
}

/** @param {Model} model */
function title({ state, layer, scene }) {
  const what = scene
    ? `${scene.question.role.replaceAll("_", " ")}, ${sideName(scene.question, "step")}`
    : "";
  const other = scene?.otherQuestion
    ? ` against ${sideName(scene.otherQuestion, state.compare)}`
    : "";
  return `${state.run} · ${layer?.label} · ${what}${other}`;
}

/**
 * A canvas with a title and free space below it.
 * @param {number} width @param {number} height @param {string} text
 */
function sheet(width, height, text) {
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
  const { canvas, context, look } = sheet(width, HEAD + Math.ceil(placed.height), text);
  bar(context, scene, model.state, look);
  const inner = document.createElement("canvas");
  inner.width = width;
  inner.height = Math.ceil(placed.height);
  const below = /** @type {CanvasRenderingContext2D} */ (
    inner.getContext("2d", { willReadFrequently: true })
  );
  const where = { top: 0, width, height: inner.height, ratio: 1, selected: null, hovered: null };
  paintGrid(below, scene, placed, where, { ...look, palette: model.state.colours });
  context.drawImage(inner, 0, HEAD);
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene
 * @param {import("../state/state.js").State} state @param {ReturnType<typeof theme>} look
 */
function bar(context, scene, state, look) {
  const only = scene.parts[0] === "difference";
  ramp(only ? "signed" : state.colours, 200).forEach((colour, i) => {
    context.fillStyle = css(colour);
    context.fillRect(10 + i, 34, 1, 10);
  });
  const { lo, hi } = only ? scene.differenceRanges : scene.ranges;
  const each = !scene.wholeLayer
    ? "each channel between its own extremes"
    : `${short(lo[0])} … ${short(hi[0])}`;
  context.fillStyle = look.muted;
  context.font = look.font;
  context.fillText(`${each}${state.locked ? ", over all steps" : ""}`, 220, 43);
}

/** @param {KernelsScene} scene @param {string} text */
function kernels(scene, text) {
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
