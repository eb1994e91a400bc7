// @ts-check
/** Formats numbers, and finds ticks for an axis. */

import { FAULT_COLOURS, OFF_COLOUR } from "../server/palettes.js";

/** @import {FaultName} from "../server/server.js" */
/** @import {Unit, Words} from "./model.js" */

const MINUS = "−";

/** A number in few characters. @param {number} value @param {number} digits significant digits */
export function short(value, digits = 3) {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : `${MINUS}Inf`;
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text =
    size >= 1e5 || size < 1e-3
      ? size
          .toExponential(digits - 1)
          .replace(/\.?0+e/, "e")
          .replace("e+", "e")
          .replace("-", MINUS)
      : grouped(Number(size.toPrecision(digits)));
  return (value < 0 ? MINUS : "") + text;
}

/**
 * A range, as exact as needed to tell its ends apart; one value if they are equal.
 * @param {number} lo @param {number} hi @param {number} digits significant ones, at least
 */
export function endsText(lo, hi, digits = 2) {
  if (lo === hi) return short(lo);
  while (digits < 6 && short(lo, digits) === short(hi, digits)) digits += 1;
  return `${short(lo, digits)} … ${short(hi, digits)}`;
}

/** The shape of a layer's kernels or, of a part of a block, its own; "" without one.
 * @param {{kernel_shape?: number[]|null, shape?: string}} layer */
export function shapeText({ kernel_shape: kernel, shape }) {
  return kernel?.join("×") ?? shape ?? "";
}

/** Class and shape of a layer; a shape that begins with a class says it. @param {{type?: string,
 * kernel_shape?: number[]|null, shape?: string}} layer */
export function typeText({ type = "", ...of }) {
  const shape = shapeText(of);
  return shape.startsWith(`${type} `) ? shape : `${type} ${shape}`.trim();
}

/** What a tile shows: a channel, a feature, …, and its number. @param {{unit?: string}} layer
 * @param {number|string} [number] */
export function tileText({ unit }, number = "") {
  const name = unit === "unit" ? "MLP unit" : unit || "channel";
  return number === "" ? name : `${name} ${number}`;
}

/** Writes a number with commas between groups of three digits. */
const { format: grouped } = new Intl.NumberFormat("en", { maximumSignificantDigits: 15 });

/** A number of things: "1 step", "2 steps". @param {number} n @param {string} word singular */
export function counted(n, word) {
  return `${stepText(n)} ${word}${n === 1 ? "" : "s"}`;
}

/** An integer, such as a step. @param {number} value */
export function stepText(value) {
  return (value < 0 ? MINUS : "") + grouped(Math.abs(value));
}

/** @param {number} fraction 0…1 */
export function percent(fraction) {
  const value = fraction * 100;
  return value > 0 && value < 1 ? "<1 %" : `${Math.round(value)} %`;
}

/**
 * Round values on an axis, at most `most` + 1.
 * @param {number} lo @param {number} hi @param {number} most
 */
export function ticks(lo, hi, most = 5) {
  if (!(hi > lo) || !Number.isFinite(hi - lo)) return Number.isFinite(lo) ? [lo] : [];
  const raw = (hi - lo) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const unit = [1, 2, 2.5, 5, 10].find((n) => n * power >= raw * (1 - 1e-9)) ?? 10;
  const step = unit * power;
  const found = [];
  for (let i = Math.ceil(lo / step - 1e-9); i * step <= hi + step * 1e-9; i += 1) {
    found.push(i === 0 ? 0 : Number((i * step).toPrecision(12)));
  }
  return found;
}

// Names of layer calls in words, as findings print them.

/** A later call of a layer in one forward pass, as labels say it. */
const CALL = /^(.+)\.call(\d+)$/;

/**
 * A label in words; a later call has its number, and the layer that it follows: the name of a
 * shared activation says nothing of its place.
 * @param {string} label @param {string} [behind] label of the layer before it
 * @returns {string}
 */
export function callText(label, behind = "") {
  const [, layer, call] = CALL.exec(label) ?? [];
  if (!layer) return label;
  return `${layer} (call ${call}${behind ? `, behind ${callText(behind)}` : ""})`;
}

/**
 * Name of a layer call, with its model's.
 * @param {{name: string, label: string, behind?: string}} of
 */
