// @ts-check
/** Answers the tab's questions from what is embedded in the page of a report. */

import { decodeInput, decodeMaps, samePixels, sideOf } from "./decode.js";
import { health, numbersAt } from "./health.js";
import { MARK, VALUES } from "./palettes.js";
import { indexOf } from "./steps.js";
import * as api from "./api.js";

// Answers the tab's questions from what is embedded in the page of a report.

/**
 * @typedef {object} Embedded
 * @property {Record<string, string[]>} answers names of an answer's parts, by question
 * @property {(name: string) => Promise<ArrayBuffer>} embedded the bytes of a part
 */

/**
 * The function for `answerFrom`.
 * @param {Embedded} of @returns {import("./api.js").Answering}
 */
export function answersIn({ answers, embedded }) {
  return async (path, query) => {
    const parts = answers[question(path, query)];
    if (!parts?.length) {
      const error = "this report does not hold it";
      return new Response(JSON.stringify({ error }), { status: 404 });
    }
    return new Response(new Blob(await Promise.all(parts.map(embedded))));
  };
}

/**
 * How the index names a question; times, which only the server's caches need, are left out.
 * @param {string} path @param {import("./api.js").Query} query
 */
export function question(path, query) {
  const entries = Object.entries(query).filter(([name]) => name !== "ts");
  const texts = entries.map(([name, value]) => [name, String(value)]);
  return JSON.stringify([path, ...texts.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

// In a report: how much layers differ, computed from embedded maps as the server does.

/** @typedef {import("../model/value_scale.js").Side} Side */
/** @typedef {import("./routes.js").LayerDifference} LayerDifference */
/** @typedef {{run: string, step: number, sample: number, role: string}} Column */

/**
 * A layer of a column, at its last step up to the column's.
 * @typedef {object} Reading
 * @property {Column} column
 * @property {string} name of the model
 * @property {number} step
 * @property {import("./decode.js").Maps} maps
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

// In a report: pages of the contact sheet, made from embedded maps as the server makes them.

/** @typedef {import("./api.js").Query} Query */
/** @typedef {import("./decode.js").Maps} Maps */
/** @typedef {import("./health.js").Health} Health */

const ROLE = "feature_maps";

/**
 * What a page is asked for.
 * @typedef {{run: string, steps: number[], cell: number}} Asked
 */

/** @param {Query} query @returns {Asked} */
function askedIn({ run, step, cell }) {
  return { run: String(run), steps: [step].flat().map(Number), cell: Number(cell) };
}

/**
 * The answer of `data/sheet`.
 * @param {Query} query @param {AbortSignal} signal @returns {Promise<Response>}
 */
export async function sheets(query, signal) {
  const asked = askedIn(query);
  const table = await health(asked.run, signal);
  const stds = await Promise.all(
    asked.steps.map((step) =>
      numbersAt({ run: asked.run, step }, signal).then(
        ({ std }) => std?.values ?? null,
        () => null,
      ),
    ),
  );
  const keys = [query.key ?? []].flat().map(String);
  const rows = await Promise.all(keys.map((key) => rowOf(asked, key, table, stds, signal)));
  const cells = rows.flatMap((row) => row.cells);
  const numbers = (/** @type {"height"|"width"|"lo"|"hi"} */ name) =>
    Float32Array.from(cells, (of) => of[name]);
  return answer({ rows: rows.map((row) => row.facts) }, [
    ["height", numbers("height")],
    ["width", numbers("width")],
    ["lo", numbers("lo")],
    ["hi", numbers("hi")],
    ["pixels", joined(cells.map((of) => of.pixels))],
  ]);
}

/**
 * @param {Asked} of @param {string} key @param {Health} table
 * @param {(Float32Array|null)[]} stds of all layers at each step @param {AbortSignal} signal
 */
async function rowOf({ run, steps, cell }, key, table, stds, signal) {
  const at = table.layers.findIndex((each) => each.key === key);
  const layer = (await api.layers(run, signal)).layers.find((each) => each.key === key);
  const found = await Promise.all(
    steps.map(async (step) => {
      if (!layer?.steps.includes(step)) return null;
      const stored = await api.maps({ run, key, step, ts: 0 }, signal);
      return decodeMaps(stored, (role, sample) => role === ROLE && sample === 0);
    }),
  );
  const spreads = found.map((maps, i) => {
    const of = maps?.arrays[`${ROLE}.std`]?.values ?? new Float32Array(0);
    const whole = stds[i]?.[at] ?? NaN;
    return whole > 0 ? of.map((std) => std / whole) : of;
  });
  const channel = found.some(Boolean) ? largest(spreads) : null;
  const drawn = found.find(Boolean)?.header.pictures.find((each) => each.role === ROLE);
  const palette = (drawn && "palette" in drawn && drawn.palette) || "";
  return {
    facts: { key, channel, palette },
    cells: found.map((maps) => cellOf(maps, channel, cell)),
  };
}

/** The channel with the largest mean of what is finite. @param {Float32Array[]} spreads per step */
function largest(spreads) {
  const count = Math.max(...spreads.map((each) => each.length));
  let [best, most] = [0, -1];
  for (let c = 0; c < count; c += 1) {
    const known = spreads.map((each) => each[c]).filter(Number.isFinite);
    const mean = known.reduce((sum, each) => sum + each, 0) / Math.max(1, known.length);
    if (mean > most) [best, most] = [c, mean];
  }
  return best;
}

/** @param {Maps|null} maps @param {number|null} channel @param {number} cell side, px */
function cellOf(maps, channel, cell) {
  const side = maps && sideOf(maps, ROLE, 0);
  if (!side || channel === null || channel >= side.planes.channels) {
    return { height: 0, width: 0, lo: NaN, hi: NaN, pixels: new Uint8Array(0) };
  }
  const [lo, hi] = [side.lo[channel], side.hi[channel]];
  return { ...shrunk(side.planes, channel, cell), lo, hi };
}

/**
 * A channel as palette indices, averaged where it is larger than a cell; marks are kept.
 * @param {import("./decode.js").Planes} planes @param {number} channel @param {number} cell px
 */
function shrunk({ height: high, width: wide, levels, marks }, channel, cell) {
  const factor = Math.min(1, cell / Math.max(high, wide));
  const [height, width] = [high, wide].map((side) => Math.max(1, Math.round(side * factor)));
  const pixels = new Uint8Array(height * width);
  for (let i = 0; i < pixels.length; i += 1) {
    const [y, x] = [Math.floor(i / width), i % width];
    let [sum, count, mark] = [0, 0, 0];
    for (let v = Math.floor((y * high) / height); v < ((y + 1) * high) / height; v += 1) {
      for (let u = Math.floor((x * wide) / width); u < ((x + 1) * wide) / width; u += 1) {
        const from = (channel * high + v) * wide + u;
        const own = marks ? marks[from] : 0;
        if (own && (!mark || own < mark)) mark = own; // NaN first, as on the server
        sum += levels[from];
        count += 1;
      }
    }
    pixels[i] = mark || Math.floor(((sum / count) * VALUES) / 256);
  }
  return { height, width, pixels };
}

/**
 * The answer of `data/sheet_input`.
 * @param {Query} query @param {AbortSignal} signal @returns {Promise<Response>}
 */
export async function sheetInputs(query, signal) {
  const { run, steps, cell } = askedIn(query);
  const pictures = await Promise.all(
    steps.map((step) =>
      api
        .input({ run, name: String(query.name), sample: 0, step, ts: 0 }, signal)
        .then(decodeInput, () => null),
    ),
  );
  const kept = pictures.filter((each) => each !== null);
  const [first, ...others] = kept;
  if (!first) return new Response(JSON.stringify({ error: "no input" }), { status: 404 });
  const factor = cell / Math.max(first.width, first.height);
  const [width, height] = [first.width, first.height].map((side) =>
    Math.max(1, Math.round(side * factor)),
  );
  const pixels = new Uint8Array(steps.length * cell * cell * 3);
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  pictures.forEach((picture, i) => {
    if (!picture || !context) return;
    context.imageSmoothingEnabled = factor < 1;
    context.drawImage(picture, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    for (let p = 0; p < width * height; p += 1) {
      const to = 3 * ((i * cell + Math.floor(p / width)) * cell + (p % width));
      pixels.set(data.subarray(4 * p, 4 * p + 3), to);
    }
  });
  const same = others.length ? others.every((each) => samePixels(first, each)) : null;
  const facts = { same, width, height, kept: pictures.map(Boolean) };
  return answer(facts, [["pixels", pixels]]);
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, each) => sum + each.length, 0));
  let at = 0;
  for (const each of parts) {
    whole.set(each, at);
    at += each.length;
  }
  return whole;
}

/**
 * A binary answer as the server sends it (`container.js`).
 * @param {object} facts @param {[string, Float32Array<ArrayBuffer>|Uint8Array<ArrayBuffer>][]} arrays
 */
function answer(facts, arrays) {
  /** @type {Record<string, {offset: number, shape: number[]}>} */
  const listed = {};
  let offset = 0;
  for (const [name, values] of arrays) {
    listed[name] = { offset, shape: [values.length] };
    offset += values.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify({ ...facts, arrays: listed }));
  const length = Uint32Array.of(text.length);
  return new Response(new Blob([length, text, ...arrays.map(([, values]) => values)]));
}
