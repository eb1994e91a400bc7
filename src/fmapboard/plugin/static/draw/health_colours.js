// @ts-check
/** Colours of the states of layers, and the hatching that tells severe ones without colour. */

import { packed } from "./palettes.js";

/** @typedef {import("./palettes.js").Rgb} Rgb */

/** Shades per state: levels of brightness, as the server sends them (`health/states.py`). */
export const LEVELS = 24;
/** Level of a cell whose brightness is not known. */
export const UNKNOWN_LEVEL = 255;

/**
 * Colours of each state (by code, `state/health_states.js`) at the smallest and largest value.
 * @type {Readonly<Record<"light"|"dark", readonly (readonly [Rgb, Rgb])[]>>}
 */
// prettier-ignore
const ENDS = Object.freeze({
  light: [
    [[255, 255, 255], [255, 255, 255]],
    [[228, 232, 237], [104, 114, 126]],
    [[198, 214, 246], [52, 98, 200]],
    [[176, 228, 228], [0, 138, 138]],
    [[255, 216, 170], [226, 112, 0]],
    [[140, 216, 216], [0, 120, 120]],
    [[255, 190, 120], [214, 98, 0]],
    [[232, 120, 120], [168, 16, 16]],
    [[255, 120, 255], [214, 0, 214]],
  ],
  dark: [
    [[48, 48, 48], [48, 48, 48]],
    [[66, 71, 78], [176, 187, 200]],
    [[52, 74, 128], [130, 168, 255]],
    [[6, 92, 92], [60, 216, 216]],
    [[132, 70, 6], [255, 156, 56]],
    [[0, 108, 108], [80, 232, 232]],
    [[150, 78, 0], [255, 150, 40]],
    [[150, 32, 32], [255, 100, 92]],
    [[168, 0, 168], [255, 92, 255]],
  ],
});

const INK = Object.freeze({ light: packed([24, 8, 24]), dark: packed([255, 255, 255]) });

/** @typedef {"light"|"dark"} Theme */

/** @param {Theme} theme @param {number} code @param {number} level 0 to `LEVELS` - 1 @returns {Rgb} */
export function shadeOf(theme, code, level) {
  const [low, high] = ENDS[theme][code];
  const mix = (/** @type {number} */ c) =>
    Math.round(low[c] + ((high[c] - low[c]) * level) / (LEVELS - 1));
  return [mix(0), mix(1), mix(2)];
}

/**
 * Packed colours of all states, [codes * LEVELS], and that of the hatching.
 * @param {Theme} theme
 */
export function coloursOf(theme) {
  const states = ENDS[theme].length;
  const table = new Uint32Array(states * LEVELS);
  for (let code = 0; code < states; code += 1) {
    for (let level = 0; level < LEVELS; level += 1) {
      table[code * LEVELS + level] = packed(shadeOf(theme, code, level));
    }
  }
  return { table, ink: INK[theme] };
}

/** The level that is drawn: a middle one if it is not known. @param {number} level */
export function drawnLevel(level) {
  return level < LEVELS ? level : LEVELS / 2;
}

/** @typedef {(x: number, y: number) => boolean} Hatch */

/**
 * Hatching by code, in CSS px of the whole map, so that it also shows across cells of 2 px.
 * Non-finite: crossed; large: rising; mostly dead: level; mostly constant: upright lines. Constant
 * has sparse ones, because without colour vision it looks like fine.
 * @type {readonly (Hatch|null)[]}
 */
export const HATCHES = Object.freeze([
  null,
  null,
  null,
  (x) => x % 9 === 0,
  null,
  (x) => x % 4 === 0,
  (_, y) => y % 4 === 0,
  (x, y) => (x + y) % 5 === 0,
  (x, y) => (x + y) % 6 === 0 || (x - y + 6000) % 6 === 0,
]);

/** True for a state whose cells have dots where their brightness is not known. @param {number} code */
export function isDotted(code) {
  return code > 0 && code < 5; // the others are hatched densely
}

/** Dots of a cell whose brightness is not known. @type {Hatch} */
export const DOTS = (x, y) => x % 4 === 1 && y % 4 === 1;