export function callName({ name, label, behind }) {
  const own = callText(label, behind);
  return name ? `${name}: ${own}` : own;
}

/**
 * Name of a call inside a group.
 * @param {string} shown end of its label @param {{label: string, call: number, behind?: string}} of
 */
export function callInGroup(shown, { label, call, behind = "" }) {
  if (call < 2) return shown;
  const group = label.slice(0, label.length - shown.length);
  const near = group && behind.startsWith(group) ? behind.slice(group.length) : behind;
  return callText(shown, near);
}

/**
 * Names for a narrow place: without what all begin with; the longest words lose their ends, but for
 * their numbers; two names never become equal.
 * @param {readonly string[]} names @param {number} most characters
 */
export function elided(names, most) {
  if (names.every((name) => name.length <= most)) return [...names];
  const parts = names.map((name) => name.split("."));
  const [first] = parts;
  let same = 0;
  while (parts.length > 1 && parts.every((of) => of.length > same + 1 && of[same] === first[same]))
    same += 1;
  const short = parts.map((of) => shortened(of.slice(same), most));
  return short.map((name, i) =>
    short.indexOf(name) === short.lastIndexOf(name) ? name : names[i],
  );
}

/** @param {string[]} parts of a name @param {number} most characters */
function shortened(parts, most) {
  let over = parts.join(".").length - most;
  const words = parts.map((part) => /^(.*?)(\d*)$/.exec(part) ?? ["", part, ""]);
  for (const word of [...words].sort((a, b) => b[1].length - a[1].length)) {
    const kept = Math.max(3, word[1].length - over - 1);
    if (over <= 0 || kept + 1 >= word[1].length) continue;
    over -= word[1].length - kept - 1;
    word[1] = `${word[1].slice(0, kept)}…`;
  }
  return words.map(([, word, number]) => word + number).join(".");
}

// What a run is called: TensorBoard names that of the log directory itself ".".

const ROOT = ".";
let directory = ROOT;

/**
 * Sets what is shown for the log directory.
 * @param {string|undefined} name "" if it is not known
 */
export function callRoot(name) {
  directory = name || ROOT;
}

/** Name of a run, or of the log directory if the run is in it. @param {string} run */
export function runText(run) {
  return run === "" || run === ROOT ? directory : run;
}

// What a channel is called that is 0 everywhere: dead in a training, off for an image.

let [isOfImages, unitWord] = [false, "channel"];

/**
 * Chooses the words for what is shown next.
 * @param {Unit} unit of the run @param {{unit?: string}} [layer] the shown one, if it is one
 */
export function speakOf(unit, layer = {}) {
  [isOfImages, unitWord] = [unit === "image", tileText(layer)];
}

/** "dead", or "off" in a run of images, which says nothing about training. */
export function deadWord() {
  return isOfImages ? "off" : "dead";
}

/** The colour of a fault; what is only off has a neutral one. @param {FaultName} name */
export const faultColour = (name) =>
  isOfImages && name === "dead" ? OFF_COLOUR : FAULT_COLOURS[name];

/**
 * A text about channels with that word, and with the one for what they are.
 * @param {string} text @param {{unit?: string}} [layer] another one than the shown one
 */
export function inWordsOf(text, layer = undefined) {
  const word = layer ? tileText(layer) : unitWord;
  return (isOfImages ? text.replaceAll("dead", "off") : text)
    .replaceAll("channel", word)
    .replaceAll("Channel", word[0].toUpperCase() + word.slice(1));
}

// What a step is called: "step 20", or what it shows in a run of `visualize`.

/** @param {Words} words @param {number} step */
export function wordOf(words, step) {
  return words?.[step] ?? `step ${stepText(step)}`;
}

/**
 * A step in a narrow place: number, and name or "".
 * @param {Words} words @param {number} step
 * @returns {[string, string]}
 */
export function labelOf(words, step) {
  return [stepText(step), /\((.*)\)$/.exec(words?.[step] ?? "")?.[1] ?? ""];
}

/**
 * What a step of a run is: "image" if each step is another image.
 * @param {Words} words
 * @returns {Unit}
 */
export function kindOf(words) {
  const every = Object.values(words ?? {});
  return every.length && every.every((word) => word.startsWith("image ")) ? "image" : "step";
}
