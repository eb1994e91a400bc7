// @ts-check
/** The layers whose curves over the steps are drawn: one per run, layer and role of the columns. */

import { attributionOf, hasNoAttribution } from "./attribution_rows.js";
import { goneText, rank, replaced } from "./compare.js";
import { firstDifferent, tableFor } from "./front.js";
import { firstRun, isOfDifferences } from "./run_states.js";
import { inPalette } from "./palette_choice.js";
import { patchesOf } from "./patches.js";
import { inputOf, inputSeries, sidesOf } from "./sides.js";
import { LETTERS } from "./state.js";
import { ServerError } from "../server/api.js";
import { indexOf } from "../server/steps.js";

/** @import {App} from "../app.js" */
/** @import {Layer} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {Placed, Series, State} from "./model.js" */

/**
 * The main column's series first. Columns that differ only in step or sample share one.
 * @param {Pick<Source, "history"|"numbers">} source @param {State} state @param {Layer} layer
 * @param {Placed[]} columns beside the main one
 */
export function seriesOf(source, state, layer, columns) {
  /** @type {Series[]} */
  const all = [];
  /** @param {string} run @param {Layer} of @param {string} role @param {string} letter */
  const add = (run, of, role, letter) => {
    const known = all.find(
      (each) => each.run === run && each.layer.key === of.key && each.role === role,
    );
    if (known) known.letters += `, ${letter}`;
    else {
      const [history, numbers] = [source.history(run, of, state.sample), source.numbers(run, of)];
      all.push({ run, layer: of, role, letters: letter, history, numbers });
    }
  };
  add(state.run, layer, state.role, columns.length ? LETTERS[0] : "");
  columns.forEach(({ run, match, column }, i) => {
    if (match && !match.layer.error)
      add(run, match.layer, column.role || state.role, LETTERS[i + 1]);
  });
  return all;
}

/** One series per run and layer: what is charted of a layer has no role. @param {Series[]} all */
export function ofLayers(all) {
  /** @type {Series[]} */
  const kept = [];
  for (const each of all) {
    const at = kept.findIndex(({ run, layer }) => run === each.run && layer.key === each.layer.key);
    if (at < 0) kept.push(each);
    else kept[at] = { ...kept[at], letters: `${kept[at].letters}, ${each.letters}` };
  }
  return kept;
}

/**
 * First and last kept step of all series.
 * @param {Series[]} all
 * @returns {[number, number]|null}
 */
export function spanOf(all) {
  const steps = all.flatMap(({ layer }) => [layer.steps[0], layer.steps[layer.steps.length - 1]]);
  const known = steps.filter((step) => step !== undefined);
  return known.length ? [Math.min(...known), Math.max(...known)] : null;
}

// Builds the model to draw from the state and all answers known so far.

/** The numbers of all layers are requested this long after the last change of step. */
export const CALM_MS = 120;
/** Opacity of maps over the input image, percent. */
export const SHEER = 60;
/** Orders that are computed at one step and kept while the step changes. */
const PINNED = new Set(["strength", "similarity"]);

/**
 * The ranked layers, if they are shown.
 * @param {App} app @param {Layer[]} layers @param {number|undefined} step @param {boolean} calm
 */
function ranking({ state, source, report }, layers, step, calm) {
  const { compare: column } = state;
  if (report || !column || !state.rank || step === undefined || state.role === "kernels")
    return null;
  const others = column.run ? source.layers(column.run).value?.layers : layers;
  return others ? rank(source, state, column, step, layers, others, calm) : null;
}

/** The state to show, with what exists in place of what does not. @param {App} app */
export function corrected(app) {
  const { source, overview } = app;
  let { gone, provisional } = app;
  const state = { ...app.state };
  const listed = source.runs();
  const runs = listed.value?.runs ?? [];
  if (runs.length && !runs.some(({ run }) => run === state.run) && !listed.loading) {
    const run = firstRun(runs.map((each) => each.run));
    gone = replaced(gone, "run", state.run, run);
    state.run = run;
  }
  if (!state.compare) state.rank = false;
  const answer = runs.length ? source.layers(state.run).value : null;
  const layers = answer?.layers ?? [];
  if (layers.length && !layers.some(({ key }) => key === state.layer)) {
    gone = replaced(gone, "layer", state.layer, layers[0].key);
    state.layer = layers[0].key;
    if (isOfDifferences(state.run)) provisional = { run: state.run, layer: state.layer };
  }
  if (provisional?.run === state.run && provisional.layer === state.layer) {
    const first = firstDifferent(source, overview, state.run, layers);
    if (first.isKnown) provisional = null;
    if (first.layer) state.layer = first.layer.key;
  }
  const layer = layers.find(({ key }) => key === state.layer);
  if (layer?.roles.length && !layer.roles.includes(state.role)) state.role = layer.roles[0];
  const steps = answer?.steps ?? [];
  if (PINNED.has(state.sort) && state.sort_step === null && steps.length) {
    state.sort_step = steps[indexOf(steps, state.step)];
  }
  if (layer && state.view === "attribution" && hasNoAttribution(source, state.run)) {
    state.view = "maps";
  }
  return { state, gone, provisional };
}

