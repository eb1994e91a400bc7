// @ts-check
/** A layer's state and numbers: they are its badge and its strip in the list of layers. */

import { percent, short } from "../draw/number_text.js";
import { callText } from "../state/call_names.js";
import { CODE, KINDS, SEVERE } from "../state/health_states.js";
import { layerChange } from "./change_text.js";
import { deadWord } from "../state/dead_word.js";

/** @typedef {import("../data/health.js").Overview} Overview */

/** @typedef {import("../data/answers.js").FaultName|"unreadable"|"fine"} FaultKind */

/**
 * @typedef {object} Fault
 * @property {number} severity 0 none, 1 minor, 2 major, 3 non-finite values
 * @property {string} badge at most two words; "" for none
 * @property {FaultKind} kind
 */

/** @typedef {Fault & {text: string}} Health all numbers in words */

/** The bar of the change is full at 1, and short at 10 to the power of minus this. */
const DECADES = 4;

/**
 * The state of a layer in at most two words.
 * @param {Overview} of @param {boolean} follows an activation follows, whose dead channels these are
 * @returns {Fault}
 */
function fault(of, follows = true) {
  if (of.error) return { severity: 1, badge: "unreadable", kind: "unreadable" };
  const kind = KINDS[of.code] ?? null;
  const severity = of.code === CODE.NONFINITE ? 3 : of.code >= SEVERE ? 2 : kind ? 1 : 0;
  const share = (/** @type {number|null} */ count) =>
    percent((count ?? 0) / Math.max(1, of.channels));
  // A dead channel of an activation is constant too, which is not counted.
  const alone = (of.channels_constant ?? 0) - (follows ? 0 : (of.channels_dead ?? 0));
  const badges = {
    nonfinite: of.nan ? "NaN" : "Inf",
    large: "large",
    dead: `${share(of.channels_dead)} ${deadWord()}`,
    constant: `${share(alone)} const`,
    unchanged: "no change",
  };
  return { severity, badge: kind ? badges[kind] : "", kind: kind ?? "fine" };
}

/**
 * @param {Overview} of @param {import("../data/answers.js").Layer|undefined} layer @returns {Health}
 */
export function health(of, layer = undefined) {
  const follows = !layer || layer.activation !== null;
  const after = layer?.activation ? ` after its activation ${callText(layer.activation)}` : "";
  if (of.error) return { ...fault(of, follows), text: of.error };
  const { nan, positive_infinity: positive, negative_infinity: negative } = of;
  if (nan === null || positive === null || negative === null) {
    return {
      ...fault(of, follows),
      text: "no statistics of feature maps were logged at this step",
    };
  }
  const bad = nan + positive + negative;
  const text = [
    Number.isNaN(of.minimum)
      ? "no finite value"
      : `range ${short(of.minimum)} … ${short(of.maximum)}, mean ${short(of.mean)}, std ${short(of.std)}`,
    bad
      ? `${of.counted ? "" : "at least "}${nan} NaN, ${positive} +Inf, ${negative} −Inf ` +
        `in ${of.channels_nonfinite} of ${of.channels} channels`
      : "all values finite",
    of.dead_known
      ? `${of.channels_dead} of ${of.channels} channels ${deadWord()}${after}`
      : `${deadWord()} channels not known: no activation such as ReLU follows directly`,
    `${of.channels_constant} constant`,
    layerChange(of),
  ];
  return { ...fault(of, follows), text: text.filter(Boolean).join("\n") };
}

/** Severity of the state of a layer. @param {Overview} of */
export function severity(of) {
  return fault(of).severity;
}

/** Decades of the axis of ranges, from `10 ** -1` to `LARGE`. */
const RANGE_DECADES = 5;

/**
 * A value on the axis of ranges, −1…1: logarithmic, ±1 at ±0.2, ±100 at ±0.6, `LARGE` at the end.
 * @param {number} value
 */
export function onRangeAxis(value) {
  if (Number.isNaN(value)) return 0;
  const size = Math.log10(1 + Math.abs(value) * 10) / RANGE_DECADES;
  return Math.sign(value) * Math.min(1, size);
}

/**
 * Parts of the strip, each 0…1: both ends of the range, the shares of faulty channels, the change;
 * and the largest magnitude. `changeState` says why the bar of the change is empty although the
 * layer may have changed: "nonfinite" or "unknown".
 * @param {Overview} of
 */
export function strip(of) {
  const channels = Math.max(1, of.channels);
  const change = of.change ?? 0;
  return {
    from: (onRangeAxis(of.minimum) + 1) / 2,
    to: (onRangeAxis(of.maximum) + 1) / 2,
    peak: Math.max(Math.abs(of.minimum), Math.abs(of.maximum)),
    dead: (of.channels_dead ?? 0) / channels,
    constant: (of.channels_constant ?? 0) / channels,
    nonfinite: (of.channels_nonfinite ?? 0) / channels,
    changeState: of.change === null ? "unknown" : Number.isFinite(change) ? "" : "nonfinite",
    change: change > 0 ? Math.min(1, Math.max(0.1, 1 + Math.log10(change) / DECADES)) : 0,
  };
}
