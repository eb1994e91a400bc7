// @ts-check
/** Controls of one column beside the main one: its run, step, sample and role, or to remove it. */

import { stepText } from "../draw/number_text.js";
import { runColour } from "../draw/run_colours.js";
import { LETTERS, changed } from "../state/columns.js";
import { ROLE_NAMES } from "../state/compare.js";
import { button, choice, h, show } from "./dom.js";
import { mount } from "./mount.js";
import { RunPicker } from "./run_picker.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("../state/columns.js").Column} Column */

/** @param {App} app @param {number} i place of the column in `state.columns` */
export function createColumnControls(app, i) {
  const letter = LETTERS[i + 1];
  const change = (/** @type {Partial<Column>} */ patch) =>
    app.update({ columns: changed(app.state.columns, i, patch) });
  const run = mount(RunPicker);
  const step = choice(`Step of column ${letter}`, (value) =>
    change({ step: value === "" ? null : Number(value) }),
  );
  const sample = choice(`Sample of column ${letter}`, (value) =>
    change({ sample: value === "" ? null : Number(value) }),
  );
  const role = choice(`What column ${letter} shows`, (value) =>
    change({ role: /** @type {Role|""} */ (value) }),
  );
  const remove = button({
    icon: "close",
    label: `Remove column ${letter}`,
    press: () =>
      app.update({
        columns: app.state.columns.filter((_, at) => at !== i),
        rank: app.state.rank === i + 1 ? 0 : Math.min(app.state.rank, i + 1),
      }),
  });
  const panel = h(
    "div",
    { class: "column-panel", role: "group", "aria-label": `Column ${letter}`, hidden: true },
    labelled("Run", run.element),
    labelled("Step", step.element),
    labelled("Sample", sample.element),
    labelled("Kind", role.element),
  );
  const edit = button({
    icon: "open",
    label: `Change column ${letter}`,
    press: () => open(Boolean(panel.hidden)),
  });
  edit.setAttribute("aria-expanded", "false");
  const element = h("div", { class: "column-controls" }, edit, remove, panel);

  /** @param {boolean} shown */
  function open(shown) {
    show(panel, shown);
    edit.setAttribute("aria-expanded", String(shown));
    if (shown) run.element.querySelector("button")?.focus();
  }
  element.addEventListener("focusout", (event) => {
    const to = /** @type {Node|null} */ (event.relatedTarget);
    if (to && !element.contains(to)) open(false);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!element.contains(/** @type {Node} */ (event.target))) open(false);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    open(false);
    edit.focus();
    event.stopPropagation();
  });

  /** @param {Model} model */
  function draw(model) {
    const { state, runs, columns } = model;
    const column = state.columns[i];
    show(element, Boolean(column));
    if (!column) return;
    const layer = columns[i]?.match?.layer ?? model.layer;
    run.draw({
      label: `Run of column ${letter}`,
      choose: (chosen) => change({ run: chosen }),
      runs: runs.map((each) => each.run),
      chosen: column.run,
      colourOf: (name) => runColour(name || state.run, runs),
      same: `same run (${runText(state.run)})`,
    });
    step.fill(
      options(column.step, layer?.steps ?? [], "follows the slider", stepName),
      told(column.step),
    );
    const samples = Array.from({ length: layer?.samples ?? 1 }, (_, k) => k);
    show(
      /** @type {HTMLElement} */ (sample.element.parentElement),
      samples.length > 1 || column.sample !== null,
    );
    sample.fill(options(column.sample, samples, "same sample", sampleName), told(column.sample));
    const roles = (layer?.roles ?? []).filter((each) => each !== "kernels");
    show(
      /** @type {HTMLElement} */ (role.element.parentElement),
      roles.length > 1 || Boolean(column.role),
    );
    role.fill(
      options(column.role, roles, "same kind", (each) => ROLE_NAMES[each] ?? each),
      column.role,
    );
  }
  return { element, draw };
}

/** @param {string} text @param {HTMLElement} control */
function labelled(text, control) {
  return h("div", { class: "row spread" }, h("span", { class: "label", text }), control);
}

/** @param {number} step */
const stepName = (step) => `pinned to step ${stepText(step)}`;
/** @param {number} sample */
const sampleName = (sample) => `sample ${sample}`;
/** @param {number|null} value */
const told = (value) => (value === null ? "" : String(value));

/**
 * Options of a select: the main column's, all that there are, and what is selected now.
 * @template {string|number} T
 * @param {T|null} now @param {readonly T[]} all @param {string} same @param {(value: T) => string} name
 * @returns {[string, string][]}
 */
function options(now, all, same, name) {
  /** @type {[string, string][]} */
  const offered = all.map((value) => [String(value), name(value)]);
  if (now !== null && now !== "" && !all.includes(now)) {
    offered.unshift([String(now), `${name(now)} (not here)`]);
  }
  return [["", same], ...offered];
}
