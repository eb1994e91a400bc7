// @ts-check
/** How the runs are: of the shown run one large line, below it a row per further run. */

import { opening, unreadText } from "../model/front.js";
import { counted, runText, wordOf } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { h, say, show } from "./dom.js";
import { sentence } from "./findings.js";

/** @typedef {import("../server/health.js").Verdict} Verdict */
/** @typedef {import("../model/front.js").Front} Front */

/** Word and sign of each class, and its place in the list: without colour they can be told apart too. */
const SIGNS = Object.freeze({
  warning: { word: "Fault:", sign: "✕", rank: 0 },
  note: { word: "Suspicion:", sign: "!", rank: 1 },
  unreadable: { word: "", sign: "?", rank: 2 },
  well: { word: "", sign: "✓", rank: 3 },
});

/** @param {Verdict["class"]|"unreadable"} of */
function markOf(of) {
  return h("span", { class: "mark", "data-class": of, text: SIGNS[of].sign, title: of });
}

/** @param {import("../app.js").App} app */
export function createVerdict(app) {
  const line = h("h1", { class: "verdict" });
  const rows = h("ol", { class: "run-rows", "aria-label": "Further runs" });
  const note = h("span", { class: "awaited" });
  const rest = h("ul");
  const why = h("details", { class: "why" }, h("summary", { text: "Evidence, next step" }), rest);
  const element = h("div", { class: "verdicts" }, line, why, rows);
  let before = "";

  /** @param {import("../app.js").Model} model @param {Front} front */
  function draw({ runs, stepWords, unread }, front) {
    const shown = front.verdicts.find(({ run }) => run === front.run);
    const others = front.verdicts.filter(({ run }) => run !== front.run);
    const now = JSON.stringify([front.run, front.verdicts, stepWords, runs.length, unread]);
    const { awaited } = front;
    const further = awaited && shown ? `looking through ${counted(awaited, "further run")}…` : "";
    const text = [unreadText(unread), further].filter(Boolean).join(" · ");
    say(note, text);
    show(note, text !== "");
    if (now === before) return;
    before = now;
    line.replaceChildren(
      ...(shown
        ? large(shown, stepWords, unread !== null)
        : [h("span", { text: "Looking through the run…" })]),
    );
    const lines = shown?.rest ?? [];
    show(why, lines.length > 0);
    rest.replaceChildren(...lines.map((each) => h("li", {}, ...sentence(each))));
    const nameOf = (/** @type {string} */ run) => named(run, runColour(run, runs));
    const ordered = [...others].sort((a, b) => SIGNS[a.class].rank - SIGNS[b.class].rank);
    const well = ordered.filter((each) => each.class === "well");
    const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset["run"];
    rows.replaceChildren(
      ...ordered.filter((each) => well.length < 2 || each.class !== "well").map(rowOf),
      ...(well.length < 2 ? [] : [together(well)]),
    );
    show(rows, others.length > 0);
    if (focused !== undefined) {
      /** @type {HTMLElement|undefined} */ (
        [...rows.querySelectorAll("button")].find((each) => each.dataset["run"] === focused)
      )?.focus();
    }

    /** @param {import("../model/front.js").RunVerdict} of */
    function rowOf(of) {
      const text = h("span", { class: "sentence" }, ...sentence(of.text));
      return h("li", {}, press(of.run, markOf(of.class), nameOf(of.run), text));
    }

    /** Runs in which nothing was found share a row. @param {import("../model/front.js").RunVerdict[]} of */
    function together(of) {
      const buttons = of.map(({ run, text }) => {
        const button = press(run, nameOf(run));
        button.title = text.replaceAll("`", "");
        return button;
      });
      return h(
        "li",
        { class: "together" },
        markOf("well"),
        h("span", { text: "Nothing found in" }),
        ...buttons,
      );
    }
  }

  /** A button that shows a run. @param {string} run @param {Node[]} content */
  function press(run, ...content) {
    const click = () => app.update({ ...opening(app.state, run), layer: "" });
    return h("button", { type: "button", "data-run": run, on: { click } }, ...content);
  }

  /**
   * @param {import("../model/front.js").RunVerdict} of
   * @param {import("../model/words.js").Words} words @param {boolean} isPart of its log is read
   */
  function large(of, words, isPart) {
    const text = isPart ? of.text.replace(/^Nothing found/, "Nothing found so far") : of.text;
    const said = h("span", { class: "sentence" }, ...sentence(text));
    const { word } = SIGNS[of.class];
    const mark = [markOf(of.class), ...(word ? [h("b", { text: word })] : [])];
    if (of.shown_at === null || of.since === null) return [...mark, said];
    const { name, label, key, shown_at, since } = of;
    const click = () =>
      void app.overview.go({ name, label, key, shown_at, run: of.run, step: since });
    const go = h("button", {
      type: "button",
      class: "go",
      text: `Open ${wordOf(words, since)} →`,
      on: { click },
    });
    return [...mark, said, go];
  }
  return { element, note, draw };
}

/** @param {string} run @param {string} colour */
function named(run, colour) {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  dot.style.background = colour;
  return h("span", { class: "of-run", title: runText(run) }, dot, runText(run));
}
