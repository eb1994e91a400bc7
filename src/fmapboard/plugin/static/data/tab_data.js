// @ts-check
/** What is to be drawn now: the state, with every answer that is known; asks for those that are not. */

import * as api from "./api.js";
import { mainSide, otherSide } from "../state/compare.js";
import { decodeInput, decodeMaps } from "./decoded_maps.js";
import { number } from "./container.js";
import { Lru } from "./lru.js";
import { buildScene } from "../draw/scene.js";
import { indexOf } from "../state/steps.js";

/**
 * @typedef {import("../state/compare.js").Question} Question
 * @typedef {import("../views/tree.js").Layer} Layer
 * @typedef {import("../draw/scene.js").Scene} Scene
 * @typedef {{name?: string, sample: number, steps: number[], wall_times: number[]}} Input
 */

/**
 * @typedef {object} Model
 * @property {import("../state/state.js").State} state
 * @property {{run: string, layers: number, started: number}[]} runs
 * @property {string} logdir
 * @property {boolean} keepsEnough TensorBoard does not sample as if there were no feature maps
 * @property {boolean} listed the runs are known
 * @property {Layer[]} layers
 * @property {Layer|undefined} layer
 * @property {number[]} steps of the whole run
 * @property {number} written
 * @property {Map<string, import("../views/health_strip.js").Overview>} overview
 * @property {Scene|null} scene
 * @property {boolean} stale the scene is an older one: the one asked for is on its way
 * @property {import("../draw/scene.js").History|null} history
 * @property {any} numbers
 * @property {ImageBitmap|null} input
 * @property {boolean} hasInput
 * @property {string} problem in words, "" for none
 * @property {boolean} playing
 */

/** @type {Map<string, import("../views/health_strip.js").Overview>} */
const NO_OVERVIEW = new Map();

/** So many kept steps are looked through for kernels; the first logged step always has them. */
const KERNELS_WITHIN = 12;

