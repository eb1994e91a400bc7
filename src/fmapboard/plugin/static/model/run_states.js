// @ts-check
/** How runs are: the state of each, its sign and its words, and runs of one state together. */

/** @import {RunLine, Verdict} from "../server/routes.js" */
/** @import {RunState, RunVerdict} from "./model.js" */

/**
 * The states, the worst first. Sign and word tell them apart without colour; `term` is the
 * explanation in `model/terms.js`, `many` follows a number of runs.
 * @type {Readonly<Record<RunState, {sign: string, word: string, term: string, many: string}>>}
 */
export const RUN_STATES = Object.freeze({
  fault: { sign: "✕", word: "Fault", term: "fault", many: "faulty" },
  suspicion: { sign: "!", word: "Suspicion", term: "suspicion", many: "suspicious" },
  "does not learn": {
    sign: "—",
    word: "Does not learn",
    term: "does_not_learn",
    many: "not learning",
  },
  unreadable: { sign: "∅", word: "Unreadable", term: "unreadable", many: "unreadable" },
  "not known": { sign: "?", word: "Not known", term: "not_known", many: "not known" },
  "no training": { sign: "i", word: "Of images", term: "no_training", many: "of images" },
  difference: {
    sign: "≠",
    word: "Compared by diff",
    term: "difference_run",
    many: "compared by diff",
  },
  learns: { sign: "✓", word: "Learns", term: "learns", many: "learning" },
});

const ORDER = /** @type {RunState[]} */ (Object.keys(RUN_STATES));

/** States in which nothing was found. @type {ReadonlySet<RunState>} */
export const NOTHING_FOUND = new Set([
  "does not learn",
  "not known",
  "no training",
  "difference",
  "learns",
]);

/** True for the run that `diff` writes besides those of the two models. @param {string} run */
export function isOfDifferences(run) {
  return /(^|\/)difference$/.test(run);
}

/**
 * @param {Map<string, RunVerdict>} verdicts @param {string} run @param {Verdict|RunLine|null} line
 * @param {string} error
 */
export function noteVerdict(verdicts, run, line, error) {
  const nowhere = {
    ...{ name: "", label: "", key: null, shown_at: null, since: null },
    ...{ progress: "", rest: [] },
  };
  if (line) {
    const verdict = { ...nowhere, ...line, run };
    const isDifference = isOfDifferences(run) && NOTHING_FOUND.has(verdict.state);
    const text = "holds the difference of two models instead of a training";
    verdicts.set(run, isDifference ? { ...verdict, state: "difference", text } : verdict);
  } else if (error) {
    const text = `cannot be read: ${error}`;
    verdicts.set(run, { ...nowhere, run, state: "unreadable", text });
  }
}

/**
 * The worst first, otherwise in their order.
 * @template {{state: RunState}} T
 * @param {readonly T[]} runs
 */
export function worstFirst(runs) {
  return [...runs].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

/** What the colours of a difference mean. */
export const SIGNS = "red: larger in b, blue: larger in a";

/**
 * How many runs are in each state, the worst first: "1 faulty", "2 learning".
 * @param {readonly {state: RunState}[]} runs
 */
export function counts(runs) {
  return ORDER.flatMap((state) => {
    const { length } = runs.filter((each) => each.state === state);
    return length ? [{ state, text: `${length} ${RUN_STATES[state].many}` }] : [];
  });
}

/** States of which several runs share a row. @type {ReadonlySet<RunState>} */
const SHARED = new Set(["not known", "no training", "learns", "difference"]);

/**
 * Verdicts in which the runs of `diff` without faults are no trainings: that of the difference, and
 * those of the two models beside it.
 * @template {{run: string, state: RunState, text: string}} T
 * @param {readonly T[]} verdicts @param {readonly string[]} runs all of them
 */
export function apart(verdicts, runs) {
  const folders = new Set(runs.filter(isOfDifferences).map(folderOf));
  return verdicts.map((each) => {
    const folder = folderOf(each.run);
    if (!folders.has(folder) || !NOTHING_FOUND.has(each.state)) return each;
    const text = `one of the two models; see ${folder}difference`;
    const state = /** @type {const} */ ("difference");
    return isOfDifferences(each.run) ? { ...each, state } : { ...each, state, text };
  });
}

/**
 * The run that is shown first: one of a training, else that of the difference of two models.
 * @param {readonly string[]} runs at least one
 */
export function firstRun(runs) {
  const folders = new Set(runs.filter(isOfDifferences).map(folderOf));
  const training = runs.find((run) => !folders.has(folderOf(run)));
  return training ?? runs.find(isOfDifferences) ?? runs[0];
}

/** @param {string} run */
const folderOf = (run) => run.slice(0, run.lastIndexOf("/") + 1);

/**
 * The rows of a list of runs, the worst first: a run each, or the runs of a state that share one.
 * @template {{state: RunState}} T
 * @param {readonly T[]} runs
 */
export function rowsOf(runs) {
  /** @type {T[][]} */
  const rows = [];
  for (const each of worstFirst(runs)) {
    const last = rows.at(-1);
    if (last && SHARED.has(each.state) && last[0].state === each.state) last.push(each);
    else rows.push([each]);
  }
  return rows;
}
