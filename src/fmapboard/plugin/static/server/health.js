// @ts-check
/** Answers on the state of a whole run, `data/health` and `data/findings`, and their cache. */

import { binary, json as inJson, withFeeders } from "./api.js";
import { arrays, number, octets } from "./decode.js";

/** @import {Cache} from "./cache.js" */
/** @import {SheetRow} from "./routes.js" */
/** @import {Asked, Health, NamedArrays, Overview, SheetInput, StepOfRun} from "./server.js" */

/** @param {string} run @param {AbortSignal} signal @returns {Promise<Health>} */
export async function health(run, signal) {
  const { json, body } = await binary("health", { run }, signal);
  const { codes, shading, ...facts } = json;
  return {
    ...facts,
    layers: withFeeders(json.layers),
    arrays: arrays(body, json.arrays),
    cells: { codes: octets(body, codes), levels: octets(body, shading.levels) },
    scale: shading,
  };
}

/** @param {StepOfRun} of @param {AbortSignal} signal */
async function stepOf(of, signal) {
  const { json, body } = await binary("health_step", of, signal);
  return { json, numbers: arrays(body, json.arrays), codes: octets(body, json.codes) };
}

/**
 * Numbers of all layers at one kept step; NaN of those that do not have it.
 * @param {StepOfRun} of @param {AbortSignal} signal
 */
export async function numbersAt(of, signal) {
  const { json, numbers } = await stepOf(of, signal);
  json.steps.forEach((step, row) => {
    if (step !== of.step)
      for (const each of Object.values(numbers)) each?.values.fill(NaN, row, row + 1);
  });
  return numbers;
}

/** Code of layers of which no fault is known. */
const FINE_OR_UNKNOWN = 0;
const NO_CHANGE = Object.freeze({ change: null, change_of: null, change_since: null });

/** @param {"maps"|"weights"} of @param {number} change @param {number|null} since */
const changeOf = (of, change, since) => ({ change, change_of: of, change_since: since });

/** A layer without numbers. */
const NOTHING = Object.freeze({
  ...{ minimum: NaN, maximum: NaN, mean: NaN, std: NaN },
  ...{ nan: null, positive_infinity: null, negative_infinity: null, counted: true },
  ...{ channels_nonfinite: null, channels_constant: null, channels_dead: null, dead_known: false },
  ...{ channels: 0, ...NO_CHANGE, weights_unchanged_since: null },
});

/** The layers that have pictures, by key. @param {StepOfRun} of @param {AbortSignal} signal */
export async function layersAt(of, signal) {
  const { json, numbers, codes } = await stepOf(of, signal);

  /** @param {string} key @param {number} row @returns {Overview} */
  function layerAt(key, row) {
    const value = (/** @type {string} */ name) => numbers[name]?.values[row] ?? NaN;
    const whole = (/** @type {string} */ name) => (Number.isFinite(value(name)) ? value(name) : 0);
    const [step, code] = [json.steps[row], codes[row]];
    const isKnown = !Number.isNaN(value("counted"));
    if (json.error !== null && !(isKnown && step === json.step)) {
      return { ...NOTHING, key, step: json.step, code: 0, error: json.error };
    }
    if (!isKnown) return { ...NOTHING, key, step, code };
    const channels = json.channels[row];
    const count = (/** @type {string} */ name) =>
      Math.round(Math.min(Math.max(whole(name), 0), 1) * channels);
    const [maps, weights] = ["change_steps", "weights_steps"].map((age) =>
      Number.isNaN(value(age)) ? null : step - whole(age),
    );
    const changed = maps === null ? weights : maps;
    const change = value(maps === null ? "weights_change" : "change");
    const [minimum, maximum, mean, std] = ["minimum", "maximum", "mean", "std"].map(value);
    return {
      ...{ key, step, code, channels, minimum, maximum, mean, std },
      ...(changed === null
        ? NO_CHANGE
        : changeOf(maps === null ? "weights" : "maps", change, changed)),
      ...{ nan: whole("nan"), positive_infinity: whole("positive_infinity") },
      ...{ negative_infinity: whole("negative_infinity"), counted: value("counted") !== 0 },
      ...{ channels_nonfinite: count("nonfinite"), channels_constant: count("constant") },
      ...{ channels_dead: count("dead"), dead_known: !Number.isNaN(value("dead")) },
      weights_unchanged_since: json.unchanged[row] ?? null,
    };
  }

  /** @type {Map<string, Overview>} */
  const found = new Map();
  json.keys.forEach((key, row) => {
    if (key !== null) found.set(key, layerAt(key, row));
  });
  for (const { key, step, change, since, code, error } of json.others) {
    const weights = change === null ? NO_CHANGE : changeOf("weights", number(change), since);
    const unchanged = code === FINE_OR_UNKNOWN ? null : since;
    found.set(key, {
      ...{ ...NOTHING, key, step, code, ...weights, weights_unchanged_since: unchanged },
      ...(error === null ? {} : { error }),
    });
  }
  return found;
}

/** Runs other than the current one are asked again no more often. */
const ROUND_MS = 60000;

