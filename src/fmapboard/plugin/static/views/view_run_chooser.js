// @ts-check
/** Chooses the runs whose findings are listed: a search field and a check box per run. */

import { runColour } from "../draw/run_colours.js";
import { search as searched } from "../state/run_search.js";
import { MOST_RUNS } from "../state/chosen_runs.js";
import { h, say, show } from "./dom.js";
import { runText } from "../state/run_text.js";

/** Check boxes in the list; the search finds the others. */
const MOST = 200;

/** @param {import("../app.js").App} app */
export function createRunChooser(app) {
  /** @type {HTMLInputElement} */
  const search = h("input", {
    type: "search",
    placeholder: "Search runs",
    "aria-label": "Search runs",
    spellcheck: "false",
    on: { input: () => fill() },
  });
  const list = h("div", { class: "run-list", role: "group", "aria-label": "Runs" });
  const note = h("p", { class: "label" });
  const action = (/** @type {string} */ text, /** @type {() => void} */ click) =>
    h("button", { type: "button", text, on: { click } });
  const summary = h("summary", { title: "Choose the runs whose findings are listed (/)" });
  const element = h(
    "details",
    { class: "run-chooser", on: { toggle: () => element.open && fill() } },
    summary,
    h(
      "div",
      { class: "run-panel" },
      search,
      h(
        "div",
        { class: "row" },
        action("All found", () => app.overview.choose(union(true))),
        action("None of these", () => app.overview.choose(union(false))),
      ),
      list,
      note,
    ),
  );
  /** @type {readonly import("../data/routes.js").RunEntry[]} */
  let runs = [];
  /** @type {Set<string>} */
  let chosen = new Set();
  document.addEventListener("pointerdown", (event) => {
    if (element.open && !element.contains(/** @type {Node} */ (event.target))) element.open = false;
  });

  /** Runs that the search finds. */
  function found() {
    return searched(
      runs.map((each) => each.run),
      search.value,
    );
  }

  /** The chosen runs with, or without, those that the search finds. @param {boolean} on */
  function union(on) {
    const among = new Set(found());
    return runs.map((each) => each.run).filter((run) => (among.has(run) ? on : chosen.has(run)));
  }

  function fill() {
    const names = found();
    list.replaceChildren(
      ...names.slice(0, MOST).map((run) => {
        const dot = h("i", { class: "dot", "aria-hidden": "true" });
        dot.style.background = runColour(run, runs);
        const box = h("input", { type: "checkbox", "data-run": run });
        box.checked = chosen.has(run);
        box.addEventListener("change", () => {
          if (box.checked) chosen.add(run);
          else chosen.delete(run);
          app.overview.choose(runs.map((each) => each.run).filter((each) => chosen.has(each)));
        });
        return h("label", {}, box, dot, h("span", { text: runText(run) }));
      }),
    );
    say(note, names.length > MOST ? `${names.length - MOST} more: search for them` : "");
  }

  /** @param {import("../app.js").Model} model @param {readonly string[]} names chosen runs */
  function draw(model, names) {
    const now = new Set(names);
    const same = now.size === chosen.size && names.every((run) => chosen.has(run));
    const listed = runs.length === model.runs.length;
    runs = model.runs;
    chosen = now;
    show(element, runs.length > 1);
    const most = names.length === MOST_RUNS ? ", the most" : "";
    say(summary, `Runs: ${names.length} of ${runs.length}${most}`);
    if (!element.open) return;
    if (!listed) fill();
    else if (!same) {
      for (const box of list.querySelectorAll("input")) {
        box.checked = chosen.has(box.dataset.run ?? "");
      }
    }
  }

  function focus() {
    if (runs.length < 2) return;
    element.open = true;
    search.focus();
  }

  /** @returns {boolean} false if it was closed already */
  function close() {
    const was = element.open;
    element.open = false;
    if (was) summary.focus();
    return was;
  }
  return { element, draw, focus, close };
}
