// @ts-check
/** Answers on the state of a whole run, `data/health` and `data/findings`, and their cache. */

import { ask } from "./api.js";
import { arrays, number, octets, open } from "./container.js";
import { withFeeders } from "./feeders.js";

/**
 * One measured layer call, drawn or not.
 * @typedef {object} HealthLayer
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {string} label module name, and the call if it is not the first
 * @property {string} layer module name
 * @property {string} type module class
 * @property {number[]|null} kernel_shape
 * @property {number} call 1 for the first call in a forward pass
 * @property {number} position in the order of calls
 * @property {number} channels
 * @property {number} values per channel, over the whole batch
 * @property {number} drawn number of channels that have pictures
 * @property {number} samples per picture
 * @property {import("./answers.js").Role[]} roles
 * @property {number[]|null} transposed_stride of a transposed convolution
 * @property {string|null} activation label of the activation that directly follows
 * @property {string} [behind] label of the layer that an activation directly follows
 * @property {string|null} key tag of the layer's records, null if it has no pictures
 * @property {string|null} shown_at key of the layer whose pictures show this one
 */

/**
 * Scale of the brightness of cells.
 * @typedef {object} Scale
 * @property {"range"|"maps"|"weights"} of range of values, or change of the maps or weights
 * @property {number|null} lo value of level 0: smaller ones have it too; null if none is known
 * @property {number|null} hi value of the highest level: larger ones have it too
 */

/**
 * JSON of `data/health`; its arrays are [steps, layers], NaN where a number is not known.
 * @typedef {object} HealthFacts
 * @property {string} run
 * @property {number[]} steps kept ones, ascending
 * @property {number[]} wall_times s, one per step
 * @property {number} written number of logged steps
 * @property {HealthLayer[]} layers in network order
 * @property {Record<string, string>} [step_words] as in `data/layers`
 * @property {Record<string, string>} [errors] step -> why its record cannot be read
 * @property {Record<string, Record<string, number>>} since state -> row -> first logged step
 * @property {import("./answers.js").FirstNonfinite|null} first_nonfinite
 * @property {Record<string, import("./answers.js").ArrayEntry>} arrays none if the run has very many
 *   cells: `data/health_step` then has the numbers of a step
 * @property {import("./answers.js").ArrayEntry} codes of the states (`health_states.js`), uint8
 * @property {Record<"range"|"change", Shading>} shadings
 */

/**
 * Brightness of cells: its scale, and the level of each, uint8.
 * @typedef {Scale & {levels: import("./answers.js").ArrayEntry}} Shading
 */

/**
 * @typedef {Omit<HealthFacts, "arrays"|"codes"|"shadings"> & {
 *   arrays: import("./container.js").NamedArrays,
 *   cells: Record<"codes"|"range"|"change", Uint8Array>,
 *   scales: Record<"range"|"change", Scale>,
 * }} Health
 */

/**
 * One line of `data/findings`.
 * @typedef {object} Finding
 * @property {string} kind such as "nonfinite" or "dead"; later versions have more
 * @property {"warning"|"note"|"state"} class of states no check tells
 * @property {number} severity 5 of a warning, 4 of a note, 1 to 3 of a state: the order of the findings
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {string} label of the layer, "" for a parameter
 * @property {number|null} index of the row of the layer, or of the one that has the parameter
 * @property {string|null} key null if the layer has no pictures
 * @property {string|null} shown_at key of the layer whose pictures show it
 * @property {number} since first logged step with it
 * @property {number|null} after it began after this step; null if `since` is exact
 * @property {number|null} until last kept step with it, null if it has not ended
 * @property {import("./answers.js").JsonFloat} value NaN if it is not known
 * @property {number} more further layers that this line stands for
 * @property {string} message the sentence to show; layers are between backticks
 * @property {string} [explanation] what it may mean and what to do, "" if nothing is known
 */

/**
 * `data/findings`.
 * @typedef {object} FindingsAnswer
 * @property {string} run
 * @property {number} layers
 * @property {number} steps
 * @property {number} written
 * @property {number|null} unread newest logged step if TensorBoard has not read it yet
 * @property {Finding[]} findings ranked
 * @property {Verdict} line how the run is
 */

