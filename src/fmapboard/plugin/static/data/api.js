// @ts-check
/** What is asked of the server, and how an answer is read. */

import { arrays, open } from "./container.js";

const BASE = new URL("../data/", import.meta.url);

/** An answer that is no success; `status` is HTTP's. */
export class ServerError extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/**
 * @param {string} path @param {Record<string, string|number>} query @param {AbortSignal} signal
 */
async function ask(path, query, signal) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  let answer;
  try {
    answer = await fetch(url, { signal, credentials: "same-origin" });
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
    // not ours: TensorBoard's own error page
  }
  throw new ServerError(answer.status, `${said || "no answer"} (HTTP ${answer.status})`);
}

/** @param {AbortSignal} signal @returns {Promise<{runs: {run: string, layers: number, started: number}[], logdir: string, keeps_enough: boolean}>} */
export async function runs(signal) {
  return (await ask("runs", {}, signal)).json();
}

/**
 * @param {string} run @param {AbortSignal} signal
 * @returns {Promise<{layers: import("../views/tree.js").Layer[], inputs: import("./tab_data.js").Input[], steps: number[], steps_written: number}>}
 */
export async function layers(run, signal) {
  return (await ask("layers", { run }, signal)).json();
}

/** @param {string} run @param {number} step @param {AbortSignal} signal */
export async function overview(run, step, signal) {
  return (await ask("overview", { run, step }, signal)).json();
}

/** @param {string} run @param {string} key @param {AbortSignal} signal */
export async function numbers(run, key, signal) {
  return (await ask("numbers", { run, key }, signal)).json();
}

/** @param {string} run @param {string} key @param {number} ts @param {AbortSignal} signal */
export async function history(run, key, ts, signal) {
  const answer = await ask("history", { run, key, ts }, signal);
  const { json, body } = open(await answer.arrayBuffer());
  return { steps: /** @type {number[]} */ (json.steps), arrays: arrays(body, json.arrays) };
}

/** @param {{run: string, key: string, step: number, ts: number}} of @param {AbortSignal} signal */
export async function maps({ run, key, step, ts }, signal) {
  const answer = await ask("maps", { run, key, step, ts }, signal);
  return open(await answer.arrayBuffer());
}

/** @param {{run: string, name: string, sample: number, step: number, ts: number}} of @param {AbortSignal} signal */
export async function input(of, signal) {
  return (await ask("input", of, signal)).blob();
}
