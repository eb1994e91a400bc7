// @ts-check
/** Ranks the layers by how much a column differs from the main one; asks for a few at a time. */

import { match } from "./compare.js";
import { number } from "../server/container.js";
import { keyOf } from "../server/source.js";

/** @import {Layer} from "../server/answers.js" */
/** @import {LayerDifference} from "../server/routes.js" */
/** @import {Source} from "../server/source.js" */
/** @import {Match} from "./compare.js" */
/** @import {Column, State} from "./state.js" */

/** Layers per request. */
const CHUNK = 24;

/**
 * @typedef {object} Ranked
 * @property {string} key of the main column's layer
 * @property {Match|null} match null if the other run has no such layer
 * @property {LayerDifference|null} difference null if there is nothing to compare
 */

/**
 * The ranking of one column; requests what is missing, one chunk after the other.
 * @param {Pick<Source, "cache"|"json">} source @param {State} state @param {Column} column
 * @param {number} step of the slider @param {readonly Layer[]} layers of the main column's run
 * @param {readonly Layer[]} others layers of the column's run
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
    const query = {
      ...sides,
      key: chunk.map((each) => each.key),
      other_key: chunk.map((each) => each.match?.layer.key ?? ""),
    };
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

/** @typedef {ReturnType<typeof rank>} Ranking */

/** Groups of a ranking, in order; values of different groups cannot be compared. */
export const GROUPS = Object.freeze(
  /** @type {const} */ (["nonfinite", "size", "maps", "statistics", "none"]),
);

/** From this ratio of magnitudes on, the difference says no more than that they are not alike. */
const MANIFOLD = 10;

/** How many times larger one side of a row is than the other, as a power of 10; 0 if unknown. @param {Ranked} row */
export function decades({ difference }) {
  const { ratio = null } = difference ?? {};
  return ratio === null ? 0 : Math.abs(Math.log10(number(ratio)));
}

/** @param {Ranked} row @returns {typeof GROUPS[number]} */
export function groupOf(row) {
  const { difference } = row;
  if (!difference?.measure) return "none";
  if (difference.nonfinite) return "nonfinite";
  return decades(row) >= Math.log10(MANIFOLD) ? "size" : difference.measure;
}

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
