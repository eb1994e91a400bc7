// @ts-check
/** Builds what a film strip shows from the state, the history of the layer, and loaded frames. */

import { kernelPeak, kernelStep, lockedRanges, onsets } from "../draw/film_scale.js";
import { pointOf } from "../draw/crosshair.js";
import { filmChannels } from "../state/film.js";
import { filmColumns } from "./film_columns.js";
import { kindOf } from "../state/step_words.js";
import { indexOf } from "../state/steps.js";
import { createFrames, createInputs } from "./film_frames.js";

/** @typedef {import("../draw/film_paint.js").Film} Film */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("./answers.js").Layer} Layer */
/** @typedef {import("./film_columns.js").FilmColumn} FilmColumn */
/** @typedef {import("./film_frames.js").InputQuestion} InputQuestion */
/** @typedef {import("./tab_data.js").Model} Model */

/** Roles of which a channel has a kernel of its own. */
const WITH_KERNELS = new Set(["feature_maps", "gradients_of_maps", "kernels"]);

/**
 * A film, and what can be requested for it; `opensAt` is the column that is brought into view.
 * @typedef {Film & {of: FilmColumn, opensAt: number, hasInput: boolean, hasMaps: boolean, hasKernels: boolean,
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
    const step = kernelStep(strip.history, strip.steps[i], strip.steps);
    const from = step === null ? -1 : strip.steps.indexOf(step);
    if (from >= 0) frames.set(from, strip.question(from));
  }
  const around = new Set(columns.flatMap((i) => (i > 0 ? [i, i - 1] : [i])));
  const inputs = [...around].map(strip.inputQuestion).filter((of) => of !== null);
  return { frames: [...frames.values()], inputs };
}

/** The first of each list, then the second of each, and so on. @template T @param {T[][]} lists @returns {T[]} */
function inTurn(lists) {
  const most = lists.reduce((longest, { length }) => Math.max(longest, length), 0);
  return Array.from({ length: most }, (_, i) =>
    lists.flatMap((list) => list.slice(i, i + 1)),
  ).flat();
}

/**
 * The column of the first of the most severe faults of the channels while no step is chosen; else
 * that of the step.
 * @param {FilmColumn} of @param {number[]} channels @param {import("../state/state.js").State} state
 */
function opensAt({ layer, history, role, step }, channels, state) {
  const [worst] = onsets(history, role, channels);
  return indexOf(layer.steps, state.step === null && worst ? worst.step : step);
}

/** Number of channels that have pictures. @param {FilmColumn} of */
function drawnIn({ layer, role }) {
  return role === "kernels" ? layer.channels || Infinity : layer.drawn;
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
   * The strips of all columns, the main one first; none while its layer is not known.
   * @param {Model} model @returns {{strips: Strip[], notes: string[]}}
   */
  strips(model) {
    const { columns, notes } = filmColumns(model);
    if (!columns.length) return { strips: [], notes };
    if (this.epoch !== this.source.epoch) {
      this.epoch = this.source.epoch;
      this.frames.retry();
      this.inputs.retry();
    }
    const { state } = model;
    const chosen = filmChannels(state, drawnIn(columns[0]));
    const how = { scale: state.scale, zeroCentred: state.colours === "signed" };
    const isLocked = state.film_scale === "locked";
    const kernels = kernelPeak(columns.map(({ history }) => history));
    /** @type {Strip[]} */
    const strips = [];
    for (const of of columns) {
      const channels = chosen.filter((channel) => channel < drawnIn(of));
      if (!channels.length) {
        notes.push(`${of.letter}: only channels 0 to ${drawnIn(of) - 1} are drawn.`);
        continue;
      }
      const alike = columns.filter(({ role, history }) => role === of.role && history);
      const all = alike.map(({ history }) => history);
      const films = alike.map(({ layer }) => layer.steps);
      const known = isLocked && of.history && of.role !== "kernels";
      const locked = known ? lockedRanges(all, of.role, chosen, how, films) : null;
      strips.push({
        ...this.strip(of, state),
        channels,
        isLocked,
        locked: locked?.ranges ?? null,
        leftOut: locked?.leftOut ?? 0,
        beyond: locked?.beyond ?? new Map(),
        inFilm: locked?.inFilm ?? { leftOut: 0, beyond: new Map(), faulty: new Map() },
        sharing: alike.length > 1 ? alike.map(({ letter }) => letter).join(", ") : "",
        how,
        kernelPeak: isLocked ? kernels.peak : 0,
        kernelsBeyond: isLocked && kernels.isPart,
        opensAt: opensAt(of, channels, state),
      });
    }
    return { strips, notes };
  }

  /**
   * What a strip has of its own.
   * @param {FilmColumn} of @param {import("../state/state.js").State} state
   */
  strip(of, state) {
    const { run, layer, role, sample, history } = of;
    const isKernels = role === "kernels";
    const listed = this.source.layers(run).value;
    const words = listed?.step_words;
    const series = listed?.inputs.find(
      (each) => each.name === layer.name && each.sample === sample,
    );
    const at = new Map(series?.steps.map((step, i) => [step, i]));
    const question = (/** @type {number} */ i) => ({
      run,
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
      return { run, name: series.name, sample, step: layer.steps[i], ts };
    };
    const input = (/** @type {number} */ i) => {
      const asked = inputQuestion(i);
      return asked && this.inputs.get(asked);
    };
    return {
      of,
      layer,
      role,
      steps: layer.steps,
      words,
      unit: kindOf(words),
      current: indexOf(layer.steps, of.step),
      history,
      point: pointOf(state.pixel),
      hasInput: Boolean(series),
      hasMaps: !isKernels,
      hasKernels: WITH_KERNELS.has(role) && Boolean(history?.kernels?.length),
      question,
      inputQuestion,
      input,
      frame: (/** @type {number} */ i) => this.frames.get(question(i)),
      error: (/** @type {number} */ i) => this.frames.error(question(i)),
      kernelFrame: (/** @type {number} */ step) =>
        this.frames.get(question(indexOf(layer.steps, step))),
      change: (/** @type {number} */ i) => {
        if (i === 0) return /** @type {const} */ ("first");
        const [now, before] = [input(i), input(i - 1)];
        if (!now || !before) return /** @type {const} */ ("unknown");
        return now.digest === before.digest
          ? /** @type {const} */ ("same")
          : /** @type {const} */ ("different");
      },
    };
  }

  /**
   * Requests the frames of these columns, the kernels that they show, and their inputs.
   * @param {{strip: Strip, columns: number[]}[]} wanted of each strip the most wanted first
   */
  want(wanted) {
    const asked = wanted.map(({ strip, columns }) => questions(strip, columns));
    this.frames.want([...inTurn(asked.map(({ frames }) => frames)), ...this.saved.frames]);
    this.inputs.want([...inTurn(asked.map(({ inputs }) => inputs)), ...this.saved.inputs]);
  }

  /**
   * Loads everything that these columns show, for a saved file; a frame that fails stays unloaded.
   * @param {Strip} strip @param {number[]} columns
   * @returns {Promise<boolean>} false if the strip was left meanwhile
   */
  async load(strip, columns) {
    const asked = questions(strip, columns);
    this.saved = asked; // also asked for when the screen is drawn meanwhile
    this.want([]);
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
