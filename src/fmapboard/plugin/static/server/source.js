// @ts-check
/** Fetches and caches what the tab shows: the answers to draw with now, requested if missing. */

import { arrays, bytes, decodeInput, decodeMaps } from "./decode.js";
import { layersAt } from "./health.js";
import { indexOf } from "./steps.js";
import * as api from "./api.js";

/** @import {Question} from "../model/model.js" */
/** @import {Cache} from "./cache.js" */
/** @import {InputSeries} from "./routes.js" */
/** @import {JsonAnswers, Layer, Overview, Query} from "./server.js" */

/** @type {Map<string, Overview>} */
const NO_OVERVIEW = new Map();

export class Source {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
    this.epoch = 1;
    this.runsEpoch = 1;
    this.overview = NO_OVERVIEW;
    this.overviewOf = "";
    /** @type {number|null} */
    this.overviewStep = null;
  }

  /**
   * An answer in JSON, kept under its query.
   * @template {keyof JsonAnswers} P @param {P} path @param {Query} query
   * @param {{epoch?: number, bytes?: number, prefetch?: boolean}} how
   */
  json(path, query, { bytes = 1e5, ...how } = {}) {
    const load = (/** @type {AbortSignal} */ signal) => api.json(path, query, signal);
    return this.cache.get(keyOf(path, query), load, { bytes: () => bytes, ...how });
  }

  /** @param {"input"|"attribution_picture"} path @param {Query} query */
  picture(path, query) {
    const load = (/** @type {AbortSignal} */ signal) => api.picture(path, query, signal);
    const bytes = (/** @type {ImageBitmap} */ { width, height }) => 4 * width * height;
    return this.cache.get(keyOf(path, query), load, { bytes });
  }

  runs() {
    return this.json("runs", {}, { epoch: this.runsEpoch });
  }

  /** Requests again what may have grown. @param {boolean} onlyRuns only the list of runs */
  renew(onlyRuns = false) {
    if (!onlyRuns) this.epoch += 1;
    this.runsEpoch += 1;
  }

  /** @param {string} run */
  layers(run) {
    const load = (/** @type {AbortSignal} */ signal) => api.layers(run, signal);
    return this.cache.get(`layers/${run}`, load, { epoch: this.epoch, bytes: () => 1e6 });
  }

  /** @param {Question} question @param {boolean} prefetch */
  maps(question, prefetch = false) {
    const query = mapsQuery(question);
    const load = async (/** @type {AbortSignal} */ signal) =>
      decodeMaps(await api.binary("maps", query, signal));
    return this.cache.get(keyOf("maps", query), load, { bytes: (maps) => maps.bytes, prefetch });
  }

  /** @param {Question} question */
  knows(question) {
    return this.cache.has(keyOf("maps", mapsQuery(question)));
  }

  /**
   * The previous answer while that of a new step is loading.
   * @param {string} run @param {Layer} layer @param {number} sample
   */
  history(run, layer, sample) {
    const of = { run, key: layer.key, sample: Math.max(0, Math.min(sample, layer.samples - 1)) };
    const ts = newestOf(layer);
    if (ts === undefined) return null;
    const load = async (/** @type {AbortSignal} */ signal) => {
      const { json, body } = await api.binary("history", { ...of, ts }, signal);
      return { ...json, arrays: arrays(body, json.arrays) };
    };
    const how = { epoch: ts, bytes: () => 4e6 };
    return this.cache.get(keyOf("history", of), load, how).value ?? null;
  }

  /** As `history`. @param {string} run @param {Layer} layer */
  numbers(run, layer) {
    const epoch = newestOf(layer);
    if (epoch === undefined) return null;
    return this.json("numbers", { run, key: layer.key }, { epoch, bytes: 2e6 }).value ?? null;
  }

  /** The tokens of a layer as colours; null of others. @param {string} run @param {Layer} layer */
  tokens(run, layer) {
    const ts = newestOf(layer);
    if (ts === undefined || layer.unit !== "feature") return null;
    const of = { run, key: layer.key };
    const load = async (/** @type {AbortSignal} */ signal) => {
      const { json, body } = await api.binary("tokens", { ...of, ts }, signal);
      const pngs = json.pictures.map((png) => new Blob([bytes(body, png)]));
      return { steps: json.steps, pictures: await Promise.all(pngs.map(decodeInput)) };
    };
    const how = { epoch: ts, bytes: () => 1e6 };
    return this.cache.get(keyOf("tokens", of), load, how).value ?? null;
  }

  /** @param {string} run @param {InputSeries|undefined} input @param {number|null} step */
  input(run, input, step) {
    const i = input ? indexOf(input.steps, step) : -1;
    if (!input || i < 0) return null;
    const of = { run, name: input.name ?? "", sample: input.sample };
    return this.picture("input", { ...of, step: input.steps[i], ts: input.wall_times[i] });
  }

  /**
   * The numbers of all layers at a step; the previous ones until they have arrived. `calm`: the
   * step has not just changed; `version` changes when the run has new steps.
   * @param {string} run @param {number} step @param {boolean} calm @param {string} version
   */
  health(run, step, calm, version) {
    const key = `overview/${run}\n${step}\n${version}`;
    if (calm || this.cache.has(key)) {
      const load = (/** @type {AbortSignal} */ signal) => layersAt({ run, step }, signal);
      const { value } = this.cache.get(key, load, { bytes: () => 1e5 });
      if (value) [this.overview, this.overviewOf, this.overviewStep] = [value, key, step];
    }
    return this.overviewOf.startsWith(`overview/${run}\n`) ? this.overview : NO_OVERVIEW;
  }
}

/** What an answer is kept under. @param {string} path @param {Query} query */
export function keyOf(path, query) {
  return `${path}/${JSON.stringify(query)}`;
}

/** The query of a record. @param {Question} of */
export function mapsQuery({ run, key, step, ts }) {
  return { run, key, step, ts };
}

/** Time of the newest kept step. @param {Layer} layer */
function newestOf({ wall_times: times }) {
  return times[times.length - 1];
}
