// @ts-check
/** The enlarged map of a channel, with the value under the pointer. */

import { sideName } from "../model/compare.js";
import { columnIndex, columnOf, isDifference, partName } from "../model/scene.js";
import { pointOf } from "../model/state.js";
import { prepare } from "../picture/canvas.js";
import { differenceRange, drawnRange, positionText } from "../picture/captions.js";
import { isDrawn } from "../picture/grid_paint.js";
import { pixelsOf, tileCanvas } from "../picture/paint.js";
import { drawCrosshair } from "../picture/point.js";
import { html, useState } from "../vendor/preact_htm.js";
import { Painted } from "./controls.js";
import { reading } from "./grid.js";
import { Bar } from "./legend.js";
import { putPoint } from "./point.js";

/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/scene.js").Part} Part */
/** @typedef {import("../model/state.js").Point} Point */

/** Height of the row of pixels of a sequence, CSS px. */
const STRIP = 44;
/** Minimum width of a picture with its caption, CSS px. */
const MIN_WIDTH = 120;

const DIFFERENCE = Object.freeze({
  same: "Difference",
  loading: "Difference",
  different: "Difference of different inputs",
  unknown: "Difference, inputs not known",
});

/**
 * @param {{app: import("../app.js").App, model: import("../app.js").Model, scene: MapsScene,
 *   channel: number, part: Part, order: number}} props
 */
export function ChannelPicture({ app, model, scene, channel, part, order }) {
  const [pointer, point] = useState(/** @type {Point|null} */ (null));
  const { state, sides } = model;
  const i = columnIndex(part);
  const several = scene.columns.length > 1;
  const style = { order: String(order) };
  if (!isDrawn(scene, part)) {
    const said = `${partName(part)}: no picture`;
    return html`<figure style=${style}><figcaption><span>${said}</span></figcaption></figure>`;
  }
  const { planes } = scene.a;
  const own = i ? sides?.each[i]?.input : model.input;
  const input = isDifference(part) || state.overlay === 0 || scene.rows ? null : (own ?? null);
  const { side, question } = columnOf(scene, part);
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const figure = /** @type {HTMLElement} */ (canvas.parentElement);
    const available = figure.parentElement?.clientWidth ?? 0;
    const [width, height] = scene.rows ? [available, STRIP] : size(scene, input, available);
    figure.style.width = several ? `${Math.max(width, MIN_WIDTH)}px` : "";
    const context = prepare(canvas, width, height);
    const tile = pixelsOf(scene, part, channel, state.colours);
    context.imageSmoothingEnabled = Boolean(input);
    if (input) context.drawImage(input, 0, 0, width, height);
    context.imageSmoothingEnabled = scene.rows && planes.width > canvas.width;
    context.globalAlpha = input ? state.overlay / 100 : 1;
    context.drawImage(tileCanvas(tile.pixels, planes.width), 0, 0, width, height);
    context.globalAlpha = 1;
    const at = pointOf(state.pixel);
    const box = { left: 0, top: 0, width, height };
    if (at) drawCrosshair(context, box, scene.rows ? { ...at, v: 0.5 } : at, planes);
  };
  /** @param {MouseEvent & {currentTarget: HTMLElement}} event @returns {Point} */
  const placeOf = ({ clientX, clientY, currentTarget }) => {
    const { left, top, width, height } = currentTarget.getBoundingClientRect();
    const within = (/** @type {number} */ at) => Math.min(0.9999, Math.max(0, at));
    return { u: within((clientX - left) / width), v: within((clientY - top) / height) };
  };
  let value = "";
  if (pointer) {
    const { height, width } = side?.planes ?? planes;
    const [y, x] = [Math.floor(pointer.v * height), Math.floor(pointer.u * width)];
    const place = positionText(scene.rows, scene.picture.block, y, x);
    value = `${place}: ${reading(scene, part, channel, y, x)}`;
  }
  const all = scene.columns.map((each) => each.question);
  const text = isDifference(part)
    ? DIFFERENCE[sides?.each[i]?.inputs ?? "same"]
    : question && sideName(question, all);
  const title = several ? `${partName(part)}: ${text}` : "";
  const bar = isDifference(part)
    ? { range: differenceRange(scene, channel), palette: "signed", title: "difference" }
    : { range: drawnRange(scene, channel, i), palette: state.colours, title: partName(part) };
  return html`
    <figure style=${style}>
      <figcaption><span>${title}</span><span class="value" aria-live="polite">${value}</span></figcaption>
      <${Painted} role="img"
        aria-label=${`channel ${channel}, ${title || `step ${scene.question.step}`}`} paint=${paint}
        onMouseMove=${(/** @type {Parameters<typeof placeOf>[0]} */ event) => point(placeOf(event))}
        onMouseLeave=${() => point(null)}
        onClick=${(/** @type {Parameters<typeof placeOf>[0]} */ event) => {
          if (state.pixel || event.altKey) putPoint(app, placeOf(event));
        }} />
      ${(isDifference(part) || scene.ownScale) && html`<${Bar} ...${bar} />`}
    </figure>
  `;
}

/**
 * Width and height of a picture, CSS px. A map pixel is a whole number of device pixels.
 * @param {MapsScene} scene @param {ImageBitmap|null} input @param {number} available width, CSS px
 */
function size(scene, input, available) {
  const { height, width } = scene.a.planes;
  const aspect = input ? input.height / input.width : height / width;
  const ratio = window.devicePixelRatio || 1;
  const several = scene.columns.length > 1;
  const most = several ? 240 : 340;
  const wide = Math.min(several ? (available - 6) / 2 : available, most / Math.max(aspect, 0.05));
  const whole = input ? wide : (Math.max(1, Math.floor((wide * ratio) / width)) * width) / ratio;
  return [whole, whole * aspect];
}
