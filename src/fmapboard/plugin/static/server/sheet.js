// @ts-check
/** The contact sheet's answers, `data/sheet` and `data/sheet_input`, and their cache. */

import { ask } from "./api.js";
import { arrays, octets, open } from "./container.js";

/** @import {ArrayEntry} from "./answers.js" */
/** @import {Cache} from "./cache.js" */
/** @import {Container, NamedArrays} from "./container.js" */

/**
 * A page of the sheet.
 * @typedef {object} SheetPage
 * @property {SheetRow[]} rows one per asked layer that exists
 * @property {Uint8Array} pixels of one map after the other, palette indices between its own ends
 * @property {Float32Array} height [rows, steps], px of each map, 0 where the channel is not drawn
 * @property {Float32Array} width
 * @property {Float32Array} lo [rows, steps], NaN where the channel is not drawn
 * @property {Float32Array} hi
 * @property {number[]} starts [rows, steps], where each map begins in `pixels`
 * @property {number} cell side, device px
 * @property {number} steps
 */

/**
 * @typedef {object} SheetRow
 * @property {string} key of the layer
 * @property {number|null} channel that is shown
 * @property {string} palette in which the maps are stored
 * @property {string|null} [why] why the record of a step cannot be read
 */

/**
 * The network's input at each step.
 * @typedef {object} SheetInput
 * @property {boolean|null} same it was the same image at all steps; null if there are not two
 * @property {number} width px of each cell that the image takes
 * @property {number} height
 * @property {boolean[]} kept for each step, whether its image is
 * @property {Uint8Array} pixels [steps, cell, cell, 3]
 * @property {number} cell
 */

/**
 * What a sheet is asked for.
 * @typedef {object} Asked
 * @property {string} run
 * @property {string} name of the model whose input is shown
 * @property {readonly number[]} steps
 * @property {number} cell side, device px
 */

/**
 * @param {Asked} of @param {readonly string[]} keys @param {AbortSignal} signal
 * @returns {Promise<SheetPage>}
 */
async function page({ run, steps, cell }, keys, signal) {
  const answer = await ask("sheet", { run, key: [...keys], step: steps.map(String), cell }, signal);
  /** @type {Container<{rows: SheetRow[], arrays: Record<string, ArrayEntry>}>} */
  const { json, body } = open(await answer.arrayBuffer());
  const { pixels, ...others } = json.arrays;
  const { height, width, lo, hi } = arrays(body, others);
  return pageOf(json.rows, octets(body, pixels), { height, width, lo, hi }, cell, steps.length);
}

const NONE = new Float32Array(0);

/**
 * @param {SheetRow[]} rows @param {Uint8Array} pixels @param {NamedArrays} of @param {number} cell
 * @param {number} steps @returns {SheetPage}
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

/** @param {Asked} of @param {AbortSignal} signal @returns {Promise<SheetInput>} */
async function input({ run, name, steps, cell }, signal) {
  const query = { run, name, step: steps.map(String), cell };
  const answer = await ask("sheet_input", query, signal);
  /** @type {Container<Omit<SheetInput, "pixels"|"cell"> & {arrays: Record<string, ArrayEntry>}>} */
  const { json, body } = open(await answer.arrayBuffer());
  return { ...json, pixels: octets(body, json.arrays["pixels"]), cell };
}

export class SheetSource {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
  }

  /** @param {Asked} of @param {readonly string[]} keys */
  page(of, keys) {
    return this.cache.get(
      `sheet/${JSON.stringify([of.run, of.steps, of.cell, keys])}`,
      (signal) => page(of, keys, signal),
      { bytes: (found) => found.pixels.byteLength },
    );
  }

  /** @param {Asked} of */
  input(of) {
    return this.cache.get(
      `sheet_input/${JSON.stringify([of.run, of.name, of.steps, of.cell])}`,
      (signal) => input(of, signal),
      { bytes: (found) => found.pixels.byteLength },
    );
  }
}
