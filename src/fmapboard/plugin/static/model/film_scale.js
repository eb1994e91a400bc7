// @ts-check
/** Scales and faults of a film strip, known for all kept steps before any frame is loaded. */

import { CODE, KINDS } from "./health_states.js";
import { ranges, stepRanges } from "./value_scale.js";
import { inWordsOf, short } from "./words.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";

/** @import {Fault, History, InFilm, Onset, Ranges, Rows, ScaleChoice, Side} from "./model.js" */
/** @import {Strip} from "./model.js" */

/** Number of steps of the history. @param {{history: History|null}} strip */
export const stepsOf = ({ history }) => history?.steps.length ?? 0;

/**
 * A report knows the numbers of more steps than are kept.
 * @param {Pick<Strip, "history"|"steps"|"unit">} strip
 */
export const keptUnit = (strip) =>
  `${stepsOf(strip) > strip.steps.length ? "logged" : "kept"} ${strip.unit}`;

/** Steps whose magnitude exceeds that of all others by this factor are beyond the scale. */
export const FAR = 10;
/** Share of the steps that may be beyond the scale: more are not exceptions. */
const FEW = 0.25;

/**
 * Magnitude from which on a step is beyond the scale; Infinity if none is. Values that grow
 * steadily, without a gap, are beyond it from `FAR` times the median on, if they reach its square.
 * @param {number[]} sizes magnitudes of the steps, NaN if not known
 */
export function farFrom(sizes) {
  const known = sizes.filter((size) => size > 0 && Number.isFinite(size)).sort((a, b) => b - a);
  const usual = known[Math.floor((known.length - 1) / 2)];
  if (known.length > 2 && known[0] >= FAR ** 2 * usual) {
    return Math.min(...known.filter((size) => size >= FAR * usual));
  }
  for (let most = Math.max(1, Math.floor(known.length * FEW)); most > 0; most -= 1) {
    if (known.length > 2 && known[most - 1] >= FAR * known[most]) return known[most - 1];
  }
  return Infinity;
}

/**
 * The steps without some ranges, and how many were left out of each channel; `filmed` are in a
 * film.
 * @param {Rows} steps @param {number[][]} groups of channels
 * @param {(group: number[]) => boolean[]} isOut
 */
function without(steps, groups, isOut) {
  const used = steps.map((each) => ({ ...each, lo: each.lo.slice(), hi: each.hi.slice() }));
  const count = /** @type {Map<number, number>} */ (new Map());
  const filmed = /** @type {Map<number, number>} */ (new Map());
  for (const group of groups) {
    isOut(group).forEach((is, i) => {
      for (const c of is ? group : []) {
        used[i].lo[c] = used[i].hi[c] = NaN;
        count.set(c, (count.get(c) ?? 0) + 1);
        if (steps[i].isInFilm) filmed.set(c, (filmed.get(c) ?? 0) + 1);
      }
    });
  }
  return { used, count, filmed };
}

/**
 * True for the steps far beyond the others.
 * @param {Rows} steps @param {number[]} group channels with one scale
 */
function areFar(steps, group) {
  const sizes = steps.map(({ lo, hi }) => {
    const all = group.map((c) => Math.max(Math.abs(lo[c]), Math.abs(hi[c])));
    return all.reduce((most, size) => (size > most ? size : most), 0); // NaN is left out
  });
  const far = farFrom(sizes);
  return sizes.map((size) => size >= far);
}

/**
 * True for the steps at which a channel is dead or not finite, unless it is so at all steps.
 * @param {Rows} steps @param {number} c
 */
function areFaulty(steps, c) {
  const are = steps.map(({ faultOf }) => ["dead", "nonfinite"].includes(faultOf(c) ?? ""));
  const isAny = steps.some(({ lo, hi }, i) => !are[i] && lo[c] <= hi[c]);
  return are.map((is) => is && isAny);
}

