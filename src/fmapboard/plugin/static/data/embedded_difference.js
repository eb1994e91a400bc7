// @ts-check
/** In a report: how much layers differ, computed from embedded maps as the server does. */

import * as api from "./api.js";
import { decodeInput, decodeMaps, sideOf } from "./decoded_maps.js";
import { samePixels } from "./same_input.js";
import { MARK } from "../draw/palettes.js";
import { indexOf } from "../state/steps.js";

/** @typedef {import("../draw/value_scale.js").Side} Side */
/** @typedef {import("./routes.js").LayerDifference} LayerDifference */
/** @typedef {{run: string, step: number, sample: number, role: string}} Column */

/**
 * A layer of a column, at its last step up to the column's.
 * @typedef {object} Reading
 * @property {Column} column
 * @property {string} name of the model
 * @property {number} step
 * @property {import("./decoded_maps.js").Maps} maps
 */

/** @typedef {Pick<LayerDifference, "value"|"rounding"|"ratio"|"nonfinite">} Result */

/**
 * The answer of `data/difference`.
 * @param {import("./api.js").Query} query @param {AbortSignal} signal @returns {Promise<Response>}
 */
export async function differences(query, signal) {
  const [keys, others] = [[query.key].flat(), [query.other_key].flat()];
  const inputs = new Map();
  const layers = await Promise.all(
    keys.map(async (key, i) => {
      const a = await reading(column(query, ""), String(key), signal);
      const b = await reading(column(query, "other_"), String(others[i]), signal);
      const facts = { key: String(key), other_key: String(others[i]) };
      return { ...facts, ...(await compared(a, b, inputs, signal)) };
    }),
  );
  return new Response(JSON.stringify({ layers }, spelled));
}

/** JSON has no other numbers than finite ones. @param {string} _ @param {unknown} value */
function spelled(_, value) {
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}

/** @param {import("./api.js").Query} query @param {string} prefix @returns {Column} */
function column(query, prefix) {
  const of = (/** @type {string} */ name) => query[prefix + name];
  const [step, sample] = [Number(of("step")), Number(of("sample"))];
  return { run: String(of("run")), step, sample, role: String(of("role")) };
}

/**
 * @param {Column} of @param {string} key @param {AbortSignal} signal
 * @returns {Promise<Reading|string>} text on why there is none
 */
