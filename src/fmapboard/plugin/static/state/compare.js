// @ts-check
/** The columns of the view: run, layer, step, sample and role of each, and what they differ in. */

import { stepText } from "../draw/number_text.js";
import { callName, callText } from "./call_names.js";
import { match } from "./match.js";
import { middle } from "./run_search.js";
import { indexOf } from "./steps.js";
import { runText } from "./run_text.js";

/** @typedef {import("../data/answers.js").Layer} Layer */
/** @typedef {import("../data/api.js").LayersAnswer} LayersAnswer */
/** @typedef {import("./columns.js").Column} Column */
/** @typedef {import("./match.js").Match} Match */
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
 * A column beside the main one, as far as it is known what it shows.
 * @typedef {object} Placed
 * @property {Column} column
 * @property {string} run
 * @property {Match|null} match the layer of this column; null if it has none, or until it is known
 * @property {Question|null} question null if there is no picture, or until it is known
 * @property {string} why there is no picture, in words; "" while its layers are being loaded
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
 * What a column shows.
 * @param {Column} column @param {State} state @param {Layer|undefined} layer of the main column
 * @param {(run: string) => Layer[]|undefined} layersOf layers of any run, if they are known
 * @param {(run: string) => string} whyNone why the layers of a run will not be known, or ""
 * @returns {Placed}
 */
export function placed(column, state, layer, layersOf, whyNone = () => "") {
  const run = column.run || state.run;
  const none = (/** @type {string} */ why) => ({ column, run, match: null, question: null, why });
  if (!layer) return none("");
  const failed = whyNone(run);
  if (failed) return none(failed);
  const layers = layersOf(run);
  const own = layersOf(state.run) ?? [layer];
  if (!layers && run !== state.run) return none("");
  const found = match(layer, own, layers ?? [layer]);
  if (!found) return none(`no layer ${layerText(layer.key)} in run ${runText(run)}`);
  // A column that follows the slider shows the main column's step, which may be the newest.
  const now = layer.steps[indexOf(layer.steps, state.step)] ?? state.step;
  const role = column.role || state.role;
  const asked = question(run, found.layer, column.step ?? now, role, column.sample ?? state.sample);
  const why = asked ? "" : `no kept step of ${callText(found.layer.label)} in run ${runText(run)}`;
  return { column, run, match: found, question: asked, why };
}

/** Name of a layer's records for people: without the group. @param {string} key */
export function layerText(key) {
  const cut = key.indexOf("fmapboard/");
  if (cut < 0) return key;
  const name = cut > 0 ? key.slice(0, cut - 1) : "";
  return callName({ name, label: key.slice(cut + "fmapboard/".length) });
}

/** How the layer of a column was found, in words; "" if it has the same name. @param {Match} found */
export function matchText({ layer, by }) {
  return by === "name" ? "" : `matched by position: ${layerText(layer.key)}`;
}

/**
 * Runs to compare with, the likeliest first: those with as many layers, then by time of start.
 * @param {string} run @param {import("../data/routes.js").RunEntry[]} runs @returns {string[]}
 */
export function partners(run, runs) {
  const own = runs.find((each) => each.run === run);
  const others = runs.filter((each) => each !== own);
  if (!own) return others.map((each) => each.run);
  const away = (/** @type {import("../data/routes.js").RunEntry} */ each) =>
    each.started === null || own.started === null ? Infinity : Math.abs(each.started - own.started);
  const unlike = (/** @type {import("../data/routes.js").RunEntry} */ each) =>
    Number(each.layers !== own.layers);
  return others
    .sort((a, b) => unlike(a) - unlike(b) || (away(a) < away(b) ? -1 : Number(away(a) > away(b))))
    .map((each) => each.run);
}

export const ROLE_NAMES = Object.freeze(
  /** @type {Record<string, string>} */ ({
    feature_maps: "Maps",
    inputs: "Inputs",
    gradients_of_maps: "Gradients",
    kernels: "Kernels",
  }),
);

/** Longest name of a run in a short name of a column. */
const NAME = 28;

/**
 * Short name of a column: what the columns differ in. Two runs may be at different steps.
 * @param {Question} side @param {(Question|null)[]} all the columns of the view
 */
export function sideName(side, all) {
  const differ = (/** @type {"run"|"step"|"sample"|"role"} */ field) =>
    all.some((each) => each && each[field] !== side[field]);
  const parts = [];
  if (differ("run")) parts.push(middle(runText(side.run), NAME));
  if (differ("run") || differ("step")) parts.push(`step ${stepText(side.step)}`);
  if (differ("sample")) parts.push(`sample ${side.sample}`);
  if (differ("role")) parts.push(ROLE_NAMES[side.role] ?? side.role);
  return parts.join(" · ") || `step ${stepText(side.step)}`;
}

/** Where a picture stems from: run, step, sample and role. @param {Question} side */
export function origin({ run, step, sample, role }) {
  const parts = [runText(run), `step ${stepText(step)}`];
  if (role !== "kernels") parts.push(`sample ${sample}`);
  if (role !== "feature_maps") parts.push(ROLE_NAMES[role] ?? role);
  return parts.join(" · ");
}