/**
 * The range of each channel over all kept steps of one or several strips; null if it is not known.
 * Steps at which a chosen channel (with one scale for the layer: any drawn one) has large values
 * are left out, because all other frames would have one single colour; and of each channel those at
 * which it is dead or not finite, and those few that are `FAR` beyond its others.
 * @param {(History|null)[]} histories @param {string} role @param {number[]} chosen channels
 * @param {ScaleChoice} how @param {readonly (readonly number[])[]} [films] steps of each strip
 * @returns {{ranges: Ranges, leftOut: number, beyond: Map<number, number>, inFilm: InFilm}|null}
 */
export function lockedRanges(histories, role, chosen, how, films) {
  const every = histories.flatMap((history, i) => rows(history, role, films?.[i]));
  if (!every.length) return null;
  const width = every.reduce((most, { lo }) => Math.max(most, lo.length), 0);
  const own = how.scale === "layer" ? Array.from({ length: width }, (_, c) => c) : chosen;
  const isLarge = (/** @type {typeof every[0]} */ at, /** @type {number} */ c) =>
    at.faultOf(c) === "large";
  const usual = every.filter((at) => !own.some((c) => isLarge(at, c)));
  const used = usual.some((at) => own.some((c) => at.lo[c] <= at.hi[c])) ? usual : every;
  const each = own.map((c) => [c]);
  const groups = how.scale === "layer" ? [own] : each;
  const sound = without(used, each, ([c]) => areFaulty(used, c));
  const robust = without(sound.used, groups, (group) => areFar(sound.used, group));
  return {
    ranges: ranges(width, robust.used, how),
    leftOut: every.length - used.length,
    beyond: robust.count,
    inFilm: { leftOut: filmed(every) - filmed(used), beyond: robust.filmed, faulty: sound.filmed },
  };
}

/** Number of steps that are in a film. @param {ReturnType<typeof rows>} steps */
const filmed = (steps) => steps.filter(({ isInFilm }) => isInFilm).length;

/**
 * @param {History|null} history @param {string} role
 * @param {readonly number[]} [film] steps of the strip
 */
export const rows = (history, role, film) =>
  stepRanges(history, role).map((ends, i) => ({
    ...ends,
    isInFilm: !film || film.includes(history?.steps[i] ?? NaN),
    faultOf: (/** @type {number} */ channel) => history && kindOf(history, role, i, channel),
  }));

/**
 * True if a frame is outside of the locked scale, because its step is far beyond the others.
 * @param {Pick<Strip, "locked"|"beyond">} film @param {Pick<Side, "lo"|"hi">} side
 * @param {number} channel
 */
export function isBeyond({ locked, beyond }, { lo, hi }, channel) {
  if (!locked || !beyond.get(channel)) return false;
  return hi[channel] > locked.hi[channel] || lo[channel] < locked.lo[channel];
}

/** The lines of text at the colour bar of a channel. @param {Strip} film @param {number} channel */
export function scaleWords({ locked, isLocked, steps, sharing, inFilm, how, unit }, channel) {
  if (!locked) {
    return [`each ${unit} its own`, isLocked ? `(all ${unit}s: loading)` : "scale, not locked"];
  }
  const { leftOut } = inFilm;
  const [far, faulty] = [inFilm.beyond, inFilm.faulty].map((of) => of.get(channel) ?? 0);
  const kept = steps.length - leftOut - far - faulty;
  const over = kept < steps.length ? `${kept} of ${steps.length}` : `${steps.length}`;
  const more = [
    how.scale === "layer" ? "whole layer" : "",
    leftOut ? "no large values" : "",
    far ? `${far} beyond scale` : "",
    faulty ? "none with a fault" : "",
  ].filter(Boolean);
  const alone = kept > 0 ? `${over} ${unit}${steps.length > 1 ? "s" : ""}` : `other ${unit}s`;
  return [
    `${short(locked.lo[channel])} … ${short(locked.hi[channel])}`,
    `locked over ${sharing ? `${unit}s of ${sharing}` : alone}`,
    ...(more.length ? [`(${more.join(", ")})`] : []),
  ];
}

