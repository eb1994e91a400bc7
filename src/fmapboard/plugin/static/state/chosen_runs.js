// @ts-check
/** Runs whose findings the overview lists, and the order of the findings of several runs. */

/** @typedef {import("../data/health.js").Finding} Finding */
/** @typedef {import("./state.js").State} State */

const BETWEEN = "\n";

/**
 * The chosen runs that exist, in the order of the list of runs; the current one if there is none.
 * @param {Pick<State, "run"|"chosen">} state @param {readonly {run: string}[]} runs
 */
export function chosenRuns({ run, chosen }, runs) {
  const names = new Set(chosen ? chosen.split(BETWEEN) : []);
  const found = runs.map((each) => each.run).filter((each) => names.has(each));
  return found.length ? found : [run];
}

/**
 * The change of the state that chooses these runs.
 * @param {Pick<State, "run">} state @param {readonly string[]} runs
 * @returns {Pick<State, "run"|"chosen">}
 */
export function choosing(state, runs) {
  if (runs.length === 1) return { run: runs[0], chosen: "" };
  return {
    run: runs.length ? (runs.includes(state.run) ? state.run : runs[0]) : state.run,
    chosen: runs.join(BETWEEN),
  };
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