export class Source {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    this.epoch = 1;
    /** @type {Scene|null} */
    this.scene = null;
    this.sceneKey = "";
    this.overview = NO_OVERVIEW;
    this.overviewOf = "";
    /** @type {Lru<any>} */
    this.grown = new Lru(32e6);
  }

  runs() {
    return this.store.get("runs", api.runs, { epoch: this.epoch });
  }

  /** @param {string} run */
  layers(run) {
    return this.store.get(`layers/${run}`, (signal) => api.layers(run, signal), { epoch: this.epoch, bytes: () => 1e6 });
  }

  /** @param {Question} question @param {boolean} prefetch */
  maps(question, prefetch = false) {
    const load = async (/** @type {AbortSignal} */ signal) => decodeMaps(await api.maps(question, signal));
    return this.store.get(mapsKey(question), load, { bytes: (maps) => maps.bytes, prefetch });
  }

  /** @param {Question} question */
  knows(question) {
    return this.store.has(mapsKey(question));
  }

  /** @param {string} run @param {Layer} layer @returns {import("../draw/scene.js").History|null} */
  history(run, layer) {
    const load = (/** @type {number} */ ts) => (/** @type {AbortSignal} */ signal) => api.history(run, layer.key, ts, signal);
    return this.growing(`history/${run}\n${layer.key}`, layer, load, 4e6);
  }

  /** @param {string} run @param {Layer} layer */
  numbers(run, layer) {
    return this.growing(`numbers/${run}\n${layer.key}`, layer, () => (signal) => api.numbers(run, layer.key, signal), 2e6);
  }

  /**
   * What grows with every step: asked again when there is a new one, the old shown until it is here.
   * @param {string} key @param {Layer} layer
   * @param {(ts: number) => (signal: AbortSignal) => Promise<any>} load @param {number} bytes
   */
  growing(key, layer, load, bytes) {
    const ts = layer.wall_times[layer.wall_times.length - 1];
    if (ts === undefined) return null;
    const entry = this.store.get(`${key}\n${ts}`, load(ts), { bytes: () => bytes });
    if (entry.value) this.grown.set(key, entry.value, bytes);
    return entry.value ?? this.grown.get(key) ?? null;
  }

  /** @param {string} run @param {Input|undefined} input @param {number|null} step */
  input(run, input, step) {
    const i = input ? indexOf(input.steps, step) : -1;
    if (!input || i < 0) return null;
    const of = { run, name: input.name ?? "", sample: input.sample, step: input.steps[i], ts: input.wall_times[i] };
    const load = async (/** @type {AbortSignal} */ signal) =>
      decodeInput(await api.input(of, signal));
    const key = `input/${JSON.stringify(of)}`;
    return this.store.get(key, load, { bytes: (picture) => 4 * picture.width * picture.height });
  }

  /** Health of all layers; the numbers before stay until the new ones are here. @param {string} run @param {number} step @param {boolean} calm @param {string} version */
  health(run, step, calm, version) {
    const key = `overview/${run}\n${step}\n${version}`;
    if (calm || this.store.has(key)) {
      const entry = this.store.get(key, (signal) => api.overview(run, step, signal), { bytes: () => 1e5 });
      if (entry.value && this.overviewOf !== key) {
        this.overview = new Map(entry.value.layers.map((/** @type {any} */ each) => [each.key, numbered(each)]));
        this.overviewOf = key;
      }
    }
    return this.overviewOf.startsWith(`overview/${run}\n`) ? this.overview : NO_OVERVIEW;
  }

  /**
   * Kernels are logged more rarely than maps: the last step before this one that has them.
   * @param {import("../state/state.js").State} state @param {Layer|undefined} layer @returns {Question|null}
   */
  kernels(state, layer) {
    const now = layer ? indexOf(layer.steps, state.step) : -1;
    const back = [...Array(KERNELS_WITHIN).keys()].map((away) => now - away).filter((i) => i > 0);
    for (const i of now < 0 ? [] : [...back, 0]) {
      const question = mainSide({ ...state, step: layer?.steps[i] ?? null }, layer);
      const entry = question && this.maps(question);
      if (!entry?.value || entry.value.kernels || i === 0) return question; // known, or first to be known
    }
    return null;
  }

  /**
   * The scene asked for, or the one before while it is on its way.
   * @param {import("../state/state.js").State} state @param {Layer|undefined} layer
   * @param {import("../draw/scene.js").History|null} history
   */
  show(state, layer, history) {
    const question = state.role === "kernels" ? this.kernels(state, layer) : mainSide(state, layer);
    const other = otherSide(state, layer, (run) => this.layers(run).value?.layers);
    const entry = question && this.maps(question);
    const otherEntry = other && this.maps(other);
    const sortQuestion = mainSide({ ...state, step: state.sort_step ?? state.step }, layer);
    const needsSort = state.sort === "strength" || state.sort === "similarity";
    const sortEntry = needsSort && sortQuestion ? this.maps(sortQuestion) : null;
    const error = entry?.error ?? otherEntry?.error ?? null;
    if (!question || error) return { scene: null, stale: false, error };
    if (!entry?.value || (otherEntry && !otherEntry.value)) return { scene: this.scene, stale: true, error };
    const key = JSON.stringify([question, other, state.scale, state.locked, state.colours === "signed", state.sort,
      state.sort_step, state.show, Boolean(history && (state.locked || state.sort === "change")) && history?.steps, Boolean(sortEntry?.value)]);
    if (key !== this.sceneKey) {
      this.sceneKey = key;
      this.scene = buildScene({
        state, question, otherQuestion: other, maps: entry.value, otherMaps: otherEntry?.value ?? null,
        history, sortMaps: sortEntry?.value ?? null,
      });
    }
    return { scene: this.scene, stale: false, error: null };
  }
}

/** @param {Question} of */
function mapsKey({ run, key, step, ts }) {
  return `maps/${run}\n${key}\n${step}\n${ts}`;
}

/** JSON has no word for NaN and infinity: the server spells them. @param {any} of */
function numbered(of) {
  const out = { ...of };
  for (const name of ["minimum", "maximum", "mean", "std"]) out[name] = number(of[name]);
  out.change = of.change === null ? null : number(of.change);
  return out;
}
