// @ts-check
/** The overview page: findings in words, and below them the map of layers × steps. */

import { scope, unreadText } from "../state/front.js";
import { CODE, tableOf } from "../state/health_states.js";
import { kindOf } from "../state/step_words.js";
import { h, say, show } from "./dom.js";
import { createFindings } from "./view_findings.js";
import { createHealthKey } from "./view_health_key.js";
import { createHealthMap } from "./view_health_map.js";
import { createRunChooser } from "./view_run_chooser.js";

/** Smallest height of the map; a smaller window scrolls, CSS px. */
const LEAST = 240;
const MARGIN = 12;
const HINT = "Pictures: each channel between its own minimum and maximum";

/** @param {import("../app.js").App} app */
export function createOverview(app) {
  const runs = createRunChooser(app);
  const findings = createFindings(app);
  const title = h("h2");
  const facts = h("span", { class: "about" });
  const hint = h("span", { class: "label", text: HINT });
  const note = h("p", { class: "label" });
  const key = createHealthKey(app);
  const map = createHealthMap(app);
  const problem = h("p", { class: "problem", role: "alert" });
  const room = h("div", { class: "health-room" }, map.element, map.said);
  const element = h(
    "main",
    { class: "overview", "aria-label": "Overview" },
    h(
      "div",
      { class: "overview-findings" },
      h("div", { class: "overview-head" }, h("h1", { text: "Findings" }), runs.element, hint),
      findings.element,
      note,
    ),
    h(
      "div",
      { class: "overview-map" },
      h("div", { class: "overview-head" }, title, facts),
      key.element,
      problem,
      room,
    ),
  );

  /** @param {import("../app.js").Model} model */
  function draw(model) {
    const { front, state } = model;
    show(element, Boolean(front));
    if (!front) return;
    const { health } = front;
    element.classList.toggle("two", front.lines.length > 0);
    runs.draw(model, front.chosen);
    show(
      hint,
      front.shown.some(({ channels }) => channels.length > 0),
    );
    findings.draw(model, front);
    say(problem, front.problem);
    show(problem, Boolean(front.problem));
    for (const each of [key.element, room, title, facts]) show(each, Boolean(health));
    show(note, Boolean(health && unmentioned(front)));
    say(note, NOTE);
    if (!health) return;
    const { layers, steps, written } = health;
    const kind = kindOf(health.step_words);
    say(title, `All layers of ${health.run || "."} over the ${kind}s`);
    const size = scope({ layers: layers.length, steps: steps.length, written }, kind);
    const isMore = health.run === state.run && steps.length > model.steps.length;
    const column = `a column per ${isMore ? "logged" : "kept"} ${kind}`;
    const said = [size, column, unreadText(model.unread), lost(health)];
    say(facts, said.filter(Boolean).join(" · "));
    key.draw(health, state.shade);
    const height = Math.max(LEAST, element.clientHeight - room.offsetTop - MARGIN);
    const width = room.clientWidth;
    map.draw(health, state.shade, width, height);
    // A scroll bar that the earlier map needed may be gone, or one may have come.
    if (room.clientWidth !== width) map.draw(health, state.shade, room.clientWidth, height);
  }
  return { element, draw, move: map.move, enter: map.enter, search: runs.focus, close: runs.close };
}

const NOTE =
  "Coloured cells that no line names are of single steps or small maps: findings are states that last.";

/** Steps whose numbers are missing because their records cannot be read. @param {import("../data/health.js").Health} health */
function lost({ errors = {} }) {
  const steps = Object.keys(errors);
  if (!steps.length) return "";
  return `${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")} cannot be read: ${errors[steps[0]]}`;
}

/** True if the map shows a fault although nothing was found. @param {import("../state/front.js").Front} front */
function unmentioned({ health, answers, run }) {
  const own = answers.find((each) => each.run === run)?.answer;
  if (!health || !own || own.findings.length) return false;
  return tableOf(health).worst.some((code) => code >= CODE.CONSTANT);
}
