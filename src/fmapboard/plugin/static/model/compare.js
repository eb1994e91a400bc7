// @ts-check
/** Finds the layer of another run that corresponds to a layer: by name, else by its position. */

import { number } from "../server/decode.js";
import { keyOf } from "../server/source.js";
import { indexOf } from "../server/steps.js";
import { callName, callText, runText, shapeText, stepText } from "./words.js";

/** @import {LayerDifference, RunEntry} from "../server/routes.js" */
/** @import {Layer} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {Column, Gone, Match, Placed, Question, Ranked, State} from "./model.js" */

/**
 * The corresponding layer of another run; null if there is none. A layer matches by position if it
 * is called at the same place of the forward pass, has the same kernel shape (the same type, if it
 * has none) and number of channels, and its own name is not that of another layer of this run.
 * @param {Layer} layer @param {readonly Layer[]} own layers of its run
 * @param {readonly Layer[]} others
 * @returns {Match|null}
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
function shapeOf(layer) {
  return shapeText(layer) || layer.type;
}

// Finds runs by parts of their names, and shortens names where they are alike.

/**
 * Runs whose names contain all words of a text.
 * @param {readonly string[]} runs @param {string} text
 */
export function search(runs, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const name = runText(run).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/**
 * A name cut in the middle: long names of runs differ at the end.
 * @param {string} name @param {number} most characters
 */
export function middle(name, most) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const head = Math.max(1, Math.floor((most - 1) / 3));
  const tail = letters.slice(letters.length - (most - 1 - head));
  return `${letters.slice(0, head).join("")}…${tail.join("")}`;
}

/**
 * A name in two parts, the second of which is shown whole.
 * @param {string} name @param {number} end its length
 */
export function parted(name, end) {
  const letters = Array.from(name);
  if (letters.length <= end + 4) return ["", name];
  return [letters.slice(0, -end).join(""), letters.slice(-end).join("")];
}

// The columns of the view: run, layer, step, sample and role of each, and what they differ in.

/**
 * @param {string} run @param {Layer|undefined} layer @param {number|null} step @param {string} role
 * @param {number} sample @param {number|null} [depth] see `State`
 */
export function question(run, layer, step, role, sample, depth = null) {
  const i = layer ? indexOf(layer.steps, step) : -1;
  if (!layer || i < 0) return null;
  const slice = depth === null ? {} : { depth: depth / 100 };
  const [at, ts] = [layer.steps[i], layer.wall_times[i]];
  return { run, key: layer.key, step: at, ts, role, sample, ...slice };
}

/** @param {State} state @param {Layer|undefined} layer */
export function mainSide(state, layer) {
  return question(state.run, layer, state.step, state.role, state.sample, state.depth);
}

/**
 * @param {Column} column @param {State} state @param {Layer|undefined} layer of the main column
 * @param {(run: string) => Layer[]|undefined} layersOf any run
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
  const sample = column.sample ?? state.sample;
  const asked = question(run, found.layer, column.step ?? now, role, sample, state.depth);
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

/**
 * How the layer of a column was found, in words; "" if it has the same name.
 * @param {Match} found
 */
export function matchText({ layer, by }) {
  return by === "name" ? "" : `matched by position: ${layerText(layer.key)}`;
}

/**
 * Runs to compare with: those with as many layers first, then by start.
 * @param {string} run @param {RunEntry[]} runs
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
 * Short name of a column: what it differs in.
 * @param {Question} side @param {(Question|null)[]} all columns
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

/** Step, sample and role of a picture. @param {Question} side */
export function placeOf({ step, sample, role }) {
  const parts = [`step ${stepText(step)}`];
  if (role !== "kernels") parts.push(`sample ${sample}`);
  if (role !== "feature_maps") parts.push(ROLE_NAMES[role] ?? role);
  return parts;
}

