// @ts-check
/** The state of each layer at each step, from its numbers, and the brightness of its cell. */

import { LARGE } from "../draw/palettes.js";

/** @typedef {import("../data/health.js").Health} Health */
/** @typedef {"range"|"change"} Shade what the brightness of a cell shows */

/** Shares of dead or constant channels from which a layer is in that state, and severely so. */
const MINOR = 0.1;
const MAJOR = 0.5;

/** Codes of the states, ascending in severity: the worst of several is the largest. */
export const CODE = Object.freeze({
  UNKNOWN: 0,
  FINE: 1,
  UNCHANGED: 2,
  CONSTANT: 3,
  DEAD: 4,
  MOSTLY_CONSTANT: 5,
  MOSTLY_DEAD: 6,
  LARGE: 7,
  NONFINITE: 8,
});

/** From this code on a state is severe. */
export const SEVERE = CODE.MOSTLY_CONSTANT;

/**
 * Word and meaning of each state, by code.
 * @type {readonly {word: string, what: string}[]}
 */
export const STATES = Object.freeze([
  { word: "not recorded", what: "no number of the layer is known at this step" },
  { word: "fine", what: "none of the other states" },
  { word: "unchanged", what: "no weight has changed since the logged step before" },
  { word: "constant", what: "10 % of the channels or more hold one single value" },
  { word: "dead", what: "10 % of the channels or more are 0 everywhere after the activation" },
  { word: "mostly constant", what: "half of the channels or more hold one single value" },
  {
    word: "mostly dead",
    what: "half of the channels or more are 0 everywhere after the activation",
  },
  { word: "large", what: "magnitudes of 10 000 or more" },
  { word: "non-finite", what: "NaN or infinity" },
]);

/** @param {Health} of @param {string} name @returns {Float32Array} NaN throughout if not there */
export function column(of, name) {
  const found = of.arrays[name]?.values;
  return found ?? new Float32Array(of.steps.length * of.layers.length).fill(NaN);
}

/** Largest error of a difference of two shares. */
const ROUNDING = 1e-6;

/**
 * Shares of channels that are constant but not dead activations, as `overview_format` counts them.
 * @param {Health} of @param {Float32Array} dead [steps, layers]
 */
function constantAlone(of, dead) {
  const constant = column(of, "constant").slice();
  const count = of.layers.length;
  for (let i = 0; i < constant.length; i += 1) {
    if (of.layers[i % count].activation === null && dead[i] > 0) constant[i] -= dead[i] - ROUNDING;
  }
  return constant;
}

/** @param {Health} of @returns {Uint8Array} codes [steps, layers] */
function codesOf(of) {
  const [bad, dead] = [column(of, "nonfinite"), column(of, "dead")];
  const constant = constantAlone(of, dead);
  const [least, most, weights] = [
    column(of, "minimum"),
    column(of, "maximum"),
    column(of, "weights_change"),
  ];
  const codes = new Uint8Array(of.steps.length * of.layers.length);
  for (let i = 0; i < codes.length; i += 1) {
    if (bad[i] > 0) codes[i] = CODE.NONFINITE;
    else if (least[i] <= -LARGE || most[i] >= LARGE) codes[i] = CODE.LARGE;
    else if (dead[i] >= MAJOR) codes[i] = CODE.MOSTLY_DEAD;
    else if (constant[i] >= MAJOR) codes[i] = CODE.MOSTLY_CONSTANT;
    else if (dead[i] >= MINOR) codes[i] = CODE.DEAD;
    else if (constant[i] >= MINOR) codes[i] = CODE.CONSTANT;
    else if (weights[i] === 0) codes[i] = CODE.UNCHANGED;
    else if (bad[i] === 0 || least[i] <= most[i]) codes[i] = CODE.FINE;
  }
  return codes;
}

/**
 * Brightness of the cells.
 * @typedef {object} Shading
 * @property {Shade} shade
 * @property {Float32Array} values [steps, layers], 0…1, NaN where not known
 * @property {number} lo value of brightness 0: smaller ones have it too
 * @property {number} hi value of brightness 1: larger ones have it too
 * @property {string} text what it shows
 */

/** Share of the values at each end that the scale leaves out, so that one outlier cannot rule it. */
const TAIL = 0.02;
const SAMPLE = 20000;
/** Smallest extent of the scale, so that small differences do not look like large ones. */
const DECADES = 1;

/**
 * The scale is that of the cells without large values, which would leave the others no difference.
 * @param {Health} of @param {Uint8Array} codes @param {Shade} shade @returns {Shading}
 */
function shadingOf(of, codes, shade) {
  const { raw, text } = shade === "range" ? widths(of) : changes(of);
  const every = Math.max(1, Math.floor(raw.length / SAMPLE));
  /** @type {number[]} */
  const known = [];
  for (let i = 0; i < raw.length; i += every) {
    if (codes[i] < CODE.LARGE && raw[i] > 0 && raw[i] < Infinity) known.push(Math.log10(raw[i]));
  }
  known.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => known[Math.round(share * (known.length - 1))] ?? 0;
  const missing = Math.max(0, DECADES - (at(1 - TAIL) - at(TAIL)));
  const [lo, hi] = [at(TAIL) - missing / 2, at(1 - TAIL) + missing / 2];
  const values = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) {
    const place = raw[i] > 0 ? (Math.log10(raw[i]) - lo) / (hi - lo) : raw[i];
    values[i] = Math.min(1, Math.max(0, place)); // NaN stays NaN
  }
  return { shade, values, lo: known.length ? 10 ** lo : NaN, hi: 10 ** hi, text };
}

/** @param {Health} of */
function widths(of) {
  const [least, most] = [column(of, "minimum"), column(of, "maximum")];
  return { raw: differences(most, least), text: "range of values (maximum − minimum)" };
}

/** @param {Float32Array} a @param {Float32Array} b */
function differences(a, b) {
  const out = new Float32Array(a.length);
  for (let i = 0; i < a.length; i += 1) out[i] = a[i] - b[i];
  return out;
}

/** Changes of the maps, otherwise of the weights: they have different units. @param {Health} of */
function changes(of) {
  const maps = column(of, "change");
  if (maps.some((value) => value >= 0)) {
    return { raw: maps, text: "change of the maps since the logged step before, in std" };
  }
  return {
    raw: column(of, "weights_change"),
    text: "change of the weights since the logged step before, relative to their norm",
  };
}

/**
 * @typedef {object} Table
 * @property {Uint8Array} codes [steps, layers]
 * @property {Uint8Array} worst [layers], the largest code of each
 * @property {(shade: Shade) => Shading} shading
 */

/** @type {WeakMap<Health, Table>} */
const tables = new WeakMap();

/** States and brightness of a run's cells, computed once per answer. @param {Health} of @returns {Table} */
export function tableOf(of) {
  const held = tables.get(of);
  if (held) return held;
  const codes = codesOf(of);
  const count = of.layers.length;
  const worst = new Uint8Array(count);
  for (let i = 0; i < codes.length; i += 1) {
    if (codes[i] > worst[i % count]) worst[i % count] = codes[i];
  }
  /** @type {Partial<Record<Shade, Shading>>} */
  const shadings = {};
  const table = {
    codes,
    worst,
    shading: (/** @type {Shade} */ shade) => (shadings[shade] ??= shadingOf(of, codes, shade)),
  };
  tables.set(of, table);
  return table;
}
