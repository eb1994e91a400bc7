// @ts-check
/** Describes a cell of the map of layers × steps in words. */

import { counted, percent, short, stepText } from "../draw/number_text.js";
import { callName } from "./call_names.js";
import { CODE, KINDS, STATES } from "./health_states.js";
import { wordOf } from "./step_words.js";
import { deadWord, inWordsOf } from "./dead_word.js";

/** @typedef {import("../data/health.js").Health} Health */
/** @typedef {import("../data/health.js").HealthLayer} HealthLayer */

/** What the pictures of a layer are drawn from, if not itself; "" otherwise. @param {HealthLayer} of @param {string} shown */
export function shownInstead(of, shown) {
  if (of.key !== null) return "";
  if (of.shown_at === null) return "no pictures of this run are logged";
  return `no pictures of its own; nearest drawn layer: ${shown}`;
}

/**
 * Numbers of a cell, one phrase each; those that are not known are left out.
 * @param {import("../data/cell_numbers.js").Numbers} value @param {number} channels of the layer
 */
function cellNumbers(value, channels) {
  const share = (/** @type {string} */ name, /** @type {string} */ word) =>
    value(name) >= 0 ? `${percent(value(name))} ${word}` : "";
  const shares = [
    share("nonfinite", "non-finite"),
    share("dead", deadWord()),
    share("constant", "constant"),
  ];
  const known = shares.filter(Boolean);
  const [least, most] = [value("minimum"), value("maximum")];
  return [
    known.length ? `of ${counted(channels, "channel")}: ${known.join(", ")}` : "",
    Number.isNaN(least) ? "" : `values ${short(least)} … ${short(most)}`,
    value("change") >= 0 ? `maps changed by ${short(value("change"))} standard deviations` : "",
    value("weights_change") >= 0
      ? `weights changed by ${short(100 * value("weights_change"))} %`
      : "",
  ].filter(Boolean);
}

/**
 * That the change is not known, and why; "" if it is known.
 * @param {import("../data/cell_numbers.js").Numbers|string} numbers @param {HealthLayer} layer
 */
function unknownChange(numbers, { key, kernel_shape: kernels }) {
  if (typeof numbers === "string") return "";
  if (numbers("change") >= 0 || numbers("weights_change") >= 0) return "";
  if (numbers("nonfinite") > 0) return "change not known: values are not finite";
  const why = key === null && kernels === null ? ": it has no pictures and no kernels" : "";
  return `change not recorded${why}`;
}

/**
 * First logged step of a state that has lasted to the newest one; "" where it is not known.
 * @param {Health} of @param {Uint8Array} codes [steps, layers] @param {number} at index of the cell
 */
function sinceText(of, codes, at) {
  const count = of.layers.length;
  const [row, step, code] = [at % count, of.steps[Math.floor(at / count)], codes[at]];
  const since = of.since[KINDS[code] ?? ""]?.[row];
  if (since === undefined || since > step) return "";
  if (code === CODE.UNCHANGED) return `the weights are those of step ${stepText(since)}`;
  // What is stored is since when a tenth of the channels are so.
  if (code !== CODE.MOSTLY_DEAD && code !== CODE.MOSTLY_CONSTANT)
    return `without interruption since step ${stepText(since)}`;
  const own = of.steps.map((_, i) => codes[i * count + row]);
  const before = own.findLastIndex((each) => each !== code);
  const onset = of.steps[before + 1];
  if (onset === undefined || onset > step) return "";
  return `at every kept step since step ${stepText(onset)}`;
}

/**
 * Everything about a cell, one line each.
 * @param {Health} of @param {Uint8Array} codes [steps, layers]
 * @param {number} at index in [steps, layers] @param {(key: string) => string} labelOf label of a key
 * @param {import("../data/cell_numbers.js").Numbers|string} numbers of the cell, or why there are none
 * @param {import("./health_states.js").Shade} shade what brightness shows
 * @returns {string[]}
 */
export function cellLines(of, codes, at, labelOf, numbers, shade = "range") {
  const row = at % of.layers.length;
  const layer = of.layers[row];
  const step = of.steps[Math.floor(at / of.layers.length)];
  const { word, what } = STATES[codes[at]];
  return [
    `${callName(layer)} · ${wordOf(of.step_words, step)}`,
    codes[at] > 1 ? `${inWordsOf(word)}: ${what}` : word,
    sinceText(of, codes, at),
    ...(typeof numbers === "string" ? [numbers] : cellNumbers(numbers, layer.channels)),
    shade === "change" ? unknownChange(numbers, layer) : "",
    shownInstead(layer, labelOf(layer.shown_at ?? "")),
  ].filter(Boolean);
}
