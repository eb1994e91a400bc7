// @ts-check
/** The overview page: how the runs are, and below it the contact sheet or the map of states. */

import { scope } from "../model/front.js";
import { CODE, KINDS, STATES, tableOf } from "../model/health_states.js";
import { inWordsOf, kindOf } from "../model/words.js";
import { prepare } from "../picture/canvas.js";
import { fits, frame } from "../picture/sheet.js";
import { html } from "../vendor/preact_htm.js";
import { Painted } from "./controls.js";
import { h, mount, say, show } from "./dom.js";
import { Findings, Verdicts, awaitedText } from "./findings.js";
import { HealthKey, createHealthMap } from "./health_map.js";
import { createSheet, isShown } from "./sheet.js";

/** Smallest height of the map; a smaller window scrolls, CSS px. */
const LEAST = 240;
const MARGIN = 12;

/** @param {import("../app.js").App} app */
export function createOverview(app) {
  const verdicts = mount(Verdicts);
  const awaited = h("span", { class: "awaited" });
  const findings = mount(Findings);
  const facts = h("span", { class: "about" });
  const states = mount(Frames);
  const note = h("p", { class: "label" });
  const key = mount(HealthKey);
  const map = createHealthMap(app);
  const sheet = createSheet(app);
  const problem = h("p", { class: "problem", role: "alert" });
  const room = h("div", { class: "health-room" }, map.element, map.said);
  const listed = h("div", { class: "overview-findings" }, findings.element, note);
  const element = h(
    "main",
    { class: "overview", "aria-label": "Overview", on: { scroll: () => app.redraw() } },
    verdicts.element,
    h("div", { class: "overview-head" }, ...[facts, awaited, states.element, key.element]),
    ...[listed, problem, sheet.element, sheet.said, room],
  );

  /** @param {import("../app.js").Model} model */
  function draw(model) {
    const { front, state } = model;
    show(element, Boolean(front));
    if (!front) return;
    const { health } = front;
    verdicts.draw({ app, model, front });
    say(awaited, awaitedText(model, front));
    show(awaited, awaited.textContent !== "");
    const isOpen = app.overview.isOpen && (front.lines.length > 0 || state.findings === "open");
    show(listed, isOpen);
    if (isOpen) findings.draw({ app, model, front });
    say(problem, front.problem);
    show(problem, Boolean(front.problem));
    const isSheet = showsPictures(front, state);
    show(sheet.element, isSheet);
    for (const each of [key.element, room]) show(each, Boolean(health) && !isSheet);
    show(states.element, isSheet);
    show(note, Boolean(health && !isSheet && unmentioned(front)));
    say(note, NOTE);
    app.overview.isUp = !health || !isSheet;
    if (!health) return;
    const { layers, steps, written } = health;
    const kind = kindOf(health.step_words);
    const size = scope({ layers: layers.length, steps: steps.length, written }, kind);
    say(facts, [isSheet ? "" : size, lost(health)].filter(Boolean).join(" · "));
    show(facts, facts.textContent !== "");
    if (isSheet) {
      states.draw({ health });
      app.overview.isUp = sheet.draw(front, element);
      return;
    }
    key.draw({ app, health, shade: state.shade });
    const height = Math.max(LEAST, element.clientHeight - room.offsetTop - MARGIN);
    const width = room.clientWidth;
    map.draw(health, state.shade, width, height);
    // A scroll bar that the earlier map needed may be gone, or one may have come.
    if (room.clientWidth !== width) map.draw(health, state.shade, room.clientWidth, height);
  }

  const moved = () => (sheet.element.hidden ? map : sheet);
  return {
    ...{ element, draw },
    search: () =>
      /** @type {HTMLElement|null} */ (
        document.querySelector(".run-chooser > [aria-expanded=false]")
      )?.click(),
    move: (/** @type {number} */ rows, /** @type {number} */ columns) =>
      moved().move(rows, columns),
    enter: () => moved().enter(),
  };
}

/** True if there is a contact sheet. @param {import("../model/front.js").Front} front */
export function hasPictures({ health }) {
  return Boolean(health?.layers.some(isShown));
}

/**
 * True if the contact sheet is shown, not the map of states.
 * @param {import("../model/front.js").Front} front @param {import("../model/state.js").State} state
 */
export function showsPictures(front, state) {
  const isAuto = state.front === "auto";
  return (
    hasPictures(front) &&
    (isAuto ? fits(window.innerWidth - 2 * MARGIN) : state.front === "pictures")
  );
}

/** What the frames of cells mean, of the states that there are. @param {{health: import("../server/health.js").Health}} props */
function Frames({ health }) {
  const present = Object.values(CODE).filter((code) => tableOf(health).present.has(code));
  const kinds = new Map(present.map((code) => [KINDS[code], code]));
  return html`
    <ul class="states">
      ${[...kinds].reverse().map(([kind, code]) => {
        if (!kind) return null;
        const paint = (/** @type {HTMLCanvasElement} */ canvas) =>
          frame(prepare(canvas, 22, 16), 4, 4, 8, kind);
        const { word, what } = STATES[code];
        return html`
          <li key=${kind} title=${what}>
            <${Painted} paint=${paint} of=${[window.devicePixelRatio]} />
            ${inWordsOf(word.replace("mostly ", ""))}
          </li>
        `;
      })}
    </ul>
  `;
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
