// @ts-check
/** The contact sheet's answers, `data/sheet` and `data/sheet_input`, and their cache. */

import { binary } from "./api.js";
import { arrays, octets } from "./container.js";

/** @import {Cache} from "./cache.js" */
/** @import {NamedArrays} from "./container.js" */
/** @import {SheetInputAnswer, SheetRow} from "./routes.js" */

/** @typedef {Omit<SheetInputAnswer, "arrays"> & {pixels: Uint8Array, cell: number}} SheetInput */

/**
 * What a sheet is asked for.
 * @typedef {object} Asked
 * @property {string} run
 * @property {string} name of the model whose input is shown
 * @property {readonly number[]} steps
 * @property {number} cell side, device px
 */

/**
 * @param {Omit<Asked, "name">} of @param {readonly string[]} keys @param {AbortSignal} signal
 */
async function page({ run, steps, cell }, keys, signal) {
  const query = { run, key: [...keys], step: steps.map(String), cell };
  const { json, body } = await binary("sheet", query, signal);
  const { pixels, ...others } = json.arrays;
  const { height, width, lo, hi } = arrays(body, others);
  return pageOf(json.rows, octets(body, pixels), { height, width, lo, hi }, cell, steps.length);
}

const NONE = new Float32Array(0);

/**
 * @param {SheetRow[]} rows @param {Uint8Array} pixels @param {NamedArrays} of @param {number} cell
 * @param {number} steps
 */
export function pageOf(rows, pixels, of, cell, steps) {
  const [height, width] = [of.height?.values ?? NONE, of.width?.values ?? NONE];
  const starts = [];
  let at = 0;
  for (const [i, high] of height.entries()) {
    starts.push(at);
    at += high * width[i];
  }
  const [lo, hi] = [of.lo?.values ?? NONE, of.hi?.values ?? NONE];
  return { rows, pixels, height, width, lo, hi, starts, cell, steps };
}

/** @typedef {ReturnType<typeof pageOf>} SheetPage arrays are [rows, steps], `starts` says where each map begins in `pixels` */

/** @param {{pixels: Uint8Array}} found */
const memory = ({ pixels }) => pixels.byteLength;

export class SheetSource {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
  }

  /** @param {Asked} of @param {readonly string[]} keys */
  page({ name: _, ...of }, keys) {
    const load = (/** @type {AbortSignal} */ signal) => page(of, keys, signal);
    return this.cache.get(`sheet/${JSON.stringify([of, keys])}`, load, { bytes: memory });
  }

  /** @param {Asked} of @returns {import("./cache.js").Entry<SheetInput>} */
  input(of) {
    const { steps, ...query } = of;
    const load = async (/** @type {AbortSignal} */ signal) => {
      const asked = { ...query, step: steps.map(String) };
      const { json, body } = await binary("sheet_input", asked, signal);
      return { ...json, pixels: octets(body, json.arrays["pixels"]), cell: of.cell };
    };
    return this.cache.get(`sheet_input/${JSON.stringify(of)}`, load, { bytes: memory });
  }
}
