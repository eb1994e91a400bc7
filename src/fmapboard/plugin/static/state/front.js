// @ts-check
/** What the overview page shows: the map of one run, and the findings of all chosen runs. */

import { stepText } from "../draw/number_text.js";
import { callName } from "./cell_text.js";
import { chosenRuns, ranked } from "./chosen_runs.js";
import { evidenceOf } from "./evidence.js";
import { keptFrom } from "../views/view_first_fault.js";

/** @typedef {import("../data/health.js").FindingsAnswer} FindingsAnswer */
/** @typedef {import("../data/health.js").Health} Health */
/** @typedef {import("../data/health.js").HealthSource} HealthSource */
/** @typedef {import("../data/tab_data.js").Source} Source */
/** @typedef {import("./chosen_runs.js").Line} Line */
/** @typedef {import("./evidence.js").Evidence} Evidence */
/** @typedef {import("./state.js").State} State */

/** Lines shown before all are asked for, so that the map stays in sight. */
export const LINES = 6;

/**
 * @typedef {object} Front
 * @property {string} run of the map
 * @property {Health|null} health
 * @property {string} problem why there is no map, in words; "" otherwise
 * @property {string[]} chosen runs
 * @property {{run: string, answer: FindingsAnswer|null, error: string}[]} answers one per chosen run
 * @property {Line[]} lines of all chosen runs, ranked
 * @property {(Line & Evidence)[]} shown the first lines, with their tiles
 * @property {boolean} ready the map and the findings of all chosen runs are there
 */

/**
 * @param {Source} source @param {HealthSource} asked @param {State} state
 * @param {import("../data/answers.js").RunEntry[]} runs @param {boolean} all show all lines
 * @returns {Front}
 */
export function front(source, asked, state, runs, all) {
  const table = asked.health(state.run, versionOf(source, state.run));
  const chosen = chosenRuns(state, runs);
  const answers = chosen.map((run) => {
    const version = run === state.run ? versionOf(source, run) : asked.round(source.epoch);
    const { value, error } = asked.findings(run, version);
    return { run, answer: value ?? null, error: error?.message ?? "" };
  });
  const known = answers.flatMap(({ run, answer }) =>
    answer ? [{ run, findings: answer.findings }] : [],
  );
  const lines = ranked(known);
  return {
    run: state.run,
    health: table.value ?? null,
    problem: table.error?.message ?? "",
    chosen,
    answers,
    lines,
    shown: lines
      .slice(0, all ? lines.length : LINES)
      .map((line) => ({ ...line, ...evidenceOf(source, line, state) })),
    ready:
      Boolean(table.value ?? table.error) && answers.every(({ answer, error }) => answer || error),
  };
}

/** Changes when a run has new steps; "" while they are not known. @param {Source} source @param {string} run */
function versionOf(source, run) {
  const steps = source.layers(run).value?.steps;
  return steps ? `${steps.length}/${steps[steps.length - 1]}` : "";
}

/**
 * Where to go, and what must be said there.
 * @typedef {object} Target
 * @property {string} run
 * @property {string} layer key
 * @property {number} step kept, with a picture of the layer
 * @property {string} note differences from what was asked for; "" for none
 */

/**
 * The picture that shows a layer call at a step.
 * @param {import("../data/answers.js").Layer[]} layers of the run
 * @param {{run: string, name: string, label: string, key: string|null, shown_at: string|null,
 *   step: number}} asked
 * @returns {Target|null} null if there is none
 */
export function targetOf(layers, { run, name, label, key, shown_at, step }) {
  const layer = layers.find((each) => each.key === shown_at);
  if (!layer?.steps.length) return null;
  const kept = keptFrom(layer.steps, step);
  const notes = [];
  if (layer.key !== key && label) {
    notes.push(
      `${callName({ name, label })} has no pictures: these are of ${layer.label}, the nearest drawn layer.`,
    );
  }
  if (kept !== step) {
    notes.push(
      `No picture of step ${stepText(step)} is kept: this is step ${stepText(kept)}, the ` +
        `${kept > step ? "next" : "last"} kept one.`,
    );
  }
  return { run, layer: layer.key, step: kept, note: notes.join(" ") };
}

/** What a run was looked through for, in words. @param {Pick<FindingsAnswer, "layers"|"steps"|"written">} of */
export function scope({ layers, steps, written }) {
  const plural = (/** @type {number} */ n, /** @type {string} */ word) =>
    `${stepText(n)} ${word}${n === 1 ? "" : "s"}`;
  const kept = written > steps ? ` (kept of ${stepText(written)} logged)` : "";
  return `${plural(layers, "layer")} × ${plural(steps, "step")}${kept}`;
}

/** What a page was read from, if not from the series that knows all layers; "" otherwise. @param {import("../data/health.js").HealthOrigin} source */
export function originText(source) {
  if (source === "records")
    return "read from records and scalars: range and change of drawn channels only";
  if (source === "scalars") {
    return "read from scalars: shares of dead, constant and non-finite channels only";
  }
  return "";
}
