// @ts-check
/** Answers the tab's questions from what is embedded in the page of a report. */

import { decodeMaps, partText, samePixels, sideOf, valueRange } from "./decode.js";
import { loaders, pageOf } from "./health.js";
import { VALUES } from "./palettes.js";
import * as api from "./api.js";

/** @import {Answering, Asked, Embedded, Maps, Planes, Query} from "./server.js" */

/** The function for `answerFrom`. @param {Embedded} of @returns {Answering} */
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

/** How the index names a question; times are left out. @param {string} path @param {Query} query */
export function question(path, query) {
  const entries = Object.entries(query).filter(([name]) => name !== "ts");
  const texts = entries.map(([name, value]) => [name, String(value)]);
  return JSON.stringify([path, ...texts.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

// In a report: pages of the contact sheet, made from embedded maps as the server makes them.

const ROLE = "feature_maps";
/** Of each cell of a page. */
const NUMBERS = /** @type {const} */ (["height", "width", "lo", "hi", "least", "most"]);

/** @type {typeof loaders.page} */
export async function page(asked, keys, signal) {
  const { steps, cell } = asked;
  const rows = await Promise.all(keys.map((key) => rowOf(asked, key, signal)));
  const cells = rows.flatMap((row) => row.cells);
  const arrays = Object.fromEntries(
    NUMBERS.map((name) => [
      name,
      { shape: [cells.length], values: Float32Array.from(cells, (of) => of[name]) },
    ]),
  );
  const pixels = new Uint8Array(await new Blob(cells.map((of) => of.pixels)).arrayBuffer());
  const facts = rows.map((row) => row.facts);
  return pageOf(facts, pixels, arrays, cell, steps.length);
}

/** @param {Omit<Asked, "name">} of @param {string} key @param {AbortSignal} signal */
async function rowOf({ run, steps, cell }, key, signal) {
  const layer = (await api.layers(run, signal)).layers.find((each) => each.key === key);
  const found = await Promise.all(
    steps.map(async (step) => {
      if (!layer?.steps.includes(step)) return null;
      const stored = await api.binary("maps", { run, key, step, ts: 0 }, signal);
      return decodeMaps(stored, (role, sample) => role === ROLE && sample === 0);
    }),
  );
  const history = await api.binary("history", { run, key, sample: 0, ts: 0 }, signal);
  const channel = found.some(Boolean) ? history.json.shown : null;
  const drawn = found.find(Boolean)?.header.pictures.find((each) => each.role === ROLE);
  const picture = drawn?.role === "kernels" ? null : drawn;
  return {
    facts: {
      key,
      channel,
      palette: picture?.palette ?? "",
      view: picture ? partText(picture) : "",
    },
    cells: found.map((maps) => cellOf(maps, channel, cell)),
  };
}

/** @param {Maps|null} maps @param {number|null} channel @param {number} cell side, px */
function cellOf(maps, channel, cell) {
  const side = maps && sideOf(maps, ROLE, 0);
  if (!side || channel === null || channel >= side.planes.channels) {
    const none = { lo: NaN, hi: NaN, least: NaN, most: NaN };
    return { height: 0, width: 0, ...none, pixels: new Uint8Array(0) };
  }
  const [lo, hi] = [side.lo[channel], side.hi[channel]];
  const [least, most] = valueRange(side, channel);
  return { ...shrunk(side.planes, channel, cell), lo, hi, least, most };
}

/**
 * A channel as palette indices, averaged, unless it is one row, which is drawn as a curve; marks
 * are kept.
 * @param {Planes} planes @param {number} channel @param {number} cell px
 */
function shrunk({ height: high, width: wide, levels, marks }, channel, cell) {
  const factor = high === 1 ? 1 : Math.min(1, cell / Math.max(high, wide));
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

/** @type {typeof loaders.input} */
export async function input({ run, name, steps, cell }, signal) {
  const pictures = await Promise.all(
    steps.map((step) =>
      api.picture("input", { run, name, sample: 0, step, ts: 0 }, signal).catch(() => null),
    ),
  );
  const kept = pictures.filter((each) => each !== null);
  const [first, ...others] = kept;
  if (!first) throw new Error("no input");
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
  return { same, width, height, kept: pictures.map(Boolean), pixels, cell };
}