/**
 * How a run is, in one line.
 * @typedef {object} Verdict
 * @property {"warning"|"note"|"state"|"large_updates"|"well"} class
 * @property {string} text names are between backticks
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {string} label of the layer, "" if it is not about one
 * @property {string|null} key null if the layer has no pictures
 * @property {string|null} shown_at key of the layer whose pictures show it
 * @property {number|null} since step since which it lasts, null if nothing was found
 */

/** @param {string} run @param {AbortSignal} signal @returns {Promise<Health>} */
export async function health(run, signal) {
  const answer = await ask("health", { run }, signal);
  /** @type {import("./container.js").Container<HealthFacts>} */
  const { json, body } = open(await answer.arrayBuffer());
  const { codes, shadings, ...facts } = json;
  return {
    ...facts,
    layers: withFeeders(json.layers),
    arrays: arrays(body, json.arrays),
    cells: {
      codes: octets(body, codes),
      range: octets(body, shadings.range.levels),
      change: octets(body, shadings.change.levels),
    },
    scales: shadings,
  };
}

/**
 * JSON of `data/health_step`. A layer's numbers are from its last kept step up to the requested one.
 * @typedef {object} HealthStepFacts
 * @property {number} step the last kept one up to the requested one
 * @property {number[]} steps of each layer's numbers
 * @property {(string|null)[]} keys of the layers with feature maps, null for others
 * @property {number[]} channels
 * @property {Record<string, number>} unchanged row -> step since which its weights are the same
 * @property {string|null} error why the record of the step cannot be read
 * @property {{key: string, step: number, change: import("./answers.js").JsonFloat|null,
 *   since: number|null, code: number, error: string|null}[]} others layers without feature maps:
 *   the change of their weights
 * @property {Record<string, import("./answers.js").ArrayEntry>} arrays [layers] each
 * @property {import("./answers.js").ArrayEntry} codes of the states, uint8 [layers]
 */

/**
 * The state and the numbers of one layer at a step; those that were not logged are NaN or null.
 * @typedef {object} Overview
 * @property {string} key
 * @property {number} step the kept step that the numbers are from
 * @property {number} code of its state, see `health_states.js`
 * @property {number} minimum
 * @property {number} maximum
 * @property {number} mean
 * @property {number} std
 * @property {number|null} nan
 * @property {number|null} positive_infinity
 * @property {number|null} negative_infinity
 * @property {boolean} counted false if the three counts are lower bounds
 * @property {number|null} channels_nonfinite
 * @property {number|null} channels_constant
 * @property {number|null} channels_dead
 * @property {boolean} dead_known
 * @property {number} channels
 * @property {number|null} change mean over the channels; null if it was not recorded
 * @property {"maps"|"weights"|null} change_of maps in standard deviations, or weights relative to
 *   their norm
 * @property {number|null} change_since logged step that was compared with
 * @property {number|null} weights_unchanged_since step since which no recorded weight has changed
 * @property {string} [error] why the record cannot be read
 */

/** @typedef {{run: string, step: number, ts?: number}} StepOfRun `ts` is the step's time, s */

/** @param {StepOfRun} of @param {AbortSignal} signal */
async function stepOf(of, signal) {
  const answer = await ask("health_step", of, signal);
  /** @type {import("./container.js").Container<HealthStepFacts>} */
  const { json, body } = open(await answer.arrayBuffer());
  return { json, numbers: arrays(body, json.arrays), codes: octets(body, json.codes) };
}

/**
 * Numbers of all layers at one kept step, [layers] each; NaN of a layer that it does not have.
 * @param {StepOfRun} of @param {AbortSignal} signal
 * @returns {Promise<import("./container.js").NamedArrays>}
 */
export async function numbersAt(of, signal) {
  const { json, numbers } = await stepOf(of, signal);
  json.steps.forEach((step, row) => {
    if (step !== of.step)
      for (const each of Object.values(numbers)) each?.values.fill(NaN, row, row + 1);
  });
  return numbers;
}

/**
 * The layers that have pictures, by key.
 * @param {StepOfRun} of @param {AbortSignal} signal @returns {Promise<Map<string, Overview>>}
 */
