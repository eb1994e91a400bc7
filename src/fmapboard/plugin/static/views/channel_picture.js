// @ts-check
/** The enlarged map of a channel, with the value under the pointer. */

import { sideName } from "../state/compare.js";
import { h, say, show } from "./dom.js";
import { drawCrosshair, pointOf } from "../draw/crosshair.js";
import { pixelsOf } from "../draw/grid_paint.js";
import { tileCanvas } from "../draw/paint.js";
import { prepare } from "../draw/theme.js";
import { place, reading } from "./view_grid.js";
import { createBar } from "./view_legend.js";

/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */
/** @typedef {import("../draw/scene.js").Part} Part */

/** Height of the row of pixels of a sequence, CSS px. */
const STRIP = 44;

const DIFFERENCE = Object.freeze({
  same: "Difference",
  loading: "Difference",
  different: "Difference of different inputs",
  unknown: "Difference, inputs not known",
});

/**
 * @param {Part} part
 * @param {(point: import("../draw/crosshair.js").Point, isAsked: boolean) => void} pointed after a
 *   click; `isAsked` with Alt
 */
export function createPicture(part, pointed = () => {}) {
  const canvas = h("canvas", { role: "img" });
  const title = h("span");
  const value = h("span", { class: "value", "aria-live": "polite" });
  const bar = part === "difference" ? createBar() : null;
  const caption = h("figcaption", {}, title, value);
  const element = h("figure", {}, caption, canvas, bar?.element ?? null);
  /** @type {{scene: MapsScene, channel: number}|null} */
  let drawn = null;

  /** The pointer in the page, while it is over the picture. @type {MouseEvent|null} */
  let pointer = null;

  /** Describes what is under the pointer now. */
  function readOut() {
    if (!pointer || !drawn?.scene.a) {
      say(value, "");
      return;
    }
    const box = canvas.getBoundingClientRect();
    const { height, width } = drawn.scene.a.planes;
    const x = Math.min(
      width - 1,
      Math.max(0, Math.floor(((pointer.clientX - box.left) / box.width) * width)),
    );
    const y = Math.min(
      height - 1,
      Math.max(0, Math.floor(((pointer.clientY - box.top) / box.height) * height)),
    );
    say(value, `${place(drawn.scene, y, x)}: ${reading(drawn.scene, part, drawn.channel, y, x)}`);
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
    const shown = part === "a" || scene.parts.includes(part) || (part === "b" && Boolean(scene.b));
    show(element, shown && (part !== "difference" || Boolean(scene.difference)));
    if (element.hidden) {
      pointer = null;
      return;
    }
    drawn = { scene, channel };
    const side = part === "b" ? scene.b : scene.a;
    if (!side) return;
    const { width } = side.planes;
    const own = part === "b" ? (model.sides?.each[1]?.input ?? null) : model.input;
    const input = part === "difference" || model.state.overlay === 0 || scene.rows ? null : own;
    const [wide, high] = scene.rows
      ? [available, STRIP]
      : size(scene, side.planes, input, available);
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
    if (point) drawCrosshair(context, box, scene.rows ? { ...point, v: 0.5 } : point, side.planes);
    const { lo, hi } = scene.differenceRanges;
    bar?.draw(lo[channel], hi[channel], "signed", "difference");
    const question = part === "b" && scene.otherQuestion ? scene.otherQuestion : scene.question;
    say(
      title,
      part === "difference"
        ? DIFFERENCE[model.sides?.inputs ?? "same"]
        : scene.b
          ? sideName(question, model.state.compare)
          : "",
    );
    canvas.setAttribute(
      "aria-label",
      `channel ${channel}, ${title.textContent || `step ${question.step}`}`,
    );
    readOut();
  }
  return { element, draw };
}

/**
 * Width and height of a picture, CSS px. A map pixel is a whole number of device pixels.
 * @param {MapsScene} scene @param {import("../data/decode.js").Planes} planes
 * @param {ImageBitmap|null} input @param {number} available width, CSS px
 */
function size(scene, { height, width }, input, available) {
  const aspect = input ? input.height / input.width : height / width;
  const ratio = window.devicePixelRatio || 1;
  const most = scene.b ? 240 : 340;
  const wide = Math.min(scene.b ? (available - 6) / 2 : available, most / Math.max(aspect, 0.05));
  const whole = input ? wide : (Math.max(1, Math.floor((wide * ratio) / width)) * width) / ratio;
  return [whole, whole * aspect];
}