export class HealthSource {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
    /** @type {Map<string, {version: string, epoch: number, again: string}>} */
    this.asked = new Map();
    this.rounds = { epoch: 0, at: -Infinity };
  }

  /** @param {string} run @param {string} version of the list of its steps, "" if not yet known */
  health(run, version) {
    return this.cache.get(`health/${run}`, (signal) => health(run, signal), {
      epoch: this.epoch(run, version),
      bytes: ({ cells, layers }) => 2 * cells.codes.buffer.byteLength + 500 * layers.length,
    });
  }

  /**
   * @param {string} run @param {string} version as for `health`
   * @param {boolean} prefetch nobody waits for it
   */
  findings(run, version, prefetch = false) {
    return this.cache.get(`findings/${run}`, (signal) => inJson("findings", { run }, signal), {
      epoch: this.epoch(run, version),
      bytes: (answer) => 1000 * (1 + answer.findings.length),
      prefetch,
    });
  }

  /**
   * How runs are, as far as it is stored; nobody waits for it. It is asked for again with a reload,
   * but rarely. @param {readonly string[]} run @param {number} epoch of the reload
   */
  verdicts(run, epoch) {
    return this.cache.get(
      `verdicts/${JSON.stringify(run)}`,
      (signal) => inJson("verdicts", { run }, signal),
      { epoch: this.round(epoch), bytes: () => 300 * run.length, prefetch: true },
    );
  }

  /**
   * Has a run's answers requested once more; false if they have been.
   * @param {string} run @param {string} version of its steps
   */
  again(run, version) {
    const known = this.asked.get(run);
    if (!known || known.again === version) return false;
    known.again = version;
    known.epoch += 1;
    return true;
  }

  /**
   * The epoch of a reload, or of one within the minute before it.
   * @param {number} epoch @param {number} now ms
   */
  round(epoch, now = performance.now()) {
    if (epoch !== this.rounds.epoch && now - this.rounds.at > ROUND_MS) {
      this.rounds = { epoch, at: now };
    }
    return this.rounds.epoch;
  }

  /** Grows when a run has new steps. @param {string} run @param {string} version */
  epoch(run, version) {
    const known = this.asked.get(run) ?? { version: "", epoch: 1, again: "" };
    // The first version that becomes known is that of the answers requested before it.
    if (version && known.version && version !== known.version) known.epoch += 1;
    if (version) known.version = version;
    this.asked.set(run, known);
    return known.epoch;
  }
}

// The contact sheet's answers, `data/sheet` and `data/sheet_input`, and their cache.

const NONE = new Float32Array(0);

/**
 * @param {SheetRow[]} rows @param {Uint8Array} pixels @param {NamedArrays} of @param {number} cell
 * @param {number} steps
 */
export function pageOf(rows, pixels, of, cell, steps) {
  const [height, width] = [of.height?.values ?? NONE, of.width?.values ?? NONE];
  const starts = [];
  let at = 0;
  for (const [i, high] of height.entries()) {
    starts.push(at);
    at += high * width[i];
  }
  const [lo, hi] = [of.lo?.values ?? NONE, of.hi?.values ?? NONE];
  const [least, most] = [of.least?.values ?? NONE, of.most?.values ?? NONE];
  return { rows, pixels, height, width, lo, hi, least, most, starts, cell, steps };
}

/** @param {{pixels: Uint8Array}} found */
const memory = ({ pixels }) => pixels.byteLength;

/** What loads pages of the sheet; a report makes them of what it has. */
export const loaders = {
  /** @param {Omit<Asked, "name">} of @param {readonly string[]} keys @param {AbortSignal} signal */
  async page({ run, steps, cell }, keys, signal) {
    const query = { run, key: keys, step: steps.map(String), cell };
    const { json, body } = await binary("sheet", query, signal);
    const { pixels, ...others } = json.arrays;
    return pageOf(json.rows, octets(body, pixels), arrays(body, others), cell, steps.length);
  },

  /** @param {Asked} of @param {AbortSignal} signal @returns {Promise<SheetInput>} */
  async input({ steps, cell, ...of }, signal) {
    const asked = { ...of, cell, step: steps.map(String) };
    const { json, body } = await binary("sheet_input", asked, signal);
    const { arrays: listed, ...facts } = json;
    return { ...facts, pixels: octets(body, listed["pixels"]), cell };
  },
};

export class SheetSource {
  /** @param {Cache} cache */
  constructor(cache) {
    this.cache = cache;
  }

  /** @param {Asked} of @param {readonly string[]} keys */
  page({ name: _, ...of }, keys) {
    const load = (/** @type {AbortSignal} */ signal) => loaders.page(of, keys, signal);
    return this.cache.get(`sheet/${JSON.stringify([of, keys])}`, load, { bytes: memory });
  }

  /** @param {Asked} of */
  input(of) {
    const load = (/** @type {AbortSignal} */ signal) => loaders.input(of, signal);
    return this.cache.get(`sheet_input/${JSON.stringify(of)}`, load, { bytes: memory });
  }
}
