// @ts-check
/** The patches of the open channel: at the step that is shown, or the nearest search before it. */

import { arrays, bytes, decodeInput } from "../server/decode.js";
import { keyOf } from "../server/source.js";
import * as api from "../server/api.js";

/** @import {FloatArray, Layer} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {LayerPatches, State} from "./model.js" */

/**
 * @param {Source} source @param {State} state @param {Layer} layer
 * @param {number|undefined} step of the slider
 */
export function patchesOf(source, state, layer, step) {
  const { run, channel } = state;
  if (state.view !== "maps" || channel === null || state.role === "kernels") return null;
  const listed = source.json("patches", { run }, { epoch: source.epoch });
  const series = listed.value?.series.find(({ key }) => key === layer.key);
  if (!series) return null;
  const after = series.steps.findIndex((each) => step !== undefined && each > step);
  const at = after < 0 ? series.steps.length - 1 : Math.max(0, after - 1);
  const of = { run, key: layer.key, step: series.steps[at], ts: series.wall_times[at] };
  const first = load(source, { ...of, page: 0 });
  const rows = first.value?.header.picture.rows ?? Infinity;
  const page = Math.floor(channel / rows);
  const entry = page > 0 ? load(source, { ...of, page }) : first;
  const problem = entry.error?.message ?? "";
  return { channel, step: of.step, found: entry.value ?? null, problem };
}

/**
 * @param {Source} source
 * @param {{run: string, key: string, step: number, page: number, ts: number}} of
 */
function load(source, of) {
  const request = async (/** @type {AbortSignal} */ signal) => {
    const { json, body } = await api.binary("layer_patches", of, signal);
    const png = bytes(body, json.png);
    const picture = png.byteLength ? await decodeInput(new Blob([png])) : null;
    return { header: json.header, arrays: arrays(body, json.arrays), picture };
  };
  return source.cache.get(keyOf("layer_patches", of), request, {
    bytes: ({ picture }) => 1e5 + (picture ? 4 * picture.width * picture.height : 0),
  });
}

/** The crops of a channel, best first. @param {LayerPatches} found @param {number} channel */
export function cropsOf({ header, arrays: of }, channel) {
  const { k, names, picture } = header;
  const values = of.value?.values ?? new Float32Array();
  const crops = [];
  for (let i = 0; i < k; i += 1) {
    const at = channel * k + i;
    if (!(at < values.length) || Number.isNaN(values[at]) || channel >= header.searched) break;
    crops.push({
      value: values[at],
      name: names[of.image?.values[at] ?? -1] ?? "", // of the image
      field: numbers(of.field, at), // top, left, bottom, right in the image
      size: numbers(of.size, at), // height, width of the image
      place: numbers(of.place, at), // index in the layer's output
      left: picture.left + i * picture.across, // in the picture
      top: picture.top + (channel % picture.rows) * picture.down,
    });
  }
  return crops;
}

/** @param {FloatArray|undefined} array @param {number} at */
function numbers(array, at) {
  const width = array?.shape[2] ?? 0;
  return array ? [...array.values.subarray(at * width, (at + 1) * width)] : [];
}
