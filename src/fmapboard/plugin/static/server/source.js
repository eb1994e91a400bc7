// @ts-check
/** Fetches and caches what the tab shows: the answers to draw with now, requested if missing. */

import { decodeInput, decodeMaps } from "./decode.js";
import { layersAt } from "./health.js";
import { indexOf } from "./steps.js";
import * as api from "./api.js";

/** @import {Shown} from "../model/attribution.js" */
/** @import {Placed, Question} from "../model/compare.js" */
/** @import {Front} from "../model/front.js" */
/** @import {Series} from "../model/look.js" */
/** @import {Ranking} from "../model/ranking.js" */
/** @import {History, Scene} from "../model/scene.js" */
/** @import {Sides} from "../model/sides.js" */
/** @import {State} from "../model/state.js" */
/** @import {Layer} from "./answers.js" */
/** @import {Cache} from "./cache.js" */
/** @import {Health, Overview} from "./health.js" */
/** @import {InputSeries, NumbersAnswer, RunEntry} from "./routes.js" */

/**
 * All that one drawing of the tab needs.
 * @typedef {object} Model
 * @property {State} state with the palette of what is shown as `colours`
 * @property {RunEntry[]} runs
 * @property {string} logdir
 * @property {boolean} keepsEnough false if TensorBoard keeps its default of 10 steps per series
 * @property {boolean} listed the list of runs, or an error in its place, has arrived
 * @property {Layer[]} layers
 * @property {Layer|undefined} layer
 * @property {number[]} steps kept steps of all layers of the run
 * @property {number} written number of logged steps
 * @property {Record<string, string>} stepWords of steps that are not those of a training
 * @property {number|null} unread newest logged step if TensorBoard has not read it yet
 * @property {boolean} isUnread there are no runs, but files that TensorBoard has not read
 * @property {number|null} listedAt time of the list of steps, ms
 * @property {Map<string, Overview>} overview by key of the layer
 * @property {boolean} overviewIsOld it is of another step, until that of this step has arrived
 * @property {Scene|null} scene
 * @property {boolean} stale the scene is the previous one; the requested one is being loaded
 * @property {Sides|null} sides null if the headline says it all
 * @property {Placed[]} columns what the state's further columns show
 * @property {(History|null)[]} filmHistories of the columns, empty unless the film strip is shown
 * @property {Ranking|null} ranking null unless its list is open
 * @property {Series[]} series whose curves are drawn
 * @property {History|null} history
 * @property {Health|null} health of all steps; null in the overview, whose `front` has it
 * @property {NumbersAnswer|null} numbers
 * @property {ImageBitmap|null} input of the step and sample of the scene
 * @property {boolean} hasInput
 * @property {string} problem in words, "" for none
 * @property {string} gone what the address names but is not there, in words; "" for nothing
 * @property {boolean} playing
 * @property {Shown|null} attribution null if the run has none
 * @property {import("../model/patches.js").Shown|null} patches null if the channel has none
 * @property {Front|null} front null unless the overview is shown
 */

/** @type {Map<string, Overview>} */
const NO_OVERVIEW = new Map();

export class Source {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
    this.epoch = 1;
    this.runsEpoch = 1;
    /** Time of the newest list of layers and steps of each run, ms. @type {Map<string, number>} */
    this.listedAt = new Map();
    this.overview = NO_OVERVIEW;
    this.overviewOf = "";
    /** @type {number|null} */
    this.overviewStep = null;
  }

  runs() {
    return this.cache.get("runs", api.runs, { epoch: this.runsEpoch });
  }

  /** Requests again what may have grown. @param {boolean} onlyRuns only the list of runs */
  renew(onlyRuns = false) {
    if (!onlyRuns) this.epoch += 1;
    this.runsEpoch += 1;
  }

  /** @param {string} run */
  layers(run) {
    const load = async (/** @type {AbortSignal} */ signal) => {
      const answer = await api.layers(run, signal);
      this.listedAt.set(run, Date.now());
      return answer;
    };
    return this.cache.get(`layers/${run}`, load, { epoch: this.epoch, bytes: () => 1e6 });
  }

  /** @param {Question} question @param {boolean} prefetch */
  maps(question, prefetch = false) {
    const load = async (/** @type {AbortSignal} */ signal) =>
      decodeMaps(await api.maps(question, signal));
    return this.cache.get(mapsKey(question), load, { bytes: (maps) => maps.bytes, prefetch });
  }

  /** @param {Question} question */
  knows(question) {
    return this.cache.has(mapsKey(question));
  }

  /** @param {string} run @param {Layer} layer @param {number} sample whose lo and hi it has */
  history(run, layer, sample) {
    const of = { run, key: layer.key, sample: Math.max(0, Math.min(sample, layer.samples - 1)) };
    const key = `history/${run}\n${layer.key}\n${of.sample}`;
    return this.growing(key, layer, (ts, signal) => api.history({ ...of, ts }, signal), 4e6);
  }

  /** @param {string} run @param {Layer} layer */
  numbers(run, layer) {
    const key = `numbers/${run}\n${layer.key}`;
    return this.growing(key, layer, (_, signal) => api.numbers(run, layer.key, signal), 2e6);
  }

  /**
   * An answer that grows with every step. It is requested again when there is a new step; until
   * then the previous answer is returned, or null if there is none.
   * @template T @param {string} key @param {Layer} layer
   * @param {(ts: number, signal: AbortSignal) => Promise<T>} load @param {number} bytes
   * @returns {T|null}
   */
  growing(key, layer, load, bytes) {
    const epoch = layer.wall_times[layer.wall_times.length - 1];
    if (epoch === undefined) return null;
    const how = { epoch, bytes: () => bytes };
    return this.cache.get(key, (signal) => load(epoch, signal), how).value ?? null;
  }

  /** @param {string} run @param {InputSeries|undefined} input @param {number|null} step */
  input(run, input, step) {
    const i = input ? indexOf(input.steps, step) : -1;
    if (!input || i < 0) return null;
    const of = {
      run,
      name: input.name ?? "",
      sample: input.sample,
      step: input.steps[i],
      ts: input.wall_times[i],
    };
    const load = async (/** @type {AbortSignal} */ signal) =>
      decodeInput(await api.input(of, signal));
    const key = `input/${JSON.stringify(of)}`;
    return this.cache.get(key, load, { bytes: (picture) => 4 * picture.width * picture.height });
  }

  /**
   * The numbers of all layers at a step; the previous ones until they have arrived.
   * @param {string} run @param {number} step
   * @param {boolean} calm the step has not just changed: numbers not yet known are requested
   * @param {string} version changes when the run has new steps
   */
  health(run, step, calm, version) {
    const key = `overview/${run}\n${step}\n${version}`;
    if (calm || this.cache.has(key)) {
      const entry = this.cache.get(key, (signal) => layersAt({ run, step }, signal), {
        bytes: () => 1e5,
      });
      if (entry.value && this.overviewOf !== key) {
        this.overview = entry.value;
        this.overviewOf = key;
        this.overviewStep = step;
      }
    }
    return this.overviewOf.startsWith(`overview/${run}\n`) ? this.overview : NO_OVERVIEW;
  }
}

/** @param {Question} of */
function mapsKey({ run, key, step, ts }) {
  return `maps/${run}\n${key}\n${step}\n${ts}`;
}