async function reading(of, key, signal) {
  const { run, role, sample } = of;
  const layer = (await api.layers(run, signal)).layers.find((each) => each.key === key);
  if (!layer?.steps.length) return `no layer ${key} in run ${run}`;
  const step = layer.steps[indexOf(layer.steps, of.step)];
  try {
    const answer = await api.maps({ run, key, step, ts: 0 }, signal);
    const maps = await decodeMaps(answer, (r, s) => r === role && s === sample);
    return { column: of, name: layer.name, step, maps };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * @param {Reading|string} a @param {Reading|string} b
 * @param {Map<string, Promise<ImageBitmap|null>>} inputs known ones @param {AbortSignal} signal
 * @returns {Promise<Omit<LayerDifference, "key"|"other_key">>}
 */
async function compared(a, b, inputs, signal) {
  const none = { measure: null, value: null, rounding: null, ratio: null, nonfinite: null };
  if (typeof a === "string" || typeof b === "string") {
    const why = typeof a === "string" ? a : String(b);
    return { ...none, inputs: null, step: null, other_step: null, why };
  }
  const facts = {
    inputs: await sameInputs(a, b, inputs, signal),
    step: a.step,
    other_step: b.step,
  };
  const sides = [a, b].map(({ column: { role, sample }, maps }) => sideOf(maps, role, sample));
  const ofMaps = facts.inputs === "same" && sides[0] && sides[1] && byMaps(sides[0], sides[1]);
  if (ofMaps) return { ...facts, ...ofMaps, measure: "maps", why: "" };
  const [first, second] = [a, b].map(statistics);
  if (first && second && first[0].length === second[0].length) {
    return { ...facts, ...byStatistics(first, second), measure: "statistics", why: "" };
  }
  const isMissing = !first || !second;
  const why = isMissing ? "no statistics were recorded" : "not the same number of channels";
  return { ...facts, ...none, why };
}

/**
 * @param {Reading} a @param {Reading} b @param {Map<string, Promise<ImageBitmap|null>>} known
 * @param {AbortSignal} signal @returns {Promise<"same"|"different"|"unknown">}
 */
async function sameInputs(a, b, known, signal) {
  const places = [a, b].map(({ column: { run, sample }, name, step }) => ({
    ...{ run, name, sample, step },
    ts: 0,
  }));
  if (JSON.stringify(places[0]) === JSON.stringify(places[1])) return "same";
  const pictures = places.map((place) => {
    const key = JSON.stringify(place);
    const found = known.get(key) ?? api.input(place, signal).then(decodeInput, () => null);
    known.set(key, found);
    return found;
  });
  const [first, second] = await Promise.all(pictures);
  if (!first || !second) return "unknown";
  return samePixels(first, second) ? "same" : "different";
}

/** Root mean square difference of maps; null if they differ in size. @param {Side} a @param {Side} b @returns {Result|null} */
export function byMaps(a, b) {
  const { channels, height, width } = a.planes;
  const other = b.planes;
  if (channels !== other.channels || height !== other.height || width !== other.width) return null;
  const [own, its] = [values(a), values(b)];
  let [count, apart, first, second] = [0, 0, 0, 0];
  for (let i = 0; i < own.length; i += 1) {
    const [x, y] = [own[i], its[i]];
    if (Number.isNaN(x) || Number.isNaN(y)) continue;
    count += 1;
    apart += (x - y) ** 2;
    first += x * x;
    second += y * y;
  }
  if (!count) return { value: null, rounding: null, ratio: null, nonfinite: 1 };
  const size = Math.sqrt((first + second) / count / 2) || 1;
  const units = [a, b].map(squaredUnit);
  return {
    value: Math.sqrt(apart / count) / size,
    rounding: Math.sqrt((units[0] + units[1]) / 3) / size,
    ratio: ratio(first, second),
    nonfinite: 1 - count / own.length,
  };
}

/** Values of all maps, NaN where they are not finite. @param {Side} side */
function values({ planes, lo, hi }) {
  const { levels, marks } = planes;
  const each = planes.height * planes.width;
  const found = new Float64Array(levels.length);
  for (let i = 0; i < levels.length; i += 1) {
    const c = Math.floor(i / each);
    const mark = marks ? marks[i] : 0;
    const start = Number.isFinite(lo[c]) ? lo[c] : 0;
    if (mark >= MARK.CONSTANT) found[i] = start;
    else found[i] = mark >= MARK.NAN ? NaN : start + (span(lo[c], hi[c]) * levels[i]) / 255;
  }
  return found;
}

/** @param {number} lo @param {number} hi */
function span(lo, hi) {
  return Number.isFinite(hi - lo) ? hi - lo : 0;
}

/** Mean over channels of the squared largest rounding error of a value. @param {Side} side */
function squaredUnit({ planes, lo, hi }) {
  const steps = planes.coarse === 1 ? 255 : 250;
  const units = Array.from(lo, (start, c) => (span(start, hi[c]) / steps / 2) ** 2);
  return units.reduce((sum, unit) => sum + unit, 0) / units.length;
}

/** Mean and standard deviation of each channel. @param {Reading} of @returns {[Float32Array, Float32Array]|null} */
function statistics({ column: { role }, maps }) {
  const [mean, std] = [maps.arrays[`${role}.mean`], maps.arrays[`${role}.std`]];
  return mean ? [mean.values, std?.values ?? new Float32Array(mean.values.length)] : null;
}

/** @param {Float32Array[]} a @param {Float32Array[]} b @returns {Result} */
function byStatistics(a, b) {
  let [count, apart, ofA, ofB] = [0, 0, 0, 0];
  for (let c = 0; c < a[0].length; c += 1) {
    const [first, second] = [a, b].map((each) => each.map((of) => of[c]));
    if (![...first, ...second].every(Number.isFinite)) continue;
    count += 1;
    first.forEach((x, i) => {
      apart += (x - second[i]) ** 2;
      ofA += x * x;
      ofB += second[i] ** 2;
    });
  }
  if (!count) return { value: null, rounding: null, ratio: null, nonfinite: 1 };
  const size = Math.sqrt((ofA + ofB) / count / 4) || 1;
  return {
    value: Math.sqrt(apart / count / 2) / size,
    rounding: null,
    ratio: ratio(ofA, ofB),
    nonfinite: 1 - count / a[0].length,
  };
}

/** Root of a quotient of sums of squares; null if both are 0. @param {number} a @param {number} b */
function ratio(a, b) {
  return a || b ? Math.sqrt(b / a) : null;
}
