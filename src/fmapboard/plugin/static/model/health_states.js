// @ts-check
/** Colours of the states of layers, and the hatching that tells severe ones without colour. */

import {
  callName,
  counted,
  inWordsOf,
  percent,
  short,
  stepText,
  tileText,
  wordOf,
} from "./words.js";
import { once } from "../server/cache.js";
import { numbersAt } from "../server/health.js";
import { mixed, packed } from "../server/palettes.js";

/** @import {Cache} from "../server/cache.js" */
/** @import {FaultName, Health, HealthLayer, NamedArrays, Pass, Rgb} from "../server/server.js" */
/** @import {Hatch, Numbers, Theme} from "./model.js" */

/** Shades per state: levels of brightness, as the server sends them (`health/states.py`). */
export const LEVELS = 24;
/** Level of a cell whose brightness is not known. */
export const UNKNOWN_LEVEL = 255;

/**
 * Colours of each state: those without a fault at the smallest and the largest range of values,
 * each fault has one, which is stronger where half of the channels have it.
 * @type {Readonly<Record<Theme, readonly (readonly [Rgb, Rgb?])[]>>}
 */
// prettier-ignore
const ENDS = Object.freeze({
  light: [
    [[255, 255, 255]],
    [[238, 242, 246], [152, 168, 186]],
    [[220, 226, 238], [142, 158, 188]],
    [[206, 219, 245], [110, 145, 220]],
    [[205, 234, 232]],
    [[255, 233, 204]],
    [[96, 176, 174]],
    [[242, 158, 84]],
    [[226, 126, 116]],
    [[226, 134, 58]],
    [[244, 164, 240]],
  ],
  dark: [
    [[48, 48, 48]],
    [[58, 61, 65], [104, 114, 126]],
    [[56, 62, 74], [88, 102, 130]],
    [[54, 62, 84], [86, 104, 152]],
    [[48, 76, 75]],
    [[104, 82, 58]],
    [[66, 138, 136]],
    [[158, 108, 68]],
    [[154, 86, 82]],
    [[150, 92, 60]],
    [[138, 86, 134]],
  ],
});

/**
 * @param {Theme} theme @param {number} code @param {number} level 0 to `LEVELS` - 1
 * @returns {Rgb}
 */
export function shadeOf(theme, code, level) {
  const [low, high = low] = ENDS[theme][code];
  const mix = (/** @type {number} */ c) =>
    Math.round(low[c] + ((high[c] - low[c]) * level) / (LEVELS - 1));
  return [mix(0), mix(1), mix(2)];
}

/** How far lines of the hatching are from the colour that they are on to black or white. */
const INK = Object.freeze({ light: 0.4, dark: 0.3 });

/**
 * Packed colours of all states, [codes * LEVELS], and of the lines of their hatching.
 * @param {Theme} theme
 */
export function coloursOf(theme) {
  const states = ENDS[theme].length;
  const table = new Uint32Array(states * LEVELS);
  const lines = new Uint32Array(states * LEVELS);
  /** @type {Rgb} */
  const ink = theme === "light" ? [24, 8, 24] : [255, 255, 255];
  for (let code = 0; code < states; code += 1) {
    for (let level = 0; level < LEVELS; level += 1) {
      const shade = shadeOf(theme, code, level);
      table[code * LEVELS + level] = packed(shade);
      lines[code * LEVELS + level] = mixed(shade, ink, INK[theme]);
    }
  }
  return { table, lines };
}

/**
 * Hatching by code, in CSS px of the whole map, so that it also shows across cells of 2 px: without
 * colour it tells every state but fine. Non-finite: crossed; large: rising; dead and off: level;
 * constant: upright lines; unchanged: falling. Half of the channels or more have denser ones; large
 * and dead has two.
 * @type {readonly (Hatch|null)[]}
 */
export const HATCHES = Object.freeze([
  null,
  null,
  (_, y) => y % 12 === 0,
  (x, y) => (x - y + 9000) % 9 === 0,
  (x) => x % 9 === 0,
  (_, y) => y % 9 === 0,
  (x) => x % 4 === 0,
  (_, y) => y % 4 === 0,
  (x, y) => (x + y) % 5 === 0,
  (x, y) => y % 4 === 0 || (x + y) % 10 === 0,
  (x, y) => (x + y) % 6 === 0 || (x - y + 6000) % 6 === 0,
]);

/**
 * True for a state whose cells have a shade, and dots where it is not known.
 * @param {number} code
 */
