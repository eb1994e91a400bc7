// @ts-check
/** Finds the layer of another run that corresponds to a layer: by name, else by its position. */

import { callName, callText, runText, stepText } from "./words.js";
import { indexOf } from "../server/steps.js";

/** @import {Layer} from "../server/answers.js" */
/** @import {RunEntry} from "../server/routes.js" */
/** @import {Column, State} from "./state.js" */

/** @typedef {{layer: Layer, by: "name"|"position"}} Match */

/**
 * The corresponding layer of another run; null if there is none. A layer matches by position if it
 * is called at the same place of the forward pass, has the same kernel shape (the same type, if it
 * has none) and number of channels, and its own name is not that of another layer of this run.
 * @param {Layer} layer @param {readonly Layer[]} own layers of its run
 * @param {readonly Layer[]} others layers of the other run @returns {Match|null}
 */
export function match(layer, own, others) {
  const same = others.find((each) => each.key === layer.key);
  if (same) return { layer: same, by: "name" };
  // Runs may differ in `watch(name=…)`: models that are alone in their run correspond.
  const alone = modelsOf(own) === 1 && modelsOf(others) === 1;
  const ofModel = others.filter((each) => alone || each.name === layer.name);
  const named = alone ? ofModel.find((each) => each.label === layer.label) : undefined;
  if (named) return { layer: named, by: "name" };
  const names = new Set(own.map(alone ? (each) => each.label : (each) => each.key));
  const found = ofModel.find(
    (each) =>
      each.position === layer.position &&
      each.channels === layer.channels &&
      shapeOf(each) === shapeOf(layer) &&
      !names.has(alone ? each.label : each.key),
  );
  return found ? { layer: found, by: "position" } : null;
}

/** @param {readonly Layer[]} layers */
function modelsOf(layers) {
  return new Set(layers.map((each) => each.name)).size;
}

/** @param {Layer} layer */
function shapeOf({ kernel_shape: kernel, type }) {
  return kernel ? kernel.join("×") : type;
}

// Finds runs by parts of their names, and shortens names where they are alike.

/**
 * Runs whose names contain all words of a text, in any order and case.
 * @param {readonly string[]} runs @param {string} text @returns {string[]}
 */
export function search(runs, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const name = runText(run).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/**
 * A name of at most `most` characters, cut in the middle: long names of runs differ at the end.
 * @param {string} name @param {number} most
 */
export function middle(name, most) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const head = Math.max(1, Math.floor((most - 1) / 3));
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

/**
 * A name in two parts; the first one may be cut by the page, the second one is shown whole.
 * @param {string} name @param {number} end length of the second part @returns {[string, string]}
 */
export function parted(name, end) {
  const letters = Array.from(name);
  if (letters.length <= end + 4) return ["", name];
  return [letters.slice(0, -end).join(""), letters.slice(-end).join("")];
}

// The columns of the view: run, layer, step, sample and role of each, and what they differ in.

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
 * @param {string} role @param {number} sample
 */
function question(run, layer, step, role, sample) {
  const i = layer ? indexOf(layer.steps, step) : -1;
  if (!layer || i < 0) return null;
  return { run, key: layer.key, step: layer.steps[i], ts: layer.wall_times[i], role, sample };
}

/** @typedef {NonNullable<ReturnType<typeof question>>} Question identifies a picture */

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
 * @param {string} run @param {RunEntry[]} runs @returns {string[]}
 */
export function partners(run, runs) {
  const own = runs.find((each) => each.run === run);
  const others = runs.filter((each) => each !== own);
  if (!own) return others.map((each) => each.run);
  const away = (/** @type {RunEntry} */ each) =>
    each.started === null || own.started === null ? Infinity : Math.abs(each.started - own.started);
  const unlike = (/** @type {RunEntry} */ each) => Number(each.layers !== own.layers);
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

// Runs and layers that an address names but that are not there, and what is shown instead.

/** @typedef {{what: "run"|"layer", name: string, shown: string}} Gone */

/**
 * The list with one more entry, which takes the place of an earlier one about the same thing.
 * @param {Gone[]} before @param {Gone["what"]} what
 * @param {string} name of what is gone, "" if the address names none @param {string} shown instead
 */
export function replaced(before, what, name, shown) {
  const others = before.filter((each) => each.what !== what);
  return name ? [...others, { what, name, shown }] : others;
}

/**
 * Says what is gone, as long as its replacement is shown; "" for nothing.
 * @param {Gone[]} gone @param {State} state
 */
export function goneText(gone, state) {
  return gone
    .filter(({ what, shown }) => state[what] === shown)
    .map(({ what, name, shown }) => {
      const text = (/** @type {string} */ of) => (what === "layer" ? layerText(of) : runText(of));
      const where = what === "layer" ? ` is not in run ${runText(state.run)}` : " is gone";
      return `${what === "run" ? "Run" : "Layer"} ${text(name)}${where}: showing ${text(shown)}.`;
    })
    .join(" ");
}
