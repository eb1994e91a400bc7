// @ts-check
/** The one or two sides of the view: run, layer, step, sample and role of each. */

import { cutMiddle } from "../draw/name_text.js";
import { stepText } from "../draw/number_text.js";
import { indexOf } from "./steps.js";

/** @typedef {import("../data/answers.js").Layer} Layer */
/** @typedef {import("./state.js").Comparison} Comparison */
/** @typedef {import("./state.js").State} State */

/**
 * Identifies a picture.
 * @typedef {object} Question
 * @property {string} run
 * @property {string} key of the layer
 * @property {number} step a kept one
 * @property {number} ts wall time of the step, s
 * @property {string} role
 * @property {number} sample
 */

/**
 * @param {string} run @param {Layer|undefined} layer @param {number|null} step
 * @param {string} role @param {number} sample @returns {Question|null}
 */
function question(run, layer, step, role, sample) {
  const i = layer ? indexOf(layer.steps, step) : -1;
  if (!layer || i < 0) return null;
  return { run, key: layer.key, step: layer.steps[i], ts: layer.wall_times[i], role, sample };
}

/** @param {State} state @param {Layer|undefined} layer */
export function mainSide(state, layer) {
  return question(state.run, layer, state.step, state.role, state.sample);
}

/**
 * The other side of a comparison; null if nothing is compared or it does not exist.
 * @param {State} state @param {Layer|undefined} layer
 * @param {(run: string) => Layer[]|undefined} layersOf layers of any run, if they are known
 * @returns {Question|null}
 */
export function otherSide(state, layer, layersOf) {
  const { run, step, role, sample, other } = state;
  switch (state.compare) {
    case "step":
      return question(run, layer, Number(other), role, sample);
    case "run": {
      const twin = layersOf(other)?.find((each) => each.key === state.layer);
      return question(other, twin, step, role, sample);
    }
    case "sample":
      return question(run, layer, step, role, Number(other));
    case "role":
      return question(run, layer, step, other, sample);
    default:
      return null;
  }
}

/**
 * Why there is no other side, in words; "" if there is one, or while its layers are being loaded.
 * @param {State} state @param {Layer|undefined} layer
 * @param {(run: string) => Layer[]|undefined} layersOf layers of any run, if they are known
 */
export function whyNoOther(state, layer, layersOf) {
  const { compare, other } = state;
  if (compare === "off" || !layer || otherSide(state, layer, layersOf)) return "";
  if (compare !== "run") return `no kept step of ${layer.label} to compare with`;
  const layers = layersOf(other);
  if (!layers) return "";
  return layers.some((each) => each.key === state.layer)
    ? `no kept step of ${layer.label} in run ${other || "."}`
    : `no layer ${layerText(state.layer)} in run ${other || "."}`;
}

/** Name of a layer's records for people: without the group. @param {string} key */
export function layerText(key) {
  const cut = key.indexOf("fmapboard/");
  if (cut < 0) return key;
  return `${cut > 0 ? `${key.slice(0, cut - 1)} · ` : ""}${key.slice(cut + "fmapboard/".length)}`;
}

/**
 * Runs to compare with, the likeliest first: those with as many layers, then by time of start.
 * @param {string} run @param {import("../data/answers.js").RunEntry[]} runs @returns {string[]}
 */
export function partners(run, runs) {
  const own = runs.find((each) => each.run === run);
  const others = runs.filter((each) => each !== own);
  if (!own) return others.map((each) => each.run);
  const away = (/** @type {import("../data/answers.js").RunEntry} */ each) =>
    each.started === null || own.started === null ? Infinity : Math.abs(each.started - own.started);
  const unlike = (/** @type {import("../data/answers.js").RunEntry} */ each) =>
    Number(each.layers !== own.layers);
  return others
    .sort((a, b) => unlike(a) - unlike(b) || (away(a) < away(b) ? -1 : Number(away(a) > away(b))))
    .map((each) => each.run);
}

/**
 * The value of `other` after a change of the state: where the main side has become the other one,
 * the two are swapped.
 * @param {State} state @param {State} before
 */
export function swapped(state, before) {
  const { compare } = state;
  if (compare === "off" || compare === "step" || compare !== before.compare) return state.other;
  return state.other === String(state[compare]) ? String(before[compare]) : state.other;
}

/**
 * Initial value of `other` for a kind of comparison: the first that differs from the state's.
 * @param {Comparison} kind @param {State} state @param {Layer|undefined} layer
 * @param {string[]} runs the likeliest first @returns {string|null} null if there is nothing to compare with
 */
export function firstOther(kind, state, layer, runs) {
  if (!layer) return null;
  const differs = (/** @type {readonly unknown[]} */ among, /** @type {unknown} */ from) => {
    const found = among.find((each) => each !== from);
    return found === undefined ? null : String(found);
  };
  switch (kind) {
    case "step":
      return differs(layer.steps, layer.steps[indexOf(layer.steps, state.step)]);
    case "run":
      return differs(runs, state.run);
    case "sample":
      return differs(
        Array.from({ length: layer.samples }, (_, k) => k),
        state.sample,
      );
    case "role":
      return differs(
        layer.roles.filter((role) => role !== "kernels"),
        state.role,
      );
    default:
      return null;
  }
}

export const ROLE_NAMES = Object.freeze(
  /** @type {Record<string, string>} */ ({
    feature_maps: "Maps",
    inputs: "Inputs",
    gradients_of_maps: "Gradients",
    kernels: "Kernels",
  }),
);

/**
 * Short name of a side: what the two sides differ in. Two runs may be at different steps.
 * @param {Question} side @param {Comparison} kind
 */
export function sideName(side, kind) {
  if (kind === "run") return `${cutMiddle(side.run || ".")} · step ${stepText(side.step)}`;
  if (kind === "sample") return `sample ${side.sample}`;
  if (kind === "role") return ROLE_NAMES[side.role] ?? side.role;
  return `step ${stepText(side.step)}`;
}

/** Where a picture stems from: run, step, sample and role. @param {Question} side */
export function origin({ run, step, sample, role }) {
  const parts = [cutMiddle(run || "."), `step ${stepText(step)}`];
  if (role !== "kernels") parts.push(`sample ${sample}`);
  if (role !== "feature_maps") parts.push(ROLE_NAMES[role] ?? role);
  return parts.join(" · ");
}