export function isShaded(code) {
  return code > 0 && code < CODE.CONSTANT;
}

/** Dots of a cell whose brightness is not known. @type {Hatch} */
export const DOTS = (x, y) => x % 4 === 1 && y % 4 === 1;

// The states that a layer can be in at a step, and the brightness of its cell of the map.

/** Codes of the states, ascending in severity; the server finds them (`health/states.py`). */
export const CODE = Object.freeze({
  UNKNOWN: 0,
  FINE: 1,
  OFF: 2,
  UNCHANGED: 3,
  CONSTANT: 4,
  DEAD: 5,
  MOSTLY_CONSTANT: 6,
  MOSTLY_DEAD: 7,
  LARGE: 8,
  LARGE_AND_DEAD: 9,
  NONFINITE: 10,
});

/** The kind of fault of each code, also the keys of `since`. @type {readonly (FaultName|null)[]} */
// prettier-ignore
export const KINDS = Object.freeze([
  null, null, null, "unchanged", "constant", "dead", "constant", "dead", "large", "dead",
  "nonfinite",
]);

/** True for large values, whatever else is true of them. @param {number} code */
export const isLarge = (code) => code === CODE.LARGE || code === CODE.LARGE_AND_DEAD;

/** From this code on a state is severe. */
export const SEVERE = CODE.MOSTLY_CONSTANT;

/** What "large" is; "" if no layer is so. @param {Health} of */
export function largeText(of) {
  const isPresent = [...tableOf(of).present].some(isLarge);
  return isPresent ? `large: ${of.states[CODE.LARGE].what}` : "";
}

/** Brightness: the range of values of each cell. @param {Health} of */
export function shadingOf({ cells: { codes, levels }, scale: { lo, hi } }) {
  let hasGaps = false;
  for (let i = 0; i < levels.length && !hasGaps; i += 1) {
    hasGaps = levels[i] === UNKNOWN_LEVEL && isShaded(codes[i]);
  }
  return { levels, lo: lo ?? NaN, hi: hi ?? NaN, hasGaps };
}

/** States and brightness of a run's cells. */
export const tableOf = once((/** @type {Health} */ of) => {
  const { codes } = of.cells; // [steps, layers]
  const count = of.layers.length;
  const worst = new Uint8Array(count); // the largest code of each layer
  const counts = new Uint32Array(256);
  for (let start = 0; start < codes.length; start += count) {
    for (let layer = 0; layer < count; layer += 1) {
      const code = codes[start + layer];
      counts[code] += 1;
      if (code > worst[layer]) worst[layer] = code;
    }
  }
  const present = new Set(Object.values(CODE).filter((code) => counts[code] > 0));
  return { worst, present, shading: shadingOf(of) };
});

/** The steps with a fault, ascending, and the layers that have the most severe kind of each. */
export const faultsOf = once((/** @type {Health} */ of) => {
  /** @type {Map<number, {code: number, rows: number[]}>} */
  const worst = new Map();
  /** @param {number} step @param {number} code @param {number} row */
  const add = (step, code, row) => {
    const known = worst.get(step);
    if (known && KINDS[known.code] === KINDS[code]) known.rows.push(row);
    else if (!known || code > known.code) worst.set(step, { code, rows: [row] });
  };
  const { codes } = of.cells;
  const count = of.layers.length;
  of.steps.forEach((step, at) => {
    const own = codes.subarray(at * count, (at + 1) * count);
    const most = own.reduce((a, b) => Math.max(a, b), 0);
    if (KINDS[most])
      own.forEach((code, row) => KINDS[code] === KINDS[most] && add(step, most, row));
  });
  const kept = new Set(of.steps);
  for (const [kind, rows] of Object.entries(of.since)) {
    const code = KINDS.findIndex((each) => each === kind);
    // Weights that are unchanged since a step had still changed at it.
    for (const [row, step] of code > CODE.UNCHANGED ? Object.entries(rows) : []) {
      if (!kept.has(step)) add(step, code, Number(row));
    }
  }
  return [...worst]
    .sort(([a], [b]) => a - b)
    .map(([step, { code, rows }]) => ({
      step,
      kind: /** @type {FaultName} */ (KINDS[code]),
      layers: rows.map((row) => of.layers[row]),
    }));
});

/**
 * The kind of fault of one layer at each step that has one.
 * @param {Health} of @param {string} key of the layer
 */