export async function layersAt(of, signal) {
  const { json, numbers, codes } = await stepOf(of, signal);
  /** @type {Map<string, Overview>} */
  const found = new Map();
  json.keys.forEach((key, row) => {
    if (key !== null) found.set(key, layerAt(json, numbers, codes[row], key, row));
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

/**
 * @param {HealthStepFacts} json @param {import("./container.js").NamedArrays} numbers
 * @param {number} code @param {string} key @param {number} row @returns {Overview}
 */
function layerAt(json, numbers, code, key, row) {
  const value = (/** @type {string} */ name) => numbers[name]?.values[row] ?? NaN;
  const whole = (/** @type {string} */ name) => (Number.isFinite(value(name)) ? value(name) : 0);
  const step = json.steps[row];
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
  const { change, change_of, change_since } =
    maps !== null
      ? changeOf("maps", value("change"), maps)
      : weights !== null
        ? changeOf("weights", value("weights_change"), weights)
        : NO_CHANGE;
  const still = value("weights_change") === 0 ? weights : null;
  return {
    ...{ key, step, code, channels, change, change_of, change_since },
    ...{ minimum: value("minimum"), maximum: value("maximum") },
    ...{ mean: value("mean"), std: value("std"), nan: whole("nan") },
    positive_infinity: whole("positive_infinity"),
    negative_infinity: whole("negative_infinity"),
    counted: value("counted") !== 0,
    channels_nonfinite: count("nonfinite"),
    channels_constant: count("constant"),
    channels_dead: count("dead"),
    dead_known: !Number.isNaN(value("dead")),
    weights_unchanged_since: still === null ? null : Math.min(still, json.unchanged[row] ?? still),
  };
}

/** @param {string} run @param {AbortSignal} signal @returns {Promise<FindingsAnswer>} */
export async function findings(run, signal) {
  return (await ask("findings", { run }, signal)).json();
}

/** Runs other than the current one are asked again no more often. */
const ROUND_MS = 60000;

export class HealthSource {
  /** @param {import("./store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, {version: string, epoch: number, again: string}>} */
    this.asked = new Map();
    this.rounds = { epoch: 0, at: -Infinity, name: "" };
  }

  /**
   * @param {string} run @param {string} version of the list of its steps, "" if not yet known
   */
  health(run, version) {
    return this.store.get(`health/${run}`, (signal) => health(run, signal), {
      epoch: this.epoch(run, version),
      bytes: memoryOf,
    });
  }

  /**
   * @param {string} run @param {string} version as for `health`
   * @param {boolean} prefetch nobody waits for it
   */
  findings(run, version, prefetch = false) {
    return this.store.get(`findings/${run}`, (signal) => findings(run, signal), {
      epoch: this.epoch(run, version),
      bytes: (answer) => 1000 * (1 + answer.findings.length),
      prefetch,
    });
  }

  /**
   * A version for a run whose steps are not known: changes with each reload while TensorBoard is
   * reading the run, otherwise rarely.
   * @param {string} run @param {number} epoch number of the reload
   */
  versionOfOther(run, epoch) {
    const held = this.store.kept.get(`findings/${run}`);
    const last = /** @type {FindingsAnswer|undefined} */ (held?.value);
    return last && last.unread !== null ? `reading ${epoch}` : this.round(epoch);
  }

  /**
   * Has the answers of a run requested once more, because they are older than its list of steps.
   * @param {string} run @param {string} version of that list
   * @returns {boolean} false if they have been requested again already
   */
  again(run, version) {
    const known = this.asked.get(run);
    if (!known || known.again === version) return false;
    known.again = version;
    known.epoch += 1;
    return true;
  }

  /**
   * A version for runs whose steps are not known: changes with the reloads, but rarely.
   * @param {number} epoch number of the reload @param {number} now ms
   */
  round(epoch, now = performance.now()) {
    if (epoch !== this.rounds.epoch && now - this.rounds.at > ROUND_MS) {
      this.rounds = { epoch, at: now, name: `reload ${epoch}` };
    }
    return this.rounds.name;
  }

  /**
   * A number that grows when a run has new steps. The first version that becomes known counts as
   * that of the answers requested before it.
   * @param {string} run @param {string} version
   */
  epoch(run, version) {
    const known = this.asked.get(run) ?? { version: "", epoch: 1, again: "" };
    if (version && known.version && version !== known.version) known.epoch += 1;
    if (version) known.version = version;
    this.asked.set(run, known);
    return known.epoch;
  }
}

/** Approximate memory of an answer, bytes. @param {Health} of */
function memoryOf(of) {
  const numbers = Object.values(of.arrays).length;
  return of.cells.codes.buffer.byteLength * (numbers ? 2 : 1) + of.layers.length * 500;
}
