// @ts-check
/** Small pictures of the channels that show a finding. */

import { pixelsOf } from "../draw/grid_paint.js";
import { tileCanvas } from "../draw/paint.js";
import { flags, loudest } from "../draw/scene.js";
import { BORDER, stateFrame } from "../draw/state_frame.js";
import { prepare } from "../draw/theme.js";
import { h } from "./dom.js";

/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */

/** Sides of a tile, CSS px; sequences are one row of pixels. */
const SIDE = 36;
const ROW = Object.freeze({ width: 96, height: 14 });

/**
 * A button with the map of one channel.
 * @param {MapsScene} scene @param {number} channel @param {string} palette
 * @param {string} of layer and step @param {() => void} press
 */
export function createTile(scene, channel, palette, of, press) {
  const fault = loudest(flags(scene.maps, scene.question.role, channel));
  const label = `channel ${channel} of ${of}${fault ? `: ${fault.word}` : ""}`;
  const canvas = h("canvas");
  const element = h(
    "button",
    { type: "button", class: "tile", title: label, "aria-label": label, on: { click: press } },
    canvas,
  );
  const { pixels, width } = pixelsOf(scene, "a", channel, palette);
  const height = pixels.length / Math.max(1, width);
  const [wide, high] = scene.rows ? [ROW.width, ROW.height] : fit(width, height);
  const out = fault ? BORDER : 0;
  const context = prepare(canvas, wide + 2 * out, high + 2 * out);
  context.imageSmoothingEnabled = width > canvas.width || height > canvas.height;
  context.drawImage(tileCanvas(pixels, width), out, out, wide, high);
  if (!fault) return element;
  stateFrame(context, { left: out, top: out, width: wide, height: high }, fault);
  element.append(h("span", { class: "tile-state", text: fault.brief }));
  return element;
}

/** Size of a tile whose longer side is `SIDE`, CSS px. @param {number} width @param {number} height */
function fit(width, height) {
  const factor = SIDE / Math.max(width, height, 1);
  return [Math.max(4, width * factor), Math.max(4, height * factor)];
}