export function faultsOfLayer(of, key) {
  const row = of.layers.findIndex((each) => each.key === key);
  /** @type {Map<number, FaultName>} */
  const found = new Map();
  of.steps.forEach((step, at) => {
    const kind = row < 0 ? null : KINDS[of.cells.codes[at * of.layers.length + row]];
    if (kind) found.set(step, kind);
  });
  return found;
}

// Describes a cell of the map of layers × steps in words.

/**
 * Numbers of a cell, one phrase per known one.
 * @param {Numbers} value @param {HealthLayer} layer
 */
function cellNumbers(value, layer) {
  const share = (/** @type {string} */ name, /** @type {string} */ word) =>
    value(name) > 0 ? `${percent(value(name))} ${word}` : "";
  const faults = [share("nonfinite", "non-finite"), share("dead", inWordsOf("dead"))];
  const known = [...faults, share("constant", "constant")].filter(Boolean);
  const [least, most] = [value("minimum"), value("maximum")];
  return [
    known.length ? `of ${counted(layer.channels, tileText(layer))}: ${known.join(", ")}` : "",
    Number.isNaN(least) ? "" : `values ${short(least)} … ${short(most)}`,
    value("change") >= 0 ? `maps changed by ${short(value("change"))} standard deviations` : "",
    value("weights_change") >= 0
      ? `weights changed by about ${short(100 * value("weights_change"), 2)} % (mean over channels)`
      : "",
  ].filter(Boolean);
}

/**
 * First logged step of a state that lasts; "" where it is not known.
 * @param {Health} of @param {number} at
 */
function sinceText(of, at) {
  const { codes } = of.cells;
  const count = of.layers.length;
  const [row, step, code] = [at % count, of.steps[Math.floor(at / count)], codes[at]];
  const since = of.since[KINDS[code] ?? ""]?.[row];
  if (since === undefined || since > step) return "";
  if (code === CODE.UNCHANGED) return `the weights are those of step ${stepText(since)}`;
  // What is stored is since when a tenth of the channels are so.
  if (code < SEVERE || code === CODE.LARGE || code === CODE.NONFINITE)
    return `without interruption since step ${stepText(since)}`;
  const own = of.steps.map((_, i) => codes[i * count + row]);
  const before = own.findLastIndex((each) => each !== code);
  const onset = of.steps[before + 1];
  if (onset === undefined || onset > step) return "";
  return `at every kept step since step ${stepText(onset)}`;
}

/**
 * Everything about a cell, one line each.
 * @param {Health} of @param {number} at index in [steps, layers]
 * @param {Numbers|string} numbers of the cell, or why there are none
 */
export function cellLines(of, at, numbers) {
  const layer = of.layers[at % of.layers.length];
  const step = of.steps[Math.floor(at / of.layers.length)];
  const code = of.cells.codes[at];
  const { word, what } = of.states[code];
  const shown = of.layers.find(({ key }) => key !== null && key === layer.shown_at);
  const instead = shown
    ? `no pictures of its own; nearest drawn layer: ${callName(shown)}`
    : "no pictures of this run are logged";
  return [
    `${callName(layer)} · ${wordOf(of.step_words, step)}`,
    code > 1 ? `${inWordsOf(word)}: ${what}` : word,
    sinceText(of, at),
    ...(typeof numbers === "string" ? [numbers] : cellNumbers(numbers, layer)),
    layer.key === null ? instead : "",
  ].filter(Boolean);
}

// The numbers of a cell of the map of layers × steps, requested by step where they are many.

/**
 * Numbers of a cell, or why they are not there. @param {Cache} cache @param {Pass} pass
 * @param {Health} health @param {number} at index in [steps, layers] @returns {Numbers|string}
 */
export function numbersOf(cache, pass, health, at) {
  if (Object.keys(health.arrays).length) return numbers(health.arrays, at);
  const count = health.layers.length;
  const i = Math.floor(at / count);
  const of = { run: health.run, step: health.steps[i], ts: health.wall_times[i] };
  cache.begin(pass);
  const load = (/** @type {AbortSignal} */ signal) => numbersAt(of, signal);
  const bytes = (/** @type {NamedArrays} */ arrays) => 4 * count * Object.keys(arrays).length;
  const { value, error } = cache.get(`numbers_at/${JSON.stringify(of)}`, load, { of: pass, bytes });
  cache.end(pass);
  return value ? numbers(value, at % count) : (error?.message ?? "numbers: loading …");
}

/** @param {NamedArrays} arrays @param {number} at @returns {Numbers} */
function numbers(arrays, at) {
  return (name) => arrays[name]?.values[at] ?? NaN;
}
