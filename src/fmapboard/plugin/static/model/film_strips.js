// @ts-check
/** Film strips: a scene with a column per step of a layer, and the network's input at each. */

import { ROLE_NAMES, matchText } from "./compare.js";
import { kernelPeak, kernelStep, lockedRanges, onsets } from "./film_scale.js";
import { BLANK } from "./scene.js";
import { LETTERS, filmChannels } from "./state.js";
import { ranges as rangesOf } from "./value_scale.js";
import { kindOf, runText } from "./words.js";
import { decodeMaps, pictureOf, pixels, sideOf } from "../server/decode.js";
import { decodedKernels } from "../server/kernels.js";
import { mapsQuery } from "../server/source.js";
import { indexOf } from "../server/steps.js";
import * as api from "../server/api.js";

/** @import {Cache} from "../server/cache.js" */
/** @import {Entry, Maps, Pass} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {FilmColumn, Frame, InputFrame, InputQuestion, Model} from "./model.js" */
/** @import {Question, Side, State, Strip} from "./model.js" */

const INPUT_SIDE = 256;

/** @param {Question} of @param {AbortSignal} signal */
export async function loadFrame(of, signal) {
  const maps = await decodeMaps(
    await api.binary("maps", mapsQuery(of), signal),
    (role, sample) => role === "kernels" || (role === of.role && sample === of.sample),
  );
  const kernels = decodedKernels(maps);
  maps.kernels?.close();
  maps.kernels = null;
  return { maps, side: sideOf(maps, of.role, of.sample), kernels };
}

/** What a frame or an input is kept under. @param {Question|InputQuestion} of */
const keyOf = (of) => `film/${JSON.stringify(of)}`;

/**
 * Requests answers, the most wanted first, and none of the others that this pass asked for.
 * @template {Question|InputQuestion} Q
 * @template T
 * @param {Cache} cache @param {Pass} of @param {Q[]} questions
 * @param {(question: Q, signal: AbortSignal) => Promise<T>} load
 * @param {(value: T) => number} bytes
 */
function want(cache, of, questions, load, bytes) {
  cache.begin(of);
  for (const each of questions) {
    cache.get(keyOf(each), (signal) => load(each, signal), { of, bytes });
  }
  cache.end(of);
}

/** @param {InputQuestion} of @param {AbortSignal} signal */
export async function loadInput(of, signal) {
  const whole = await api.picture("input", of, signal);
  const factor = Math.min(1, INPUT_SIDE / Math.max(whole.width, whole.height));
  const sides = [whole.width, whole.height].map((side) => Math.max(1, Math.round(side * factor)));
  const picture = new OffscreenCanvas(sides[0], sides[1]);
  const found = digest(pixels(whole));
  picture.getContext("2d")?.drawImage(whole, 0, 0, picture.width, picture.height);
  whole.close();
  return { picture, digest: found };
}

/**
 * Two 32-bit hashes (FNV-1a, and a multiplicative one) and the size of a picture.
 * @param {ImageData} image
 */
export function digest({ data, width, height }) {
  let first = 0x811c9dc5;
  let second = 1;
  for (const byte of data) {
    first = Math.imul(first ^ byte, 0x01000193);
    second = (Math.imul(second, 31) + byte) | 0;
  }
  return `${width}×${height}/${first >>> 0}/${second >>> 0}`;
}

// The film strips of the columns: the main one, and each that is not of the same maps.

/**
 * @param {Model} model
 * @returns {{columns: FilmColumn[], notes: string[]}} `notes` say why a column has no strip
 */
export function filmColumns({ state, layer, history, columns: [other], filmHistories }) {
  if (!layer || layer.error || !layer.steps.length) return { columns: [], notes: [] };
  const { run, role, sample, step } = state;
  const [letter, text] = [other ? LETTERS[0] : "", placeText(run, role, sample)];
  /** @type {FilmColumn} */
  const main = { letter, text, run, layer, role, sample, step, isOther: false, history };
  if (!other) return { columns: [main], notes: [] };
  const { question, match, column, why } = other;
  if (!question || !match) return { columns: [main], notes: why ? [`B: ${why}.`] : [] };
  const { run: otherRun, key, role: shown, sample: at } = question;
  if (otherRun === run && key === layer.key && shown === role && at === sample) {
    return { columns: [main], notes: ["B is a step of the strip of A."] };
  }
  const texts = [placeText(otherRun, shown, at), matchText(match)];
  const of = { letter: LETTERS[1], text: texts.filter(Boolean).join(" · "), run: otherRun };
  const what = { layer: match.layer, role: shown, sample: at, step: column.step ?? step };
  const beside = { ...of, ...what, isOther: true, history: filmHistories[0] ?? null };
  return { columns: [main, beside], notes: [] };
}

