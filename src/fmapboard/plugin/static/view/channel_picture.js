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
import { h, say, show } from "./dom.js";
import { reading } from "./grid.js";
import { Bar } from "./legend.js";
import { mount } from "./mount.js";

/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/scene.js").Part} Part */

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
 * @param {Part} part
 * @param {(point: import("../model/state.js").Point, isAsked: boolean) => void} pointed after a
 *   click; `isAsked` with Alt
 */
export function createPicture(part, pointed = () => {}) {
  const canvas = h("canvas", { role: "img" });
  const title = h("span");
  const value = h("span", { class: "value", "aria-live": "polite" });
  const bar = mount(Bar);
  const caption = h("figcaption", {}, title, value);
  const element = h("figure", {}, caption, canvas, bar.element);
  /** @type {{scene: MapsScene, channel: number}|null} */
  let drawn = null;

  /** The pointer in the page, while it is over the picture. @type {MouseEvent|null} */
  let pointer = null;

  /** Describes what is under the pointer now. */
  function readOut() {
    if (!pointer || !drawn) {
      say(value, "");
      return;
    }
    const box = canvas.getBoundingClientRect();
    const { height, width } = columnOf(drawn.scene, part).side?.planes ?? drawn.scene.a.planes;
    const x = Math.min(
      width - 1,
      Math.max(0, Math.floor(((pointer.clientX - box.left) / box.width) * width)),
    );
    const y = Math.min(
      height - 1,
      Math.max(0, Math.floor(((pointer.clientY - box.top) / box.height) * height)),
    );
    const { scene, channel } = drawn;
    const at = positionText(scene.rows, scene.picture.block, y, x);
    say(value, `${at}: ${reading(scene, part, channel, y, x)}`);
  }
  canvas.addEventListener("mousemove", (event) => {
    pointer = event;
    readOut();
  });
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const u = (event.clientX - box.left) / box.width;
    pointed({ u, v: (event.clientY - box.top) / box.height }, event.altKey);
  });
  canvas.addEventListener("mouseleave", () => {
    pointer = null;
    readOut();
  });

  /**
   * @param {Model} model @param {MapsScene} scene @param {number} channel
   * @param {number} available CSS px
   */
  function draw(model, scene, channel, available) {
    const i = columnIndex(part);
    const isShown = i < scene.columns.length && (!isDifference(part) || scene.parts.includes(part));
    const hasPicture = isShown && isDrawn(scene, part);
    show(element, isShown);
    show(canvas, hasPicture);
    show(bar.element, hasPicture && (isDifference(part) || scene.ownScale));
    if (!hasPicture) {
      pointer = drawn = null;
      say(title, `${partName(part)}: no picture`);
      return;
    }
    drawn = { scene, channel };
    const several = scene.columns.length > 1;
    const { planes } = scene.a;
    const { width } = planes;
    const own = i ? (model.sides?.each[i]?.input ?? null) : model.input;
    const input = isDifference(part) || model.state.overlay === 0 || scene.rows ? null : own;
    const [wide, high] = scene.rows ? [available, STRIP] : size(scene, planes, input, available);
    element.style.width = several ? `${Math.max(wide, MIN_WIDTH)}px` : "";
    const context = prepare(canvas, wide, high);
    const tile = tileCanvas(pixelsOf(scene, part, channel, model.state.colours).pixels, width);
    context.imageSmoothingEnabled = Boolean(input);
    if (input) context.drawImage(input, 0, 0, wide, high);
    context.imageSmoothingEnabled = scene.rows && width > canvas.width;
    context.globalAlpha = input ? model.state.overlay / 100 : 1;
    context.drawImage(tile, 0, 0, wide, high);
    context.globalAlpha = 1;
    const point = pointOf(model.state.pixel);
    const box = { left: 0, top: 0, width: wide, height: high };
    if (point) drawCrosshair(context, box, scene.rows ? { ...point, v: 0.5 } : point, planes);
    bar.draw(
      isDifference(part)
        ? { range: differenceRange(scene, channel), palette: "signed", title: "difference" }
        : {
            range: drawnRange(scene, channel, i),
            palette: model.state.colours,
            title: partName(part),
          },
    );
    const { question } = columnOf(scene, part);
    const all = scene.columns.map((each) => each.question);
    const inputs = model.sides?.each[i]?.inputs ?? "same";
    const text = isDifference(part) ? DIFFERENCE[inputs] : question && sideName(question, all);
    say(title, several ? `${partName(part)}: ${text}` : "");
    canvas.setAttribute(
      "aria-label",
      `channel ${channel}, ${title.textContent || `step ${scene.question.step}`}`,
    );
    readOut();
  }
  return { element, draw };
}

/**
 * Width and height of a picture, CSS px. A map pixel is a whole number of device pixels.
 * @param {MapsScene} scene @param {import("../server/decode.js").Planes} planes
 * @param {ImageBitmap|null} input @param {number} available width, CSS px
 */
function size(scene, { height, width }, input, available) {
  const aspect = input ? input.height / input.width : height / width;
  const ratio = window.devicePixelRatio || 1;
  const several = scene.columns.length > 1;
  const most = several ? 240 : 340;
  const wide = Math.min(several ? (available - 6) / 2 : available, most / Math.max(aspect, 0.05));
  const whole = input ? wide : (Math.max(1, Math.floor((wide * ratio) / width)) * width) / ratio;
  return [whole, whole * aspect];
}
