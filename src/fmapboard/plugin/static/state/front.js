// @ts-check
/** What the overview page shows: the map of one run, and the findings of all chosen runs. */

import { counted, stepText } from "../draw/number_text.js";
import { callName } from "./call_names.js";
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
 * @property {Health|null} health null until the findings of its run are there too
 * @property {string} problem why there is no map, in words; "" otherwise
 * @property {string[]} chosen runs
 * @property {{run: string, answer: FindingsAnswer|null, error: string}[]} answers one per chosen run
 * @property {Line[]} lines of all chosen runs, ranked
 * @property {(Line & Evidence)[]} shown the first lines, with their tiles, if the list is open
 * @property {boolean} ready the map and the findings of its run are there
 * @property {boolean} complete the findings of all chosen runs are there
 * @property {boolean} unread TensorBoard has not read one of the chosen runs to its end
 * @property {RunVerdict[]} verdicts of the chosen runs, and of others that were looked through
 * @property {number} awaited number of runs that are still to be looked through
 * @property {import("../data/sheet.js").SheetSource} sheet pictures
 */

/** @typedef {Omit<import("../data/health.js").Verdict, "class"> &
 *   {run: string, class: import("../data/health.js").Verdict["class"]|"unreadable"}} RunVerdict */

/**
 * @param {Source} source
 * @param {{source: HealthSource, sheet: import("../data/sheet.js").SheetSource, all: boolean, isOpen: boolean,
 *   verdicts: Map<string, RunVerdict>}} overview `all`: show all lines of an open list
 * @param {State} state @param {import("../data/routes.js").RunEntry[]} runs @returns {Front}
 */
export function front(source, { source: asked, sheet, all, isOpen, verdicts }, state, runs) {
  const { table, own } = answersOf(source, asked, state.run);
  const chosen = chosenRuns(state, runs);
  const ready = Boolean((table.value ?? table.error) && (own.value ?? own.error));
  const answers = chosen.map((run) => {
    // The run that is looked at does not wait for the others.
    const other = () => asked.findings(run, asked.versionOfOther(run, source.epoch));
    const found = run === state.run ? own : ready ? other() : null;
    return { run, answer: found?.value ?? null, error: found?.error?.message ?? "" };
  });
  const known = answers.flatMap(({ run, answer }) =>
    answer ? [{ run, findings: answer.findings }] : [],
  );
  const lines = ranked(known);
  for (const { run, answer, error } of answers) noteVerdict(verdicts, run, answer, error);
  const listed = state.chosen ? chosen : runs.map((each) => each.run);
  const said = listed.flatMap((run) => verdicts.get(run) ?? []);
  return {
    run: state.run,
    health: (ready && table.value) || null, // the findings above it move it: painted once
    problem: table.error?.message ?? "",
    chosen,
    answers,
    lines,
    shown: lines
      .slice(0, !isOpen ? 0 : all ? lines.length : LINES)
      .map((line) => ({ ...line, ...evidenceOf(source, line, state) })),
    ready,
    complete: answers.every(({ answer, error }) => answer || error),
    unread: answers.some(({ answer }) => answer && answer.unread !== null),
    verdicts: said,
    awaited: listed.length - said.length,
    sheet,
  };
}

/**
 * @param {Map<string, RunVerdict>} verdicts @param {string} run
 * @param {FindingsAnswer|null} answer @param {string} error
 */
export function noteVerdict(verdicts, run, answer, error) {
  if (answer) verdicts.set(run, { ...answer.line, run });
  else if (error) {
    const nowhere = { name: "", label: "", key: null, shown_at: null, since: null };
    verdicts.set(run, { ...nowhere, run, class: "unreadable", text: `cannot be read: ${error}` });
  }
}

/** Changes when a run has new steps. @param {Source} source @param {string} run */
function versionOf(source, run) {
  const listed = source.layers(run).value;
  if (!listed) return "";
  const { steps, unread } = listed;
  const reading = unread !== null ? `/reading ${source.epoch}` : "";
  return `${steps.length}/${steps[steps.length - 1]}${reading}`;
}

/**
 * The states of all layers of a run at all kept steps; null until they have arrived.
 * @param {Source} source @param {HealthSource} asked @param {string} run @returns {Health|null}
 */
export function tableFor(source, asked, run) {
  return asked.health(run, versionOf(source, run)).value ?? null;
}

/**
 * The map and the findings of a run, not older than the list of its steps.
 * @param {Source} source @param {HealthSource} asked @param {string} run
 */
function answersOf(source, asked, run) {
  const steps = source.layers(run).value?.steps ?? [];
  const version = versionOf(source, run);
  const get = () => ({ table: asked.health(run, version), own: asked.findings(run, version) });
  const found = get();
  const known = [found.table.value?.steps.length, found.own.value?.steps];
  const isBehind = known.some((count) => count !== undefined && count < steps.length);
  return isBehind && asked.again(run, version) ? get() : found;
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
 * @param {string} keeper of the pictures
 * @returns {Target|null} null if there is none
 */
export function targetOf(layers, { run, name, label, key, shown_at, step }, keeper) {
  const layer = layers.find((each) => each.key === shown_at);
  if (!layer?.steps.length) return null;
  const kept = keptFrom(layer.steps, step);
  const notes = [];
  if (layer.key !== key && label) {
    notes.push(
      `${callName({ name, label })} has no pictures: these are of ${callName(layer)}, the nearest drawn layer.`,
    );
  }
  if (kept !== step) {
    notes.push(
      `Step ${stepText(step)} was not kept by ${keeper}: this is step ${stepText(kept)}, the ` +
        `${kept > step ? "next" : "last"} kept one.`,
    );
  }
  return { run, layer: layer.key, step: kept, note: notes.join(" ") };
}

/**
 * What a run was looked through for, in words.
 * @param {Pick<FindingsAnswer, "layers"|"steps"|"written">} of @param {string} kind of the columns
 */
export function scope({ layers, steps, written }, kind = "step") {
  const kept = written > steps ? ` (kept of ${stepText(written)} logged)` : "";
  return `${counted(layers, "layer")} × ${counted(steps, kind)}${kept}`;
}

/** That TensorBoard has not read a run to its end; "" if it has. @param {number|null} unread newest logged step */
export function unreadText(unread) {
  if (unread === null) return "";
  return `TensorBoard has not yet read the whole log, which goes up to step ${stepText(unread)}`;
}
