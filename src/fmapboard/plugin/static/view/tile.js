// @ts-check
/** The map of one channel as a small picture. */

import { BORDER, prepare, stateFrame } from "../picture/canvas.js";
import { faultOf } from "../picture/captions.js";
import { pixelsOf, tileCanvas } from "../picture/paint.js";
import { drawCrosshair } from "../picture/point.js";
import { html } from "../vendor/preact_htm.js";
import { Painted } from "./controls.js";

/** Longer side; sequences are one row of pixels. CSS px. */
const SIDE = 36;
const ROW = Object.freeze({ width: 96, height: 14 });

/**
 * @param {{scene: import("../model/scene.js").MapsScene, channel: number, palette: string,
 *   point?: import("../model/state.js").Point|null}} props
 */
export function MapTile({ scene, channel, palette, point = null }) {
  const fault = faultOf(scene, "a", channel);
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const { pixels, width: columns } = pixelsOf(scene, "a", channel, palette);
    const rows = pixels.length / Math.max(1, columns);
    const factor = SIDE / Math.max(columns, rows, 1);
    const size = { width: Math.max(4, columns * factor), height: Math.max(4, rows * factor) };
    const { width, height } = scene.rows ? ROW : size;
    const out = fault ? BORDER : 0;
    const box = { left: out, top: out, width, height };
    const context = prepare(canvas, width + 2 * out, height + 2 * out);
    context.imageSmoothingEnabled = columns > canvas.width || rows > canvas.height;
    context.drawImage(tileCanvas(pixels, columns), out, out, width, height);
    if (fault) stateFrame(context, box, fault);
    if (point) drawCrosshair(context, box, point, null);
  };
  const { theme } = document.documentElement.dataset;
  const of = [scene, channel, palette, point?.u, point?.v, theme, window.devicePixelRatio];
  return html`<${Painted} aria-hidden="true" ...${{ paint, of }} />`;
}