/** What to draw of a state that can be shown; requests what is missing. @param {App} app */
export function look(app) {
  const { source, state } = app;
  const listed = source.runs();
  const runs = listed.value?.runs ?? [];
  const answer = runs.length ? source.layers(state.run) : null;
  const layers = answer?.value?.layers ?? [];
  const layer = layers.find((each) => each.key === state.layer);
  const steps = answer?.value?.steps ?? [];
  const calm = performance.now() - app.steppedAt > CALM_MS && !app.playing;
  const step = steps[indexOf(steps, state.step)];
  const isFront = state.view === "overview";
  const attribution = isFront || !layer ? null : attributionOf(source, state, step);
  const readable = layer?.error || isFront ? undefined : layer;
  const history = readable ? source.history(state.run, readable, state.sample) : null;
  const painted = inPalette(state);
  const shown = app.scenes.show(painted, readable, history);
  const question = shown.scene?.question;
  const isOfHeads = layer?.unit === "head";
  const overlay = state.overlay ?? (isOfHeads ? SHEER : 0);
  const wantsInput = overlay > 0 && (state.channel !== null || isOfHeads);
  const isResting = calm && state.view === "maps"; // the thumbnail above the maps is asked for last
  const version = `${steps.length}/${steps[steps.length - 1]}`;
  const overview =
    step === undefined || isFront ? new Map() : source.health(state.run, step, calm, version);
  return {
    state: painted, // with the palette of what is shown as `colours`
    runs,
    logdir: listed.value?.logdir ?? "",
    /** False if TensorBoard keeps its default of 10 steps per series. */
    keepsEnough: listed.value?.keeps_enough ?? true,
    /** True if every logged step is kept, by a server that is not TensorBoard. */
    keepsAll: listed.value?.keeps_all ?? false,
    /** The list of runs, or an error in its place, has arrived. */
    listed: Boolean(listed.value || listed.error),
    layers,
    layer,
    steps,
    written: answer?.value?.steps_written ?? 0,
    stepWords: answer?.value?.step_words ?? {},
    unread: answer?.value?.unread ?? null,
    isUnread: listed.value?.is_unread ?? false,
    overview, // by key of the layer
    overviewIsOld: overview.size > 0 && source.overviewStep !== step,
    scene: shown.scene,
    /** TensorBoard has dropped a listed step. */
    isLost: shown.lost instanceof ServerError && shown.lost.status === 404,
    /** The scene is the previous one; the requested one is being loaded. */
    stale: shown.stale || Boolean(attribution?.loading),
    sides: sidesOf(source, shown.scene, shown.drawn, shown.stale ? undefined : step),
    columns: shown.columns,
    filmHistories:
      state.view === "film" ? shown.columns.map((each) => app.scenes.history(each)) : [],
    ranking: isFront ? null : ranking(app, layers, step, calm),
    series: readable ? seriesOf(source, state, readable, shown.columns) : [],
    history,
    health: step === undefined || isFront ? null : tableFor(source, app.overview.source, state.run),
    tokens: readable && state.view === "maps" ? source.tokens(state.run, readable) : null,
    numbers: readable ? source.numbers(state.run, readable) : null,
    input: question && (wantsInput || isResting) ? inputOf(source, question).picture : null,
    hasInput: Boolean(question?.depth === undefined && question && inputSeries(source, question)),
    overlay, // opacity over the input image in percent
    problem: (listed.error ?? answer?.error ?? shown.error)?.message ?? layer?.error ?? "",
    gone: goneText(app.gone, state),
    playing: app.playing,
    attribution,
    patches: readable ? patchesOf(source, state, readable, step) : null,
    front: isFront && runs.length ? app.overview.look(runs) : null,
  };
}