/** @param {string} run @param {string} role @param {number} sample */
function placeText(run, role, sample) {
  const of = role === "kernels" ? "" : `sample ${sample}`;
  const drawn = role === "feature_maps" ? "" : (ROLE_NAMES[role] ?? role);
  return [runText(run), of, drawn].filter(Boolean).join(" · ");
}

// Builds what a film strip shows from the state, the history of the layer, and loaded frames.

/** Roles of which a channel has a kernel of its own. */
const WITH_KERNELS = new Set(["feature_maps", "gradients_of_maps", "kernels"]);

/** @type {{frames: Question[], inputs: InputQuestion[]}} */
const NOTHING = { frames: [], inputs: [] };

/**
 * Maps, kernels and inputs that columns need.
 * @param {Strip} strip @param {number[]} shown columns
 * @returns {typeof NOTHING}
 */
function questions({ columns, steps, history, hasKernels }, shown) {
  const frames = new Map(shown.map((i) => [i, columns[i].question]));
  for (const i of hasKernels ? shown : []) {
    const step = kernelStep(history, steps[i], steps);
    const from = step === null ? -1 : steps.indexOf(step);
    if (from >= 0) frames.set(from, columns[from].question);
  }
  const around = new Set(shown.flatMap((i) => (i > 0 ? [i, i - 1] : [i])));
  const inputs = [...around].map((i) => columns[i].asked).filter((of) => of !== null);
  return { frames: [...frames.values()], inputs };
}

/**
 * The first of each list, then the second of each, and so on.
 * @template T
 * @param {T[][]} lists
 * @returns {T[]}
 */
function inTurn(lists) {
  const most = lists.reduce((longest, { length }) => Math.max(longest, length), 0);
  return Array.from({ length: most }, (_, i) =>
    lists.flatMap((list) => list.slice(i, i + 1)),
  ).flat();
}

/**
 * Whether an input is that of the step before.
 * @param {InputFrame|null|undefined} before @param {InputFrame|null|undefined} now
 * @returns {"unknown"|"same"|"different"}
 */
function changed(before, now) {
  if (!now || !before) return "unknown";
  return now.digest === before.digest ? "same" : "different";
}

/** @param {Maps} maps without a picture @param {string} role @param {string} lost */
function whyNoFrame({ missing }, role, lost) {
  return missing.includes(role) ? `this picture ${lost}` : "not logged at this step";
}

/** Before the size of any map is known. @type {Side} */
const NO_SIDE = {
  planes: { channels: 0, height: 1, width: 1, levels: new Uint8Array(0), marks: null, coarse: 1 },
  ...{ lo: [], hi: [] },
};

/** Number of channels that have pictures. @param {FilmColumn} of */
function drawnIn({ layer, role }) {
  return role === "kernels" ? layer.channels || Infinity : layer.drawn;
}

export class FilmSource {
  /** @param {Source} source @param {() => void} changed */
  constructor(source, changed) {
    this.source = source;
    this.cache = source.cache;
    this.frames = { most: 4, changed };
    this.inputs = { most: 2, changed };
    this.saved = NOTHING;
  }

  /**
   * The strips of all columns, the main one first; none while its layer is not known.
   * @param {Model} model
   */
  strips(model) {
    const { columns, notes } = filmColumns(model);
    if (!columns.length) return { strips: [], notes };
    const { state } = model;
    const chosen = filmChannels(state, drawnIn(columns[0]), columns[0].history?.shown);
    const scene = model.scene?.kind === "maps" ? model.scene : null;
    const strips = [];
    for (const of of columns) {
      const scaled = scene?.ownScale ? [of] : columns;
      if (chosen.some((each) => each < drawnIn(of))) {
        const near = scene?.question.key === of.layer.key ? scene.a : NO_SIDE;
        strips.push(this.strip(of, scaled, chosen, state, near));
      } else notes.push(`${of.letter}: only channels 0 to ${drawnIn(of) - 1} are drawn.`);
    }
    return { strips, notes };
  }

