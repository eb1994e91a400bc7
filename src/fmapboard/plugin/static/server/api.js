// @ts-check
/** Requests to the server, and to what answers in its place in a report. */

import { decodeInput, open } from "./decode.js";

/** @import {Answering, BinaryAnswers, Container, JsonAnswers, ListedLayers} from "./server.js" */
/** @import {Query} from "./server.js" */

const BASE = new URL("../data/", import.meta.url);

/** A failed request; `status` is HTTP's, 0 if the server did not answer. */
export class ServerError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * What was asked while the script was loading, by address.
 * @type {Map<string, Promise<Response>>}
 */
let early = new Map();

/** @type {Answering} */
let answering = (path, query, signal) => {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) url.searchParams.append(name, String(each));
  }
  const answer = early.get(url.href) ?? fetch(url, { signal, credentials: "same-origin" });
  early.delete(url.href);
  return answer;
};

/** Takes these answers, each for one request. @param {typeof early} asked */
export function takeFrom(asked) {
  early = asked;
}

/** Has all questions answered by something else than the server. @param {Answering} other */
export function answerFrom(other) {
  answering = other;
}

/** @param {string} path relative to `data/` @param {Query} query @param {AbortSignal} signal */
export async function ask(path, query, signal) {
  let answer;
  try {
    answer = await answering(path, query, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ServerError(0, "The server does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let said = text;
  try {
    said = JSON.parse(text).error ?? text;
  } catch {
    // not from fmapboard: an error page of TensorBoard or of a proxy
  }
  throw new ServerError(answer.status, `${said || "no answer"} (HTTP ${answer.status})`);
}

/**
 * @template {keyof JsonAnswers} P @param {P} path @param {Query} query @param {AbortSignal} signal
 * @returns {Promise<JsonAnswers[P]>}
 */
export async function json(path, query, signal) {
  return (await ask(path, query, signal)).json();
}

/**
 * @template {keyof BinaryAnswers} P
 * @param {P} path @param {Query} query @param {AbortSignal} signal
 * @returns {Promise<Container<BinaryAnswers[P]>>}
 */
export async function binary(path, query, signal) {
  return open(await (await ask(path, query, signal)).arrayBuffer());
}

/** @param {"input"|"attribution_picture"} path @param {Query} query @param {AbortSignal} signal */
export async function picture(path, query, signal) {
  return decodeInput(await (await ask(path, query, signal)).blob());
}

/** @param {string} run @param {AbortSignal} signal @returns {Promise<ListedLayers>} */
export async function layers(run, signal) {
  const answer = await json("layers", { run }, signal);
  for (const layer of answer.layers) {
    layer.steps ??= answer.steps;
    layer.wall_times ??= answer.wall_times;
  }
  return { ...answer, layers: withFeeders(answer.layers) };
}

/**
 * Activations get the label of the layer that they directly follow as `behind`.
 * @param {T[]} layers
 * @template {{name: string, label: string, activation: string|null}} T
 * @returns {(T & {behind?: string})[]}
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
