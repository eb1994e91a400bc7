// @ts-check
/** Scales and faults of a film strip, known for all kept steps before any frame is loaded. */

import { KINDS, isLarge } from "./health_states.js";
import { ranges, stepRanges } from "./value_scale.js";
import { counted, inWordsOf, short } from "./words.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";

/** @import {Fault, History, Onset, Scale, ScaleChoice, Strip} from "./model.js" */

/** Number of steps of the history. @param {{history: History|null}} strip */
export const stepsOf = ({ history }) => history?.steps.length ?? 0;

/**
 * A report knows the numbers of more steps than are kept.
 * @param {Pick<Strip, "history"|"steps"|"unit">} strip
 */
export const keptUnit = (strip) =>
  `${stepsOf(strip) > strip.steps.length ? "logged" : "kept"} ${strip.unit}`;

/** Why the locked scale leaves out a step: as the codes of the server (`film_scale.py`). */
const REASONS = /** @type {const} */ (["", "large", "non-finite", "dead", "▲ outlying"]);
const FAR = 4;

/**
 * Codes of `REASONS`, [steps, drawn].
 * @param {History|null} history @param {string} role @param {Scale} scale
 */
const codesOf = (history, role, scale) =>
  history?.arrays[`${role}.left_out${scale === "layer" ? "_of_layer" : ""}`];

/**
 * The range of each channel over all kept steps of one or several strips, without those that the
 * server leaves out, and how many steps of the films these are, [reasons][channels]; null if it is
 * not known.
 * @param {(History|null)[]} histories @param {string} role @param {ScaleChoice} how
 * @param {readonly (readonly number[])[]} [films] steps of each strip
 */
export function lockedRanges(histories, role, how, films) {
  /** @type {number[][]} */
  const leftOut = REASONS.map(() => []);
  let width = 0;
  const used = histories.flatMap((history, h) => {
    const codes = codesOf(history, role, how.scale);
    return stepRanges(history, role).map(({ lo, hi }, i) => {
      width = Math.max(width, lo.length);
      const isInFilm = films?.[h].includes(history?.steps[i] ?? NaN) ?? true;
      const why = (/** @type {number} */ c) => codes?.values[i * lo.length + c] || 0;
      lo.forEach((_, c) => {
        const counts = leftOut[why(c)];
        if (isInFilm) counts[c] = (counts[c] ?? 0) + 1;
      });
      const [low, high] = [lo, hi].map((ends) => ends.map((end, c) => (why(c) ? NaN : end)));
      return { lo: low, hi: high };
    });
  });
  return used.length ? { ranges: ranges(width, used, how), leftOut } : null;
}

/**
 * True if a frame is outside of the locked scale, because its step is far beyond the others.
 * @param {Pick<Strip, "locked"|"history"|"role"|"how"|"steps">} film @param {number} i of the frame
 * @param {number} channel
 */
export function isBeyond({ locked, history, role, how, steps }, i, channel) {
  const codes = locked && codesOf(history, role, how.scale);
  const row = history ? history.steps.indexOf(steps[i]) : -1;
  return codes ? codes.values[row * codes.shape[1] + channel] === FAR : false;
}

/**
 * What a film's scale leaves out, as "3 steps (1 large, 2 non-finite)": the most of a channel.
 * @param {Pick<Strip, "leftOut"|"order"|"unit">} film
 */
export function leftOutWords({ leftOut, order, unit }) {
  const said = REASONS.map((reason, why) => {
    const most = Math.max(0, ...order.map((channel) => leftOut[why]?.[channel] ?? 0));
    return { most, word: inWordsOf(reason) };
  }).filter(({ most }, why) => why && most);
  const all = said.reduce((sum, { most }) => sum + most, 0);
  const words = said.map(({ most, word }) => (said.length > 1 ? `${most} ${word}` : word));
  return all ? `${counted(all, unit)} (${words.join(", ")})` : "";
}

/** The lines of text at the colour bar of a channel. @param {Strip} film @param {number} channel */
export function scaleWords({ locked, isLocked, steps, sharing, leftOut, how, unit }, channel) {
  if (!locked) return [isLocked ? "loading" : `each ${unit} its own`];
  const all = steps.length;
  const kept = leftOut.slice(1).reduce((rest, of) => rest - (of[channel] ?? 0), all);
  const over =
    kept === all
      ? `${all > 1 ? "all " : ""}${counted(all, unit)}`
      : `${kept} of ${counted(all, unit)}`;
  return [
    `${short(locked.lo[channel])} … ${short(locked.hi[channel])}`,
    sharing ? `${unit}s of ${sharing}` : kept ? over : `other ${unit}s`,
    ...(how.scale === "layer" ? ["whole layer"] : []),
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
  const codes = history.arrays[`${role}.code`];
  const kind = kindOf(history, role, i, channel);
  const isBoth = kind === "dead" && isLarge(codes?.values[i * codes.shape[1] + channel] ?? 0);
  const word = kind ? `${isBoth ? "large, " : ""}${inWordsOf(WORDS[kind])}` : "";
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
  return own?.some(isLarge) ?? false;
}

/**
 * Largest magnitude of kernels over all kept steps, without those at which the layer's maps have
 * large values, if these are few. `isPart`: steps are left out.
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
  const used = 2 * usual.length > every.length ? usual : every;
  const most = (/** @type {typeof every} */ of) =>
    of.reduce((found, { peak }) => (peak > found ? peak : found), 0);
  return { peak: most(used), isPart: most(used) < most(every) };
}
