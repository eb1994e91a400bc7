// @ts-check
/** One look at the state and at every answer that is known: what is to be drawn now. */

import { indexOf } from "./steps.js";

/** So long after the last step, the numbers of all layers are asked for. */
export const CALM_MS = 120;
/** Orders that are taken at one step and kept while steps change. */
const PINNED = new Set(["strength", "similarity"]);

/**
 * Asks for what is not known; what makes no sense in the state (a run that is gone) is put right.
 * @param {import("../app.js").App} app @returns {import("../data/tab_data.js").Model}
 */
export function look(app) {
  const { source } = app;
  source.store.begin();
  const listed = source.runs();
  const runs = listed.value?.runs ?? [];
  if (runs.length && !runs.some((/** @type {any} */ each) => each.run === app.state.run) && !listed.loading) {
    app.state = { ...app.state, run: runs[0].run };
  }
  const { state } = app;
  const answer = runs.length ? source.layers(state.run) : null;
  /** @type {import("../views/tree.js").Layer[]} */
  const layers = answer?.value?.layers ?? [];
  if (layers.length && !layers.some((each) => each.key === state.layer)) state.layer = layers[0].key;
  const layer = layers.find((each) => each.key === state.layer);
  if (layer?.roles.length && !layer.roles.includes(state.role)) state.role = layer.roles[0];
  const steps = answer?.value?.steps ?? [];
  const calm = performance.now() - app.steppedAt > CALM_MS && !app.playing;
  const step = steps[indexOf(steps, state.step)];
  if (PINNED.has(state.sort) && state.sort_step === null && step !== undefined) state.sort_step = step;
  const readable = layer?.error ? undefined : layer;
  const history = readable ? source.history(state.run, readable) : null;
  const shown = source.show(state, readable, history);
  if (/** @type {any} */ (shown.error)?.status === 404) app.relist(state.layer + state.step);
  const inputs = answer?.value?.inputs ?? [];
  const own = inputs.filter((/** @type {any} */ each) => (each.name ?? "") === (layer?.name ?? ""));
  const input = own.find((/** @type {any} */ each) => each.sample === state.sample) ?? own[0];
  const wantsInput = state.overlay > 0 && state.channel !== null;
  const model = {
    state, runs, logdir: listed.value?.logdir ?? "", keepsEnough: listed.value?.keeps_enough ?? true, listed: Boolean(listed.value || listed.error), layers, layer, steps,
    written: answer?.value?.steps_written ?? 0,
    overview: step === undefined ? new Map() : source.health(state.run, step, calm, `${steps.length}/${steps[steps.length - 1]}`),
    scene: shown.scene, stale: shown.stale, history,
    numbers: readable ? source.numbers(state.run, readable) : null,
    input: wantsInput ? source.input(state.run, input, state.step)?.value ?? null : null, hasInput: Boolean(input),
    problem: (listed.error ?? answer?.error ?? shown.error)?.message ?? layer?.error ?? "",
    playing: app.playing,
  };
  source.store.end();
  return model;
}
