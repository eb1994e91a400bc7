// @ts-check
/** Finds faults in the numbers of a layer, for its badge and its strip in the list of layers. */

import { percent, short } from "../draw/number_text.js";
import { LARGE } from "../draw/palettes.js";
import { callText } from "../state/call_names.js";
import { layerChange } from "./change_text.js";

/** @typedef {import("../data/answers.js").OverviewEntry} OverviewEntry */

/**
 * Numbers of one layer; those that were not logged are NaN or null.
 * @typedef {Omit<OverviewEntry, "minimum"|"maximum"|"mean"|"std"|"change">
 *   & {minimum: number, maximum: number, mean: number, std: number, change: number|null}} Overview
 */

/** @typedef {"nonfinite"|"dead"|"constant"|"large"|"still"|"unreadable"|"fine"} FaultKind */

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
 * The most severe fault of a layer.
 * @param {Overview} of @param {number} whole @param {boolean} follows an activation follows
 * @returns {Fault}
 */
function fault(of, whole, follows) {
  if (of.error) return { severity: 1, badge: "unreadable", kind: "unreadable" };
  /** @type {Fault} */
  let worst = { severity: 0, badge: "", kind: "fine" };
  for (const each of faults(of, whole, follows)) if (each.severity > worst.severity) worst = each;
  return worst;
}

/**
 * All faults of a layer; of equally severe ones, the first matters most.
 * @param {Overview} of @param {number} whole channels of the layer
 * @param {boolean} follows an activation follows, whose dead channels these are
 * @returns {Fault[]}
 */
function faults(of, whole, follows) {
  const channels = Math.max(1, of.channels);
  const share = (/** @type {number|null} */ count) => (count ?? 0) / channels;
  const among = of.channels < whole ? ` of ${of.channels}` : "";
  const severity = (/** @type {number} */ part) => (part >= 0.5 ? 2 : part >= 0.1 ? 1 : 0);
  const dead = share(of.channels_dead);
  // A dead channel of an activation is constant too, which is not a fault of its own.
  const constant = share(of.channels_constant) - (follows ? 0 : dead);
  const bad = of.nan || of.positive_infinity || of.negative_infinity;
  const large = Math.max(Math.abs(of.minimum), Math.abs(of.maximum)) >= LARGE;
  return [
    { severity: bad ? 3 : 0, badge: of.nan ? "NaN" : "Inf", kind: "nonfinite" },
    { severity: large ? 2 : 0, badge: "large", kind: "large" },
    { severity: severity(dead), badge: `${percent(dead)}${among} dead`, kind: "dead" },
    { severity: severity(constant), badge: `${percent(constant)}${among} const`, kind: "constant" },
    { severity: of.weights_unchanged_since !== null ? 1 : 0, badge: "no change", kind: "still" },
  ];
}

/**
 * @param {Overview} of @param {import("../data/answers.js").Layer|undefined} layer @returns {Health}
 */
export function health(of, layer = undefined) {
  const whole = layer?.channels ?? of.channels;
  const follows = !layer || layer.activation !== null;
  const drawn = of.channels < whole ? ` drawn channels (the layer has ${whole})` : " channels";
  const after = layer?.activation ? ` after its activation ${callText(layer.activation)}` : "";
  if (of.error) return { ...fault(of, whole, follows), text: of.error };
  const { nan, positive_infinity: positive, negative_infinity: negative } = of;
  if (nan === null || positive === null || negative === null) {
    return {
      ...fault(of, whole, follows),
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
        `in ${of.channels_nonfinite} of ${of.channels}${drawn}`
      : "all values finite",
    of.dead_known
      ? `${of.channels_dead} of ${of.channels}${drawn} dead${after}`
      : "dead channels not known: no activation such as ReLU follows directly",
    `${of.channels_constant} constant`,
    layerChange(of),
  ];
  return { ...fault(of, whole, follows), text: text.filter(Boolean).join("\n") };
}

/** Severity of the most severe fault. @param {Overview} of @param {import("../data/answers.js").Layer} layer */
export function severity(of, layer) {
  return fault(of, layer.channels, layer.activation !== null).severity;
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
