// @ts-check
/** The columns beside the main one: what each has instead of the main column's run, step, sample. */

import { indexOf } from "./steps.js";

/** @typedef {import("../data/answers.js").Layer} Layer */
/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("./state.js").State} State */

/** @typedef {"step"|"run"|"sample"|"role"} Kind what a new column has of its own */

/**
 * A column; what it has not of its own is that of the main column.
 * @typedef {object} Column
 * @property {string} run "" for that of the main column
 * @property {number|null} step pinned step; null follows the slider
 * @property {number|null} sample null for that of the main column
 * @property {Role|""} role "" for that of the main column
 */

/** Most columns beside the main one. */
export const MOST = 3;

export const LETTERS = Object.freeze(["A", "B", "C", "D"]);

/** @type {Readonly<Column>} */
export const SAME = Object.freeze({ run: "", step: null, sample: null, role: "" });

/** @type {readonly string[]} */
const ROLES = ["feature_maps", "inputs", "gradients_of_maps", "kernels"];
/** What follows the last "@": a step, a sample and a role, each of which may be missing. */
const PLACE = /^(-?\d{1,15})?(?::(\d{1,6})?(?::([a-z_]+)?)?)?$/;

/**
 * A column as an address has it: `RUN@STEP`, `RUN@STEP:SAMPLE` or `RUN@STEP:SAMPLE:ROLE`. What is
 * left out is that of the main column, so `RUN@` follows the slider. The last "@" separates.
 * @param {Column} column
 */
export function columnText({ run, step, sample, role }) {
  const place = [step ?? "", sample ?? "", role].map(String);
  return `${run}@${place.join(":").replace(/:+$/, "")}`;
}

/**
 * The column of an address; a text without a valid place after an "@" is the name of a run.
 * @param {string} text @returns {Column}
 */
export function parseColumn(text) {
  const cut = text.lastIndexOf("@");
  const found = cut < 0 ? null : PLACE.exec(text.slice(cut + 1));
  const [, step, sample, role = ""] = found ?? [];
  if (!found || (role && !ROLES.includes(role))) return { ...SAME, run: text };
  return {
    run: text.slice(0, cut),
    step: step === undefined ? null : Number(step),
    sample: sample === undefined ? null : Number(sample),
    role: /** @type {Role|""} */ (role),
  };
}

/** The columns of the `compare` entries of an address. @param {string[]} compared @returns {Column[]} */
export function columnsOf(compared) {
  return compared
    .filter((text) => text !== "")
    .map(parseColumn)
    .slice(0, MOST);
}

/**
 * A new column that differs from the state's picture in one thing; null if there is nothing else.
 * @param {Kind} kind @param {State} state @param {Layer|undefined} layer
 * @param {string[]} runs the likeliest first @returns {Column|null}
 */
export function newColumn(kind, state, layer, runs) {
  if (!layer) return null;
  const { columns } = state;
  switch (kind) {
    case "step": {
      const taken = new Set(columns.map(({ run, step }) => (run ? null : step)));
      const now = layer.steps[indexOf(layer.steps, state.step)];
      const step = layer.steps.find((each) => each !== now && !taken.has(each));
      return step === undefined ? null : { ...SAME, step };
    }
    case "run": {
      const taken = new Set(columns.map(({ run }) => run));
      const run = runs.find((each) => each !== state.run && !taken.has(each));
      return run === undefined ? null : { ...SAME, run };
    }
    case "sample": {
      const taken = new Set(columns.map(({ sample }) => sample));
      const all = Array.from({ length: layer.samples }, (_, k) => k);
      const sample = all.find((each) => each !== state.sample && !taken.has(each));
      return sample === undefined ? null : { ...SAME, sample };
    }
    default: {
      const taken = new Set(columns.map(({ role }) => role));
      const free = (/** @type {Role} */ each) =>
        each !== "kernels" && each !== state.role && !taken.has(each);
      const role = layer.roles.find(free);
      return role === undefined ? null : { ...SAME, role };
    }
  }
}

/**
 * The columns after a change of the state: if the main column has become one of them, that one
 * becomes what the main column was.
 * @param {State} state @param {State} before @returns {readonly Column[]}
 */
export function swapped(state, before) {
  if (state.columns !== before.columns) return state.columns;
  return state.columns.map((column) => {
    const { run, sample, role } = column;
    if (run && run === state.run && before.run !== state.run)
      column = { ...column, run: before.run };
    if (sample !== null && sample === state.sample && before.sample !== state.sample) {
      column = { ...column, sample: before.sample };
    }
    if (role && role === state.role && before.role !== state.role) {
      column = { ...column, role: before.role };
    }
    return column;
  });
}

/** True if kernels can differ: they are the same for all samples. @param {Column} column */
export function comparesKernels({ run, step, role }) {
  return (run !== "" || step !== null) && (role === "" || role === "kernels");
}

/** @param {readonly Column[]} columns @param {number} i @param {Partial<Column>} patch */
export function changed(columns, i, patch) {
  return columns.map((column, at) => (at === i ? { ...column, ...patch } : column));
}
