// @ts-check
/** Controls of a comparison: what is compared with what, and how it is drawn. */

import { ROLE_NAMES, firstOther } from "../state/compare.js";
import { choice, h, segments, show } from "./dom.js";
import { stepText } from "../draw/number_text.js";
import { indexOf } from "../state/steps.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("../state/state.js").Comparison} Comparison */
/** @typedef {import("../state/state.js").State} State */

const ROLES = /** @type {[Role, string][]} */ (Object.entries(ROLE_NAMES));
const COMPARE = /** @type {[Comparison, string][]} */ ([
  ["off", "Compare with …"],
  ["step", "Compare with step"],
  ["run", "Compare with run"],
  ["sample", "Compare with sample"],
  ["role", "Compare with"],
]);

/** @param {App} app */
export function createCompare(app) {
  const kind = choice("Compare with", (/** @type {Comparison} */ value) => app.compare(value));
  const other = choice("Compared with", (value) => app.update({ other: value }));
  const view = segments(
    "How to compare",
    [
      ["both", "Side by side"],
      ["difference", "Difference"],
      ["all", "Both"],
    ],
    (value) => app.update({ show: value }),
  );
  const element = h("div", { class: "group compare" }, kind.element, other.element, view.element);

  /** @param {Model} model */
  function draw(model) {
    const { state, layer } = model;
    const runs = model.runs.map((each) => each.run);
    const offered = COMPARE.filter(
      ([id]) => id === "off" || id === state.compare || firstOther(id, state, layer, runs) !== null,
    );
    kind.fill(offered, state.compare);
    const on = state.compare !== "off";
    show(other.element, on);
    show(view.element, on);
    if (on) other.fill(others(state.compare, model), state.other);
    other.select.setAttribute("aria-label", `Compare with which ${state.compare}`);
    view.draw(state.show);
  }
  return { element, draw };
}

/**
 * Options of the second select: all but the side that is shown anyway, and what is selected now.
 * @param {Comparison} kind @param {Model} model @returns {[string, string][]}
 */
function others(kind, { layer, runs, state, steps }) {
  const shown = kind === "step" ? String(steps[indexOf(steps, state.step)]) : mainOf(kind, state);
  /** @type {[string, string][]} */
  let all = [];
  if (kind === "run") all = runs.map(({ run }) => [run, run || "."]);
  else if (kind === "step") {
    all = (layer?.steps ?? []).map((step) => [String(step), `step ${stepText(step)}`]);
  } else if (kind === "sample") {
    all = Array.from({ length: layer?.samples ?? 0 }, (_, k) => [String(k), `sample ${k}`]);
  } else all = ROLES.filter(([id]) => id !== "kernels" && layer?.roles.includes(id));
  const offered = all.filter(([id]) => id !== shown || id === state.other);
  const known = offered.some(([id]) => id === state.other);
  return known ? offered : [[state.other, `${state.other} (not here)`], ...offered];
}

/** What the main side is in a kind of comparison. @param {Comparison} kind @param {State} state */
function mainOf(kind, state) {
  return kind === "off" ? "" : String(state[kind]);
}
