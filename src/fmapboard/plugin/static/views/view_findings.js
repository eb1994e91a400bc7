// @ts-check
/** What is wrong, one line per finding, each with pictures that show it. */

import { stepText } from "../draw/number_text.js";
import { runColour } from "../draw/run_colours.js";
import { originText, scope } from "../state/front.js";
import { createTile } from "./evidence_tiles.js";
import { h, say, show } from "./dom.js";

/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/health.js").Finding} Finding */
/** @typedef {import("../state/evidence.js").Evidence} Evidence */
/** @typedef {import("../state/front.js").Front} Front */

const SEVERITIES = Object.freeze(["", "minor", "severe", "severe"]);

/** @param {import("../app.js").App} app */
export function createFindings(app) {
  const list = h("ol", { class: "findings" });
  const more = h("button", {
    type: "button",
    class: "more",
    text: "Show more",
    on: { click: () => app.overview.showLines(!app.overview.all) },
  });
  const said = h("p", { class: "visually-hidden", role: "status" });
  const element = h("div", {}, list, more, said);
  let before = "";

  /** @param {Model} model @param {Front} front */
  function draw({ runs, state }, front) {
    const several = front.chosen.length > 1;
    const rest = front.lines.length - front.shown.length;
    show(more, rest > 0 || app.overview.all);
    say(more, rest > 0 ? `Show ${rest} more` : "Show fewer");
    const now = JSON.stringify([
      front.chosen,
      front.answers.map(({ answer, error }) => [Boolean(answer), error]),
      front.shown.map(({ run, finding, text, channels, loading, step }) => [
        run,
        finding,
        text,
        channels,
        loading,
        step,
      ]),
      state.colours,
      document.documentElement.dataset.theme,
      window.devicePixelRatio,
    ]);
    if (now === before) return;
    before = now;
    const focused = focusIn(list);
    const named = (/** @type {string} */ run) =>
      several ? runName(run, runColour(run, runs)) : null;
    list.replaceChildren(
      ...front.shown.map((line) => lineOf(line, named(line.run), state.colours)),
      ...front.answers.flatMap((each) => quiet(each, named(each.run))),
    );
    focused?.();
    say(said, `${front.lines.length} findings in ${front.chosen.length} runs`);
  }

  /**
   * @param {import("../state/chosen_runs.js").Line & Evidence} line @param {HTMLElement|null} run
   * @param {string} palette
   */
  function lineOf(line, run, palette) {
    const { finding, layer, scene, channels, text, step } = line;
    const go = (/** @type {number|null} */ channel) =>
      app.overview.go({ ...finding, run: line.run, step: finding.since }, channel);
    const severity = finding.kind === "nonfinite" ? "non-finite" : SEVERITIES[finding.severity];
    const press = h(
      "button",
      { type: "button", class: "finding", disabled: !layer, on: { click: () => go(null) } },
      h("span", {
        class: "severity",
        "data-kind": finding.kind,
        "data-severity": finding.severity,
        text: severity ?? "",
      }),
      h("span", { class: "sentence" }, run, ...sentence(finding.message)),
      h("span", {
        class: "stems",
        text: [further(finding), line.loading ? "loading its pictures…" : text]
          .filter(Boolean)
          .join(" · "),
      }),
    );
    const of = `${layer?.label ?? ""} at step ${stepText(step)}`;
    const tiles = scene ? channels.map((c) => createTile(scene, c, palette, of, () => go(c))) : [];
    return h("li", { class: "line" }, press, h("div", { class: "tiles" }, ...tiles));
  }

  /**
   * What is said of a run without findings, and of one that was not read from its own series.
   * @param {Front["answers"][number]} of @param {HTMLElement|null} run
   */
  function quiet({ answer, error }, run) {
    const text = error
      ? `findings cannot be read: ${error}`
      : !answer
        ? "looking for findings…"
        : [
            answer.findings.length ? "" : `nothing found in ${scope(answer)}`,
            originText(answer.source),
          ]
            .filter(Boolean)
            .join("; ");
    return text ? [h("li", { class: error ? "quiet problem" : "quiet" }, run, text)] : [];
  }
  return { element, draw };
}

/** The layers that a line stands for besides its own, unless its message says so. @param {Finding} of */
function further({ more, message }) {
  if (!more || message.includes(`${more} further`)) return "";
  return `the same in ${more} further layer${more === 1 ? "" : "s"}`;
}

/** Remembers which button of a list has the focus, to give it back. @param {HTMLElement} list */
function focusIn(list) {
  const at = [...list.querySelectorAll("button")].findIndex((b) => b === document.activeElement);
  return at < 0 ? null : () => list.querySelectorAll("button")[at]?.focus();
}

/** @param {string} run @param {string} colour */
function runName(run, colour) {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  dot.style.background = colour;
  return h("span", { class: "of-run" }, dot, run || ".", " · ");
}

/** A message with the text between backticks as code. @param {string} message */
export function sentence(message) {
  return message
    .split("`")
    .map((part, i) => (i % 2 ? h("code", { text: part }) : part))
    .filter((part) => part !== "");
}
