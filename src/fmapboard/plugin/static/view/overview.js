// @ts-check
/** The overview page: how the runs are, and below it the contact sheet or the map of states. */

import { scope } from "../model/front.js";
import { CODE, KINDS, STATES, tableOf } from "../model/health_states.js";
import { inWordsOf, kindOf } from "../model/words.js";
import { prepare } from "../picture/canvas.js";
import { fits, frame } from "../picture/sheet.js";
import { button, h, say, segments, show } from "./dom.js";
import { createFindings } from "./findings.js";
import { createHealthKey, createHealthMap } from "./health_map.js";
import { createRunChooser } from "./runs.js";
import { createSheet, isShown } from "./sheet.js";
import { createVerdict } from "./verdict.js";

/** Smallest height of the map; a smaller window scrolls, CSS px. */
const LEAST = 240;
const MARGIN = 12;

/** @param {import("../app.js").App} app */
export function createOverview(app) {
  const verdict = createVerdict(app);
  const runs = createRunChooser(app);
  const findings = createFindings(app);
  const press = () => app.update({ findings: !listed.hidden ? "closed" : "open" });
  const unfold = button({ text: "Findings", label: "List what was found, with pictures", press });
  const kinds = segments(
    "Layers over steps as",
    [
      ["pictures", "Pictures", "one channel of each layer at each step, in its own range"],
      [
        "states",
        "States",
        "the state of every layer at every step, also of those without pictures",
      ],
    ],
    (front) => app.update({ front }),
  );
  const facts = h("span", { class: "about" });
  const states = h("ul", { class: "states" });
  const note = h("p", { class: "label" });
  const key = createHealthKey(app);
  const map = createHealthMap(app);
  const sheet = createSheet(app);
  const problem = h("p", { class: "problem", role: "alert" });
  const room = h("div", { class: "health-room" }, map.element, map.said);
  const listed = h("div", { class: "overview-findings" }, findings.element, note);
  const element = h(
    "main",
    { class: "overview", "aria-label": "Overview", on: { scroll: () => app.redraw() } },
    verdict.element,
    h(
      "div",
      { class: "overview-head" },
      ...[unfold, runs.element, kinds.element, facts, verdict.note, states, key.element],
    ),
    ...[listed, problem, sheet.element, sheet.said, room],
  );
  let shownStates = "";

  /** @param {import("../app.js").Model} model */
  function draw(model) {
    const { front, state } = model;
    show(element, Boolean(front));
    if (!front) return;
    const { health } = front;
    verdict.draw(model, front);
    runs.draw(model, front.chosen);
    const count = front.lines.length;
    const isOpen = app.overview.isOpen && (count > 0 || state.findings === "open");
    unfold.setAttribute("aria-expanded", String(isOpen));
    say(
      /** @type {Element} */ (unfold.firstElementChild),
      `Findings: ${count} ${isOpen ? "▴" : "▾"}`,
    );
    show(listed, isOpen);
    if (isOpen) findings.draw(model, front);
    say(problem, front.problem);
    show(problem, Boolean(front.problem));
    const hasPictures = Boolean(health?.layers.some(isShown));
    const isAuto = state.front === "auto";
    const isSheet =
      hasPictures && (isAuto ? fits(element.clientWidth - 2 * MARGIN) : state.front === "pictures");
    show(kinds.element, hasPictures);
    kinds.draw(isSheet ? "pictures" : "states");
    show(sheet.element, isSheet);
    for (const each of [key.element, room]) show(each, Boolean(health) && !isSheet);
    show(states, isSheet);
    show(facts, Boolean(health));
    show(note, Boolean(health && !isSheet && unmentioned(front)));
    say(note, NOTE);
    app.overview.isUp = !health || !isSheet;
    if (!health) return;
    const { layers, steps, written } = health;
    const kind = kindOf(health.step_words);
    const size = scope({ layers: layers.length, steps: steps.length, written }, kind);
    const isMore = health.run === state.run && steps.length > model.steps.length;
    const column = isSheet ? "" : `a column per ${isMore ? "logged" : "kept"} ${kind}`;
    say(facts, [size, column, lost(health)].filter(Boolean).join(" · "));
    if (isSheet) {
      legend(health);
      app.overview.isUp = sheet.draw(front, element);
      return;
    }
    key.draw(health, state.shade);
    const height = Math.max(LEAST, element.clientHeight - room.offsetTop - MARGIN);
    const width = room.clientWidth;
    map.draw(health, state.shade, width, height);
    // A scroll bar that the earlier map needed may be gone, or one may have come.
    if (room.clientWidth !== width) map.draw(health, state.shade, room.clientWidth, height);
  }

  /** What the frames mean, of the states that there are. @param {import("../server/health.js").Health} health */
  function legend(health) {
    const codes = Object.values(CODE).filter(
      (code) => KINDS[code] && tableOf(health).present.has(code),
    );
    const of = new Map(codes.map((code) => [KINDS[code], code]));
    const now = JSON.stringify([...of, inWordsOf("dead"), window.devicePixelRatio]);
    if (now === shownStates) return;
    shownStates = now;
    states.replaceChildren(
      ...[...of].reverse().map(([kind, code]) => {
        const canvas = h("canvas");
        const context = prepare(canvas, 22, 16);
        if (kind) frame(context, 4, 4, 8, kind);
        const { word, what } = STATES[code];
        return h("li", { title: what }, canvas, inWordsOf(word.replace("mostly ", "")));
      }),
    );
  }
  const moved = () => (sheet.element.hidden ? map : sheet);
  return {
    ...{ element, draw, search: runs.focus, close: runs.close },
    move: (/** @type {number} */ rows, /** @type {number} */ columns) =>
      moved().move(rows, columns),
    enter: () => moved().enter(),
  };
}

const NOTE =
  "Coloured cells that no line names are of single steps or small maps: findings are states that last.";

/** Steps whose numbers are missing because their records cannot be read. @param {import("../server/health.js").Health} health */
function lost({ errors = {} }) {
  const steps = Object.keys(errors);
  if (!steps.length) return "";
  return `${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")} cannot be read: ${errors[steps[0]]}`;
}

/** True if the map shows a fault although nothing was found. @param {import("../model/front.js").Front} front */
function unmentioned({ health, answers, run }) {
  const own = answers.find((each) => each.run === run)?.answer;
  if (!health || !own || own.findings.length) return false;
  return tableOf(health).worst.some((code) => code >= CODE.CONSTANT);
}