  /**
   * @param {FilmColumn} of @param {FilmColumn[]} scaled those on its scale
   * @param {number[]} chosen channels
   * @param {State} state @param {Side} near maps of the layer that are known, for their size
   */
  strip(of, scaled, chosen, state, near) {
    const order = chosen.filter((channel) => channel < drawnIn(of));
    const { run, layer, role, sample, history } = of;
    const isKernels = role === "kernels";
    const how = { scale: state.scale, zeroCentred: state.colours === "signed" };
    const isLocked = state.film_scale === "locked";
    const alike = scaled.filter((each) => each.role === role && each.history);
    const shared = isLocked && history && !isKernels;
    const all = alike.map((each) => each.history);
    const films = alike.map((each) => each.layer.steps);
    const locked = shared ? lockedRanges(all, role, how, films) : null;
    const kernels = kernelPeak(scaled.map((each) => each.history));
    const listed = this.source.layers(run).value;
    const words = listed?.step_words;
    const series = listed?.inputs.find(
      (each) => each.name === layer.name && each.sample === sample,
    );
    const [worst] = onsets(history, role, order);
    const keepsAll = this.source.runs().value?.keeps_all;
    const lost = keepsAll ? "cannot be read" : "is no longer kept by TensorBoard";
    const at = new Map(series?.steps.map((step, i) => [step, i]));
    const { key, steps, wall_times: times } = layer;
    /** @type {InputFrame|null|undefined} */
    let before;
    const frames = steps.map((step, i) => {
      const question = { run, key, role, sample, step, ts: times[i] };
      const place = at.get(step);
      const asked =
        series && place !== undefined
          ? { run, name: series.name, sample, step, ts: series.wall_times[place] }
          : null;
      const entry = /** @type {Entry<Frame>|undefined} */ (this.cache.peek(keyOf(question)));
      const { maps = null, side = null, kernels = null } = entry?.value ?? {};
      const known = asked && this.cache.peek(keyOf(asked));
      /** Null if it is not stored, undefined before it is loaded. */
      const input = asked && /** @type {InputFrame|undefined} */ (known?.value);
      const change = i ? changed(before, input) : "first";
      before = input;
      const why = entry?.error
        ? `cannot be loaded: ${entry.error.message}`
        : maps && !side
          ? whyNoFrame(maps, role, lost)
          : "";
      const shown = { question, maps, side, difference: null, history: null, why, note: "" };
      return { ...{ letter: of.letter, ...shown }, kernels, asked, input, change };
    });
    const [known] = frames.filter(({ side }) => side);
    const drawn = known?.maps ? pictureOf(known.maps, role) : null;
    const picture = drawn?.role === "kernels" ? null : drawn;
    return {
      ...{ ...BLANK, kind: /** @type {const} */ ("film"), order, columns: frames, picture },
      rows: picture?.layout === "rows",
      a: known?.side ?? near,
      columnRanges: frames.map(({ side }) =>
        side ? (locked?.ranges ?? rangesOf(side.planes.channels, [side], how)) : BLANK.ranges,
      ),
      ...{ of, layer, role, isLocked, how, lost },
      /** The scale of all steps, null if each step has its own. */
      locked: locked?.ranges ?? null,
      /** Steps of the film that it leaves out. */
      leftOut: locked?.leftOut ?? [],
      /** Letters of the strips with this scale, "" for one alone. */
      sharing: alike.length > 1 ? alike.map(({ letter }) => letter).join(", ") : "",
      kernelPeak: isLocked ? kernels.peak : 0, // of all steps; 0 if each step has its own
      kernelsBeyond: isLocked && kernels.isPart,
      /**
       * Column of the first of the most severe faults while no step is chosen; else of the step.
       */
      opensAt: indexOf(steps, state.step === null && worst ? worst.step : of.step),
      steps,
      words,
      unit: kindOf(words),
      current: indexOf(steps, of.step),
      history,
      point: state.pixel,
      hasInput: Boolean(series),
      hasMaps: !isKernels,
      hasKernels: WITH_KERNELS.has(role) && Boolean(history?.kernels?.length),
    };
  }

  /**
   * Requests what columns show, in this order.
   * @param {{strip: Strip, columns: number[]}[]} wanted
   */
  want(wanted) {
    const asked = wanted.map(({ strip, columns }) => questions(strip, columns));
    const frames = [...inTurn(asked.map((each) => each.frames)), ...this.saved.frames];
    const inputs = [...inTurn(asked.map((each) => each.inputs)), ...this.saved.inputs];
    want(this.cache, this.frames, frames, loadFrame, ({ maps }) => 20000 + maps.bytes);
    want(this.cache, this.inputs, inputs, loadInput, ({ picture: of }) => 4 * of.width * of.height);
  }

  /**
   * Loads what columns show, for a saved file; false if the strip was left.
   * @param {Strip} strip @param {number[]} columns
   */
  async load(strip, columns) {
    const asked = questions(strip, columns);
    this.saved = asked; // also asked for when the screen is drawn meanwhile
    this.want([]);
    await Promise.all([this.frames, this.inputs].map((pass) => this.cache.idle(pass)));
    const isWhole = this.saved === asked;
    if (isWhole) this.saved = NOTHING;
    return isWhole;
  }

  /** Stops all requests. */
  rest() {
    this.saved = NOTHING;
    this.want([]);
  }

  /** True while something is being loaded. */
  get busy() {
    return this.cache.left(this.frames) + this.cache.left(this.inputs) > 0;
  }
}
