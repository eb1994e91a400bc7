// @ts-check
/** Runs whose findings the overview lists, and the order of the findings of several runs. */

/** @typedef {import("../data/health.js").Finding} Finding */
/** @typedef {import("./state.js").State} State */

const BETWEEN = "\n";
/** Runs whose findings are listed at once, at most. */
export const MOST_RUNS = 100;
/** Runs whose findings are listed without being chosen, at most: the newest, and the current one. */
export const FEW_RUNS = 8;

/**
 * The chosen runs that exist, in the order of the list of runs; if there is none, `FEW_RUNS` runs.
 * @param {Pick<State, "run"|"chosen">} state
 * @param {readonly Pick<import("../data/routes.js").RunEntry, "run"|"started">[]} runs
 */
export function chosenRuns({ run, chosen }, runs) {
  const names = new Set(chosen ? chosen.split(BETWEEN) : []);
  const found = runs.map((each) => each.run).filter((each) => names.has(each));
  if (found.length) return found.slice(0, MOST_RUNS);
  const newest = runs
    .filter((each) => each.run !== run)
    .sort((a, b) => (b.started ?? 0) - (a.started ?? 0));
  const few = new Set([run, ...newest.slice(0, FEW_RUNS - 1).map((each) => each.run)]);
  return runs.map((each) => each.run).filter((each) => few.has(each));
}

/**
 * The change of the state that chooses these runs.
 * @param {Pick<State, "run">} state @param {readonly string[]} runs
 * @returns {Pick<State, "run"|"chosen">}
 */
export function choosing({ run }, runs) {
  const now = !runs.length || runs.includes(run) ? run : runs[0];
  return { run: now, chosen: runs.slice(0, MOST_RUNS).join(BETWEEN) || run };
}

/**
 * The change of the state that makes a run the current one: its findings are listed too, or alone
 * if those of the previous one were.
 * @param {Pick<State, "run"|"chosen">} state @param {string} run
 * @returns {Pick<State, "run"|"chosen">}
 */
export function opening(state, run) {
  const { chosen } = state;
  if (!chosen || chosen.split(BETWEEN).includes(run)) return { run, chosen };
  return { run, chosen: chosen === state.run ? run : `${chosen}${BETWEEN}${run}` };
}

/** @typedef {{run: string, finding: Finding}} Line */

/**
 * One list of the findings of several runs: the most severe first, those of a run in its order.
 * @param {readonly {run: string, findings: readonly Finding[]}[]} answers @returns {Line[]}
 */
export function ranked(answers) {
  const next = answers.map(() => 0);
  /** @type {Line[]} */
  const lines = [];
  for (;;) {
    let best = -1;
    for (let i = 0; i < answers.length; i += 1) {
      const head = answers[i].findings[next[i]];
      if (head && (best < 0 || head.severity > answers[best].findings[next[best]].severity)) {
        best = i;
      }
    }
    if (best < 0) return lines;
    lines.push({ run: answers[best].run, finding: answers[best].findings[next[best]] });
    next[best] += 1;
  }
}
