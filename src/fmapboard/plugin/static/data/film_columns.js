// @ts-check
/** The film strips of the columns: the main one, and each that is not of the same maps. */

import { LETTERS } from "../state/columns.js";
import { ROLE_NAMES, matchText } from "../state/compare.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../draw/scene.js").History} History */
/** @typedef {import("../state/compare.js").Placed} Placed */
/** @typedef {import("./answers.js").Layer} Layer */
/** @typedef {import("./tab_data.js").Model} Model */

/**
 * What one strip is of.
 * @typedef {object} FilmColumn
 * @property {string} letter "" if there is only one column
 * @property {string} text run, sample and what is drawn
 * @property {string} run
 * @property {Layer} layer
 * @property {string} role
 * @property {number} sample
 * @property {number|null} step of the column, null for the newest
 * @property {number} place of the column in the state, -1 for the main one
 * @property {History|null} history of its layer and sample
 */

/**
 * @param {Model} model
 * @returns {{columns: FilmColumn[], notes: string[]}} the main one first, none without a layer;
 *   `notes` say why a column has no strip of its own
 */
export function filmColumns({ state, layer, history, columns, filmHistories }) {
  if (!layer || layer.error || !layer.steps.length) return { columns: [], notes: [] };
  const { run, role, sample, step } = state;
  /** @type {FilmColumn[]} */
  const found = [
    {
      letter: columns.length ? LETTERS[0] : "",
      text: placeText(run, role, sample),
      run,
      layer,
      role,
      sample,
      step,
      place: -1,
      history,
    },
  ];
  /** @type {string[]} */
  const notes = [];
  columns.forEach((of, i) => {
    const letter = LETTERS[i + 1];
    const { question, match } = of;
    if (!question || !match) {
      if (of.why) notes.push(`${letter}: ${of.why}.`);
      return;
    }
    const same = found.find(
      (each) =>
        each.run === of.run &&
        each.layer.key === match.layer.key &&
        each.role === question.role &&
        each.sample === question.sample,
    );
    if (same) {
      notes.push(`${letter} is a step of the strip of ${same.letter}.`);
      return;
    }
    const matched = matchText(match);
    found.push({
      letter,
      text: [placeText(of.run, question.role, question.sample), matched]
        .filter(Boolean)
        .join(" · "),
      run: of.run,
      layer: match.layer,
      role: question.role,
      sample: question.sample,
      step: of.column.step ?? state.step,
      place: state.columns.indexOf(of.column),
      history: filmHistories[i] ?? null,
    });
  });
  return { columns: found, notes };
}

/** @param {string} run @param {string} role @param {number} sample */
function placeText(run, role, sample) {
  const of = role === "kernels" ? "" : `sample ${sample}`;
  const drawn = role === "feature_maps" ? "" : (ROLE_NAMES[role] ?? role);
  return [runText(run), of, drawn].filter(Boolean).join(" · ");
}