const WORDS = Object.freeze({
  nonfinite: "non-finite",
  large: "large",
  dead: "dead",
  constant: "const",
});

/**
 * The most severe fault.
 * @param {History|null} history @param {string} role @param {number} step @param {number} channel
 */
export function faultAt(history, role, step, channel) {
  if (!history) return null;
  const i = indexOf(history.steps, step);
  if (history.steps[i] !== step) return null;
  const kind = kindOf(history, role, i, channel);
  const word = kind ? inWordsOf(WORDS[kind]) : "";
  return kind && { kind, word, brief: word, colour: FAULT_COLOURS[kind] };
}

/**
 * @param {History} history @param {string} role @param {number} i of the step
 * @param {number} channel
 * @returns {Fault|null}
 */
function kindOf({ arrays }, role, i, channel) {
  const codes = arrays[`${role}.code`];
  if (!codes || channel >= codes.shape[1]) return null;
  const kind = KINDS[codes.values[i * codes.shape[1] + channel]] ?? null;
  return kind === "unchanged" ? null : kind;
}

/**
 * Since when each channel has had each kind of fault: the most severe kinds first, then by step.
 * @param {History|null} history @param {string} role @param {number[]} channels @returns {Onset[]}
 */
export function onsets(history, role, channels) {
  /** @type {Onset[]} */
  const found = [];
  if (!history) return found;
  for (const channel of channels) {
    /** @type {Map<Fault, Onset>} */
    const of = new Map();
    history.steps.forEach((step, i) => {
      const kind = kindOf(history, role, i, channel);
      const known = kind && of.get(kind);
      if (known) known.count += 1;
      else if (kind) {
        const after = i > 0 ? history.steps[i - 1] : null;
        of.set(kind, { channel, kind, word: inWordsOf(WORDS[kind]), step, after, count: 1 });
      }
    });
    found.push(...of.values());
  }
  const rank = (/** @type {Onset} */ { kind }) => Object.keys(WORDS).indexOf(kind);
  return found.sort((a, b) => rank(a) - rank(b) || a.step - b.step || a.channel - b.channel);
}

/**
 * The last step, not after `step`, at which kernels were drawn; `kept` are the steps with pictures.
 * @param {History|null} history @param {number} step @param {readonly number[]} kept
 */
export function kernelStep(history, step, kept) {
  const drawn = (history?.kernels ?? []).map((each) => each.step);
  const steps = drawn.filter((each) => kept.includes(each));
  const i = indexOf(steps, step);
  return i >= 0 && steps[i] <= step ? steps[i] : null;
}

/**
 * True if a map of the layer has large values at a step.
 * @param {History} history @param {number} step
 */
function hasLargeMaps({ steps, arrays }, step) {
  const i = steps.indexOf(step);
  const codes = arrays["feature_maps.code"];
  const width = codes?.shape[1] ?? 0;
  const own = codes?.values.subarray(i * width, (i + 1) * width);
  return own?.some((code) => code === CODE.LARGE) ?? false;
}

/**
 * Largest magnitude of kernels over all kept steps, without those at which the layer's maps have
 * large values, unless all have them: others would all be grey. `isPart`: steps are left out.
 * @param {(History|null)[]} histories
 */
export function kernelPeak(histories) {
  const every = histories.flatMap((history) =>
    (history?.kernels ?? []).map(({ step, peak }) => ({
      peak: Number(peak ?? 0),
      isLarge: Boolean(history && hasLargeMaps(history, step)),
    })),
  );
  const usual = every.filter(({ peak, isLarge }) => peak > 0 && !isLarge);
  const used = usual.length ? usual : every;
  const most = (/** @type {typeof every} */ of) =>
    of.reduce((found, { peak }) => (peak > found ? peak : found), 0);
  return { peak: most(used), isPart: most(used) < most(every) };
}
