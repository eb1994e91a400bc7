// @ts-check
/** The frames of a film strip: one layer at many steps, and the network's input at each. */

import * as api from "./api.js";
import { decodeInput, decodeMaps, pixels, sideOf } from "./decoded_maps.js";
import { Lazy } from "./lazy.js";

/** @typedef {import("../draw/value_scale.js").Side} Side */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("./decoded_maps.js").Maps} Maps */

/**
 * A layer at one step.
 * @typedef {object} Frame
 * @property {Maps} maps with the planes of one role and sample only
 * @property {Side|null} side null if there is no picture
 * @property {ImageData|null} kernels
 */

/**
 * The network's input at one step.
 * @typedef {object} InputFrame
 * @property {OffscreenCanvas} picture shrunk to at most `INPUT_SIDE`
 * @property {string} digest of all pixels of the original: equal pictures have equal ones
 */

/** @typedef {{run: string, name: string, sample: number, step: number, ts: number}} InputQuestion */

const INPUT_SIDE = 256;

/** @param {Question} of */
function frameKey({ run, key, step, ts, role, sample }) {
  return JSON.stringify([run, key, step, ts, role, sample]);
}

/** @param {Question} of @param {AbortSignal} signal @returns {Promise<Frame>} */
async function loadFrame(of, signal) {
  const maps = await decodeMaps(
    await api.maps(of, signal),
    (role, sample) => role === "kernels" || (role === of.role && sample === of.sample),
  );
  const kernels = maps.kernels ? pixels(maps.kernels) : null;
  maps.kernels?.close();
  maps.kernels = null;
  return { maps, side: sideOf(maps, of.role, of.sample), kernels };
}

/** Memory of a frame. @param {Frame} frame */
function frameBytes({ side, kernels }) {
  const planes = side ? side.planes.levels.length * (side.planes.marks ? 2 : 1) : 0;
  return 20000 + planes + (kernels?.data.length ?? 0);
}

/** @param {() => void} changed @param {number} most requests in flight @param {number} limit bytes */
export function createFrames(changed, most = 4, limit = 128e6) {
  return new Lazy({ key: frameKey, load: loadFrame, bytes: frameBytes, changed, most, limit });
}

/** @param {InputQuestion} of @param {AbortSignal} signal @returns {Promise<InputFrame>} */
async function loadInput(of, signal) {
  const whole = await decodeInput(await api.input(of, signal));
  const factor = Math.min(1, INPUT_SIDE / Math.max(whole.width, whole.height));
  const picture = new OffscreenCanvas(
    Math.max(1, Math.round(whole.width * factor)),
    Math.max(1, Math.round(whole.height * factor)),
  );
  const found = digest(pixels(whole));
  picture.getContext("2d")?.drawImage(whole, 0, 0, picture.width, picture.height);
  whole.close();
  return { picture, digest: found };
}

/** Two 32-bit hashes (FNV-1a, and a multiplicative one) and the size of a picture. @param {ImageData} image */
export function digest({ data, width, height }) {
  let first = 0x811c9dc5;
  let second = 1;
  for (const byte of data) {
    first = Math.imul(first ^ byte, 0x01000193);
    second = (Math.imul(second, 31) + byte) | 0;
  }
  return `${width}×${height}/${first >>> 0}/${second >>> 0}`;
}

/** @param {() => void} changed */
export function createInputs(changed) {
  return new Lazy({
    key: (/** @type {InputQuestion} */ of) => JSON.stringify(of),
    load: loadInput,
    bytes: (/** @type {InputFrame} */ { picture }) => 4 * picture.width * picture.height,
    changed,
    most: 2,
    limit: 64e6,
  });
}
