// @ts-check
/** Texts above a film strip: its scale, whether its inputs are the same, and since when it has faults. */

import { FAR } from "../draw/film_scale.js";
import { deadWord } from "../state/dead_word.js";
import { counted, short, stepText } from "../draw/number_text.js";
import { wordOf } from "../state/step_words.js";
import { keptFrom } from "./view_first_fault.js";

/** @typedef {import("../data/film.js").Strip} Strip */

/** Number of steps of a history. @param {import("../draw/scene.js").History|null} history */
export const stepsOf = (history) => history?.steps.length ?? 0;

/** @typedef {Pick<Strip, "history"|"steps"|"words"|"unit">} Steps */

/**
 * What the steps of a history are: a report knows the numbers of more steps than it has pictures of.
 * @param {Pick<Strip, "history"|"steps">} strip
 */
export const keptKind = ({ history, steps }) =>
  stepsOf(history) > steps.length ? "logged" : "kept";

/** The kept step that is shown for one without pictures, in words. @param {number} step @param {Steps} strip */
function shownFor(step, { steps, words }) {
  const to = keptFrom(steps, step);
  return to === step ? "" : `${wordOf(words, to)}, the ${to > step ? "next" : "last"} kept one`;
}

/** Where the button of a fault leads. @param {number} step @param {Steps} strip */
export function goText(step, strip) {
  const word = wordOf(strip.words, step);
  const other = shownFor(step, strip);
  return other ? `Go to ${other}: ${word} has no pictures` : `Go to ${word}`;
}

/**
 * Since when a channel has a fault, and which step shows it if that one has no pictures.
 * @param {import("../draw/film_scale.js").Onset} of @param {Steps} strip
 */
export function onsetText({ channel, kind, word, step, after, count }, strip) {
  const kept = stepsOf(strip.history);
  const steps = `${keptKind(strip)} ${strip.unit}`;
  const other = shownFor(step, strip);
  const shown = other && ` · shown at ${other}`;
  const name = `channel ${channel}: ${kind === "constant" ? "constant" : word}`;
  if (count === kept) {
    const all = kept === 1 ? `the one ${steps}` : `all ${kept} ${steps}s`;
    return `${name} at ${all}${shown}`;
  }
  const at = `at ${count} of ${kept} ${steps}s`;
  const first = wordOf(strip.words, step);
  if (strip.unit === "image") return `${name} ${at}, the first is ${first}${shown}`;
  const since = after === null ? first : `${first} (not at ${stepText(after)})`;
  return `${name} first at ${since}, ${at}${shown}`;
}

/** What is known about the inputs of the steps of a strip, in words. @param {Strip} strip */
export function inputNote(strip) {
  const { steps } = strip;
  if (strip.unit === "image") return "Each frame is of another image, with the same weights.";
  if (!strip.hasInput)
    return "The network's input is not stored: whether steps saw the same input is not known.";
  let different = 0;
  let compared = 0;
  for (let i = 1; i < steps.length; i += 1) {
    const change = strip.change(i);
    if (change === "unknown") continue;
    compared += 1;
    if (change === "different") different += 1;
  }
  if (different > 0) {
    return "Frames marked ≠ have another input than the step before: their changes are not the network's alone.";
  }
  if (!compared) return "";
  const rest = compared === steps.length - 1 ? "" : " loaded so far";
  return `Same input at all ${compared + 1} steps${rest}: changes are the network's.`;
}

/** The scale of the frames, in words. @param {Strip} strip */
export function scaleNote(strip) {
  const { faulty } = strip.inFilm;
  const { hasMaps, locked, leftOut, sharing, isLocked, how, channels, history, beyond, unit } =
    strip;
  if (!hasMaps) {
    return isLocked
      ? `Kernels: one scale, locked over ${strip.kernelsBeyond ? "the" : "all"} ${keptKind(strip)} ${unit}s.${kernelsText(strip)}`
      : `Each kernel has the scale of its ${unit}: colours do not compare between ${unit}s.`;
  }
  if (!locked) {
    return isLocked
      ? `The scale of all ${unit}s is not known: each ${unit} has its own.`
      : `Each ${unit} has its own scale: colours do not compare between ${unit}s.`;
  }
  const each = channels.map(
    (channel) => `channel ${channel} ${short(locked.lo[channel])} … ${short(locked.hi[channel])}`,
  );
  const said =
    how.scale === "layer" ? [`whole layer ${each[0].replace(/^channel \d+ /, "")}`] : each;
  const kept = stepsOf(history) - leftOut;
  const steps = `${keptKind(strip)} ${unit}`;
  const over = sharing
    ? `all ${steps}s of ${sharing}`
    : beyond.size + faulty.size
      ? `the ${steps}s`
      : leftOut
        ? `${kept} of ${stepsOf(history)} ${steps}s`
        : kept === 1
          ? `the one ${steps}`
          : `all ${kept} ${steps}s`;
  const sound = faulty.size
    ? ` Frames in which ${how.scale === "layer" ? "a" : "the"} channel is ${deadWord()} or not finite are left out.`
    : "";
  const rest = leftOut
    ? ` The ${leftOut === 1 ? unit : `${leftOut} ${unit}s`} with large values ${leftOut === 1 ? "is" : "are"} left out: there, colours stop at both ends.`
    : "";
  return `Scale locked over ${over}: ${said.join("; ")}.${sound}${rest}${beyondText(strip)}${strip.hasKernels ? kernelsText(strip) : ""}`;
}

/** That the scale of the kernels leaves steps out; "" if it does not. @param {Strip} strip */
function kernelsText({ kernelsBeyond }) {
  return kernelsBeyond
    ? " The scale of kernels leaves out steps at which maps of the layer have large values: there, their colours stop at both ends."
    : "";
}

/** Frames whose values the locked scale does not reach, in words; "" for none. @param {Strip} strip */
function beyondText({ inFilm: { beyond }, channels, how, unit }) {
  const far = channels.filter((channel) => beyond.get(channel));
  if (!far.length) return "";
  const each = far.map(
    (channel) => `${counted(beyond.get(channel) ?? 0, unit)} of channel ${channel}`,
  );
  const which = how.scale === "layer" ? counted(beyond.get(far[0]) ?? 0, unit) : each.join(", ");
  return ` Frames marked ▲ (${which}) exceed the others ${FAR}-fold and are left out: there, colours stop at both ends.`;
}
