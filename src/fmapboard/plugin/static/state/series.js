// @ts-check
/** The layers whose curves over the steps are drawn: one per run, layer and role of the columns. */

import { LETTERS } from "./columns.js";

/** @typedef {import("../data/answers.js").Layer} Layer */
/** @typedef {import("../data/routes.js").NumbersAnswer} NumbersAnswer */
/** @typedef {import("../draw/scene.js").History} History */
/** @typedef {import("./compare.js").Placed} Placed */
/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Series
 * @property {string} run
 * @property {Layer} layer
 * @property {string} role
 * @property {string} letters of the columns, "" if there is only one
 * @property {History|null} history null until it has arrived
 * @property {NumbersAnswer|null} numbers null until they have arrived
 */

/**
 * The main column's series first. Columns that differ only in step or sample share one.
 * @param {Pick<import("../data/tab_data.js").Source, "history"|"numbers">} source
 * @param {State} state @param {Layer} layer of the main column
 * @param {Placed[]} columns beside the main one @returns {Series[]}
 */
export function seriesOf(source, state, layer, columns) {
  /** @type {Series[]} */
  const all = [];
  const add = (
    /** @type {string} */ run,
    /** @type {Layer} */ of,
    /** @type {string} */ role,
    /** @type {string} */ letter,
  ) => {
    const known = all.find(
      (each) => each.run === run && each.layer.key === of.key && each.role === role,
    );
    if (known) known.letters += `, ${letter}`;
    else {
      const [history, numbers] = [source.history(run, of, state.sample), source.numbers(run, of)];
      all.push({ run, layer: of, role, letters: letter, history, numbers });
    }
  };
  add(state.run, layer, state.role, columns.length ? LETTERS[0] : "");
  columns.forEach(({ run, match, column }, i) => {
    if (match && !match.layer.error)
      add(run, match.layer, column.role || state.role, LETTERS[i + 1]);
  });
  return all;
}

/**
 * Series of which one per run and layer remains: what is charted of a layer has no role.
 * @param {Series[]} all @returns {Series[]}
 */
export function ofLayers(all) {
  /** @type {Series[]} */
  const kept = [];
  for (const each of all) {
    const at = kept.findIndex(({ run, layer }) => run === each.run && layer.key === each.layer.key);
    if (at < 0) kept.push(each);
    else kept[at] = { ...kept[at], letters: `${kept[at].letters}, ${each.letters}` };
  }
  return kept;
}

/** First and last kept step of all series. @param {Series[]} all @returns {[number, number]|null} */
export function spanOf(all) {
  const steps = all.flatMap(({ layer }) => [layer.steps[0], layer.steps[layer.steps.length - 1]]);
  const known = steps.filter((step) => step !== undefined);
  return known.length ? [Math.min(...known), Math.max(...known)] : null;
}
