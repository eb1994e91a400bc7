// @ts-check
/** Which layer each activation directly follows. */

import { arrays, open } from "./container.js";

/** @import {History} from "../model/scene.js" */
/** @import {Layer} from "./answers.js" */
/** @import {Container} from "./container.js" */
/** @import {AttributionAnswer, DifferenceAnswer, HistoryAnswer as HistoryFacts, LayerPatchesAnswer, MapsAnswer as MapsFacts, NumbersAnswer, PatchesAnswer, RunsAnswer} from "./routes.js" */

/**
 * The layers, activations with the label of the layer that they directly follow as `behind`.
 * @template {{name: string, label: string, activation: string|null}} T
 * @param {T[]} layers @returns {(T & {behind?: string})[]}
 */
export function withFeeders(layers) {
  const place = (/** @type {string} */ name, /** @type {string} */ label) => `${name}\n${label}`;
  /** @type {Map<string, string>} */
  const feeders = new Map();
  for (const { name, label, activation } of layers) {
    if (activation === null || feeders.has(place(name, activation))) continue;
    feeders.set(place(name, activation), label);
  }
  return layers.map((layer) => {
    const behind = feeders.get(place(layer.name, layer.label));
    return behind === undefined ? layer : { ...layer, behind };
  });
}

// Requests to the server, one function per route.

/** @typedef {Omit<import("./routes.js").LayersAnswer, "layers"> & {layers: Layer[]}} LayersAnswer */

const BASE = new URL("../data/", import.meta.url);

/** A failed request; `status` is HTTP's, 0 if the server did not answer. */
export class ServerError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @typedef {Record<string, string|number|string[]>} Query a list is sent as repeated values */
/** @typedef {(path: string, query: Query, signal: AbortSignal) => Promise<Response>} Answering */

/** @type {Answering} */
function fromServer(path, query, signal) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) url.searchParams.append(name, String(each));
  }
  return fetch(url, { signal, credentials: "same-origin" });
}

let answering = fromServer;

/** Has all questions answered by something else than the server. @param {Answering} other */
export function answerFrom(other) {
  answering = other;
}

/**
 * @param {string} path relative to the plugin's `data/`
 * @param {Query} query @param {AbortSignal} signal
 */
export async function ask(path, query, signal) {
  let answer;
  try {
    answer = await answering(path, query, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ServerError(0, "TensorBoard does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let said = text;
  try {
    said = JSON.parse(text).error ?? text;
  } catch {
    // not from fmapboard: TensorBoard's own error page
  }
  throw new ServerError(answer.status, `${said || "no answer"} (HTTP ${answer.status})`);
}

/** @param {AbortSignal} signal @returns {Promise<RunsAnswer>} */
export async function runs(signal) {
  return (await ask("runs", {}, signal)).json();
}

/** @param {string} run @param {AbortSignal} signal @returns {Promise<LayersAnswer>} */
export async function layers(run, signal) {
  /** @type {LayersAnswer} */
  const answer = await (await ask("layers", { run }, signal)).json();
  for (const layer of answer.layers) {
    layer.steps ??= answer.steps;
    layer.wall_times ??= answer.wall_times;
  }
  return { ...answer, layers: withFeeders(answer.layers) };
}

/**
 * @param {string} run @param {string} key @param {AbortSignal} signal
 * @returns {Promise<NumbersAnswer>}
 */
export async function numbers(run, key, signal) {
  return (await ask("numbers", { run, key }, signal)).json();
}

/**
 * @param {Record<string, string|number|string[]>} query two sides and pairs of layers
 * @param {AbortSignal} signal @returns {Promise<DifferenceAnswer>}
 */
export async function difference(query, signal) {
  return (await ask("difference", query, signal)).json();
}

/**
 * @param {{run: string, key: string, sample: number, ts: number}} of `ts` lets the browser cache it
 * @param {AbortSignal} signal @returns {Promise<History>}
 */
export async function history(of, signal) {
  const answer = await ask("history", of, signal);
  /** @type {Container<HistoryFacts>} */
  const { json, body } = open(await answer.arrayBuffer());
  return { steps: json.steps, kernels: json.kernels, arrays: arrays(body, json.arrays) };
}

/**
 * @param {{run: string, key: string, step: number, ts: number}} of @param {AbortSignal} signal
 * @returns {Promise<Container<MapsFacts>>}
 */
export async function maps({ run, key, step, ts }, signal) {
  const answer = await ask("maps", { run, key, step, ts }, signal);
  return open(await answer.arrayBuffer());
}

/** @param {string} run @param {AbortSignal} signal @returns {Promise<AttributionAnswer>} */
export async function attribution(run, signal) {
  return (await ask("attribution", { run }, signal)).json();
}

/** @param {{run: string, key: string, step: number, ts: number}} of @param {AbortSignal} signal */
export async function attributionPicture(of, signal) {
  return (await ask("attribution_picture", of, signal)).blob();
}

/** @param {string} run @param {AbortSignal} signal @returns {Promise<PatchesAnswer>} */
export async function patches(run, signal) {
  return (await ask("patches", { run }, signal)).json();
}

/**
 * @param {{run: string, key: string, step: number, page: number, ts: number}} of
 * @param {AbortSignal} signal @returns {Promise<Container<LayerPatchesAnswer>>}
 */
export async function layerPatches(of, signal) {
  return open(await (await ask("layer_patches", of, signal)).arrayBuffer());
}

/**
 * @param {{run: string, name: string, sample: number, step: number, ts: number}} of
 * @param {AbortSignal} signal
 */
export async function input(of, signal) {
  return (await ask("input", of, signal)).blob();
}
