// @ts-check
/** Colours and fonts of the style sheet, for drawing on canvas. */

/** @type {{theme: string|undefined, look: ReturnType<typeof read>}|null} */
let held = null;

/** @param {CSSStyleDeclaration} style */
function read(style) {
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
    font: `11px ${get("--font")}`,
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

/**
 * A context in CSS px, of a canvas resized to the device pixels of the given size.
 * @param {HTMLCanvasElement} canvas @param {number} width CSS px @param {number} height CSS px
 */
export function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${w / ratio}px`;
  canvas.style.height = `${h / ratio}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d", { willReadFrequently: true })
  );
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.imageSmoothingEnabled = false;
  return context;
}
