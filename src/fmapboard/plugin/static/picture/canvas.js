// @ts-check
/** Colours and fonts of the style sheet, for drawing on canvas. */

import { once } from "../server/cache.js";

/** @import {Box} from "./picture.js" */

/** @type {{theme: string|undefined, look: ReturnType<typeof read>}|null} */
let held = null;

/** @param {CSSStyleDeclaration} style */
export function read(style) {
  const get = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    background: get("--surface"),
    panel: get("--panel"),
    text: get("--text"),
    muted: get("--muted"),
    line: get("--line"),
    strong: get("--strong"),
    accent: get("--accent"),
    second: get("--second"),
    band: get("--band"),
    secondBand: get("--second-band"),
    font: `13px ${get("--font")}`,
  };
}

/** The current theme; the style sheet is read once per theme. */
export function theme() {
  const now = document.documentElement.dataset.theme;
  if (!held || held.theme !== now) {
    held = { theme: now, look: read(getComputedStyle(document.documentElement)) };
  }
  return held.look;
}

/** The palette that a page of this theme draws instead. @param {string} name */
export const onPage = (name) =>
  name === "signed" && globalThis.document?.documentElement.dataset.theme === "dark"
    ? "signedOnDark"
    : name;

/** Measures texts. */
const penOf = once((/** @type {string} */ _) => new OffscreenCanvas(1, 1).getContext("2d"));

/** Width of a text in the page's font, CSS px. @param {string} text */
export function textWidth(text) {
  const pen = penOf("");
  if (!pen) return text.length * 7;
  pen.font = theme().font;
  return pen.measureText(text).width;
}

/**
 * A context in CSS px, at device pixels. @param {HTMLCanvasElement|OffscreenCanvas} canvas
 * @param {number} width @param {number} height CSS px
 */
export function prepare(canvas, width, height, ratio = window.devicePixelRatio || 1) {
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  if ("style" in canvas) {
    canvas.style.width = `${w / ratio}px`;
    canvas.style.height = `${h / ratio}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d", { willReadFrequently: true })
  );
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  return context;
}

/**
 * Writes a text, squeezed into a width if there is one. @param {CanvasRenderingContext2D} context
 * @param {string} text @param {number} x @param {number} y CSS px @param {string} colour
 * @param {CanvasTextAlign} align @param {number} [width] CSS px
 */
export function write(context, text, x, y, colour, align = "left", width) {
  context.fillStyle = colour;
  context.textAlign = align;
  context.fillText(text, x, y, width);
}

/**
 * A line around a box.
 * @param {CanvasRenderingContext2D} context @param {Box} box @param {string} colour
 * @param {number} thick CSS px @param {number} away from the box, CSS px
 */
export function outline(context, { left, top, width, height }, colour, thick, away = 0.5) {
  context.strokeStyle = colour;
  context.lineWidth = thick;
  const out = thick / 2 + away;
  context.strokeRect(left - out, top - out, width + 2 * out, height + 2 * out);
}

// Shortens texts to a width on a canvas.

/**
 * A text, or its end if it is too wide.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} width
 */
export function cutStart(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= width) high = middle;
    else low = middle + 1;
  }
  return `…${text.slice(low)}`;
}
