// @ts-check
/** Builds what a film strip shows from the state, the history of the layer, and loaded frames. */

import { kernelPeak, kernelStep, lockedRanges } from "../draw/film_scale.js";
import { pointOf } from "../draw/crosshair.js";
import { filmChannels } from "../state/film.js";
import { indexOf } from "../state/steps.js";
import { createFrames, createInputs } from "./film_frames.js";

/** @typedef {import("../draw/film_paint.js").Film} Film */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("./answers.js").Layer} Layer */
/** @typedef {import("./film_frames.js").InputQuestion} InputQuestion */
/** @typedef {import("./tab_data.js").Model} Model */

/** Roles of which a channel has a kernel of its own. */
const WITH_KERNELS = new Set(["feature_maps", "gradients_of_maps", "kernels"]);

/**
 * A film, and what can be requested for it.
 * @typedef {Film & {hasInput: boolean, hasMaps: boolean, hasKernels: boolean,
 *   question: (i: number) => Question, inputQuestion: (i: number) => InputQuestion|null}} Strip
 */

/** @type {{frames: Question[], inputs: InputQuestion[]}} */
const NOTHING = { frames: [], inputs: [] };

/**
 * What the frames of some columns need: maps, the kernels shown there, inputs to compare with.
 * @param {Strip} strip @param {number[]} columns @returns {typeof NOTHING}
 */
function questions(strip, columns) {
  const frames = new Map(columns.map((i) => [i, strip.question(i)]));
  for (const i of strip.hasKernels ? columns : []) {
    const step = kernelStep(strip.history, strip.steps[i]);
    const from = step === null ? -1 : strip.steps.indexOf(step);
    if (from >= 0) frames.set(from, strip.question(from));
  }
  const around = new Set(columns.flatMap((i) => (i > 0 ? [i, i - 1] : [i])));
  const inputs = [...around].map(strip.inputQuestion).filter((of) => of !== null);
  return { frames: [...frames.values()], inputs };
}

export class FilmSource {
  /** @param {import("./tab_data.js").Source} source @param {() => void} changed */
  constructor(source, changed) {
    this.source = source;
    this.frames = createFrames(changed);
    this.inputs = createInputs(changed);
    this.epoch = source.epoch;
    this.saved = NOTHING;
  }

  /**
   * The film of the state; null while its layer is not known.
   * @param {Model} model @returns {Strip|null}
   */
  strip({ state, layer, history }) {
    if (!layer || layer.error || !layer.steps.length) return null;
    if (this.epoch !== this.source.epoch) {
      this.epoch = this.source.epoch;
      this.frames.retry();
      this.inputs.retry();
    }
    const { role, sample } = state;
    const isKernels = role === "kernels";
    const drawn = isKernels ? layer.channels || Infinity : layer.drawn;
    const series = this.source
      .layers(state.run)
      .value?.inputs.find((each) => each.name === layer.name && each.sample === sample);
    const at = new Map(series?.steps.map((step, i) => [step, i]));
    const question = (/** @type {number} */ i) => ({
      run: state.run,
      key: layer.key,
      step: layer.steps[i],
      ts: layer.wall_times[i],
      role,
      sample,
    });
    const inputQuestion = (/** @type {number} */ i) => {
      const place = at.get(layer.steps[i]);
      if (!series || place === undefined) return null;
      const ts = series.wall_times[place];
      return { run: state.run, name: series.name, sample, step: layer.steps[i], ts };
    };
    const input = (/** @type {number} */ i) => {
      const of = inputQuestion(i);
      return of && this.inputs.get(of);
    };
    const how = { scale: state.scale, zeroCentred: state.colours === "signed" };
    const isLocked = state.film_scale === "locked";
    const channels = filmChannels(state, drawn);
    const locked = isLocked && !isKernels ? lockedRanges(history, role, channels, how) : null;
    return {
      layer,
      role,
      steps: layer.steps,
      current: indexOf(layer.steps, state.step),
      channels,
      history,
      isLocked,
      locked: locked?.ranges ?? null,
      leftOut: locked?.leftOut ?? 0,
      how,
      kernelPeak: isLocked ? kernelPeak(history) : 0,
      point: pointOf(state.pixel),
      hasInput: Boolean(series),
      hasMaps: !isKernels,
      hasKernels: WITH_KERNELS.has(role) && Boolean(history?.kernels?.length),
      question,
      inputQuestion,
      input,
      frame: (i) => this.frames.get(question(i)),
      error: (i) => this.frames.error(question(i)),
      kernelFrame: (step) => this.frames.get(question(indexOf(layer.steps, step))),
      change: (i) => {
        if (i === 0) return "first";
        const [now, before] = [input(i), input(i - 1)];
        if (!now || !before) return "unknown";
        return now.digest === before.digest ? "same" : "different";
      },
    };
  }

  /**
   * Requests the frames of these columns, the kernels that they show, and their inputs.
   * @param {Strip} strip @param {number[]} columns the most wanted first
   */
  want(strip, columns) {
    const asked = questions(strip, columns);
    this.frames.want([...asked.frames, ...this.saved.frames]);
    this.inputs.want([...asked.inputs, ...this.saved.inputs]);
  }

  /**
   * Loads everything that these columns show, for a saved file; a frame that fails stays unloaded.
   * @param {Strip} strip @param {number[]} columns
   * @returns {Promise<boolean>} false if the strip was left meanwhile
   */
  async load(strip, columns) {
    const asked = questions(strip, columns);
    this.saved = asked; // also asked for when the screen is drawn meanwhile
    this.want(strip, []);
    await Promise.all([this.frames.idle(), this.inputs.idle()]);
    const isWhole = this.saved === asked;
    if (isWhole) this.saved = NOTHING;
    return isWhole;
  }

  /** Stops all requests. */
  rest() {
    this.saved = NOTHING;
    this.frames.want([]);
    this.inputs.want([]);
  }

  /** True while something is being loaded. */
  get busy() {
    return this.frames.left + this.inputs.left > 0;
  }
}