/** Where a picture stems from: run, step, sample and role. @param {Question} side */
export function origin(side) {
  return [runText(side.run), ...placeOf(side)].join(" · ");
}

// Runs and layers that an address names but that are not there, and what is shown instead.

/**
 * @param {Gone[]} before @param {Gone["what"]} what @param {string} name "" for none
 * @param {string} shown instead
 */
export function replaced(before, what, name, shown) {
  const others = before.filter((each) => each.what !== what);
  return name ? [...others, { what, name, shown }] : others;
}

/**
 * Says what is gone, as long as its replacement is shown.
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

// Ranks the layers by how much a column differs from the main one; asks for a few at a time.

/** Layers per request. */
const CHUNK = 24;

/**
 * The ranking of one column; requests what is missing, one chunk after the other.
 * @param {Pick<Source, "cache"|"json">} source @param {State} state @param {Column} column
 * @param {number} step of the slider @param {readonly Layer[]} layers
 * @param {readonly Layer[]} others
 * @param {boolean} calm false while the step is changing: only known differences are shown
 */
export function rank(source, state, column, step, layers, others, calm) {
  const [role, otherRole] = [state.role, column.role || state.role];
  const readable = layers.filter((layer) => !layer.error && layer.roles.includes(role));
  const all = readable.map((layer) => ({ key: layer.key, match: match(layer, layers, others) }));
  const pairs = all.filter((each) => each.match);
  const sides = {
    ...{ run: state.run, step, sample: state.sample, role },
    ...{ other_run: column.run || state.run, other_step: column.step ?? step },
    ...{ other_sample: column.sample ?? state.sample, other_role: otherRole },
  };
  /** @type {Map<string, LayerDifference>} */
  const known = new Map();
  /** @type {Error|null} */
  let error = null;
  for (let from = 0; from < pairs.length && !error; from += CHUNK) {
    const chunk = pairs.slice(from, from + CHUNK);
    const theirs = chunk.map((each) => each.match?.layer.key ?? "");
    const query = { ...sides, key: chunk.map((each) => each.key), other_key: theirs };
    if (!calm && !source.cache.has(keyOf("difference", query))) break;
    const entry = source.json("difference", query, { bytes: 300 * chunk.length });
    for (const each of entry.value?.layers ?? []) known.set(each.key, each);
    error = entry.error;
    if (!entry.value) break; // the next chunk is requested when this one has arrived
  }
  const rows = all.flatMap(({ key, match: found }) => {
    const difference = known.get(key) ?? null;
    return found && !difference ? [] : [{ key, match: found, difference }];
  });
  return { rows: ranked(rows), done: known.size, total: pairs.length, error };
}

/** Groups of a ranking, in order; values of different groups cannot be compared. */
export const GROUPS = Object.freeze(
  /** @type {const} */ (["nonfinite", "size", "maps", "statistics", "none"]),
);

/**
 * How many times larger one side of a row is than the other, as a power of 10; 0 if unknown.
 * @param {Ranked} row
 */
export function decades({ difference }) {
  const { ratio = null } = difference ?? {};
  return ratio === null ? 0 : Math.abs(Math.log10(number(ratio)));
}

/** @param {Ranked} row @returns {typeof GROUPS[number]} */
export const groupOf = ({ difference }) => difference?.group ?? "none";

/** Rows by group, the most different first. @param {readonly Ranked[]} rows */
export function ranked(rows) {
  const value = (/** @type {Ranked} */ row) => {
    const { difference } = row;
    const nonfinite = difference?.nonfinite ?? 0;
    if (nonfinite) return 10 + nonfinite;
    return groupOf(row) === "size" ? decades(row) : number(difference?.value ?? 0);
  };
  return [...rows].sort(
    (a, b) =>
      GROUPS.indexOf(groupOf(a)) - GROUPS.indexOf(groupOf(b)) ||
      (value(a) === value(b) ? 0 : value(b) - value(a)),
  );
}
