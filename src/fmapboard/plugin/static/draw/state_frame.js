// @ts-check
/** Marks the picture of a faulty channel: a hatched border, so that it does not pass for a live one. */

/** @typedef {import("./scene.js").StateMark} StateMark */

/** Width of the border, outside of the picture, CSS px. */
export const BORDER = 3;
/** Distance of the lines of the hatch, CSS px. */
const EVERY = 5;
const INK = "rgb(0 0 0 / 0.7)";
/** Directions of the lines: dead and constant have one each, non-finite values both, large none. */
const LINES = Object.freeze({ nonfinite: [1, -1], large: [], dead: [1], constant: [0] });

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number, height: number}} box the picture, CSS px
 * @param {StateMark} mark
 */
export function stateFrame(context, { left, top, width, height }, { kind, colour }) {
  const [x, y] = [left - BORDER, top - BORDER];
  const [wide, high] = [width + 2 * BORDER, height + 2 * BORDER];
  context.save();
  context.beginPath();
  context.rect(x, y, wide, high);
  context.rect(left, top, width, height);
  context.clip("evenodd");
  context.fillStyle = colour;
  context.fillRect(x, y, wide, high);
  context.strokeStyle = INK;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const slope of LINES[kind]) {
    const from = slope > 0 ? x - high : x;
    const to = slope < 0 ? x + wide + high : x + wide;
    for (let at = from; at < to; at += EVERY) {
      context.moveTo(at, y);
      context.lineTo(at + slope * high, y + high);
    }
    for (let at = slope ? Infinity : y; at < y + high; at += EVERY) {
      context.moveTo(x, at);
      context.lineTo(x + wide, at);
    }
  }
  context.stroke();
  context.restore();
}
