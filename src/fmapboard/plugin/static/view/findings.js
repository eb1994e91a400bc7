// @ts-check
/** Small pictures of the channels that show a finding. */

import { scope, unreadText } from "../model/front.js";
import { flags, loudest } from "../model/scene.js";
import { callName, counted, runText, stepText } from "../model/words.js";
import { BORDER, prepare, runColour, stateFrame } from "../picture/canvas.js";
import { pixelsOf, tileCanvas } from "../picture/paint.js";
import { h, say, show } from "./dom.js";
import { explain } from "./help.js";

// Small pictures of the channels that show a finding.

/** @typedef {import("../model/scene.js").MapsScene} MapsScene */

/** Sides of a tile, CSS px; sequences are one row of pixels. */
const SIDE = 36;
const ROW = Object.freeze({ width: 96, height: 14 });

/**
 * A button with the map of one channel.
 * @param {MapsScene} scene @param {number} channel @param {string} palette
 * @param {string} of layer and step @param {() => void} press
 */
export function createTile(scene, channel, palette, of, press) {
  const fault = loudest(flags(scene.maps, scene.question.role, channel));
  const label = `channel ${channel} of ${of}${fault ? `: ${fault.word}` : ""}`;
  const canvas = h("canvas");
  const element = h(
    "button",
    { type: "button", class: "tile", title: label, "aria-label": label, on: { click: press } },
    canvas,
  );
  const { pixels, width } = pixelsOf(scene, "a", channel, palette);
  const height = pixels.length / Math.max(1, width);
  const [wide, high] = scene.rows ? [ROW.width, ROW.height] : fit(width, height);
  const out = fault ? BORDER : 0;
  const context = prepare(canvas, wide + 2 * out, high + 2 * out);
  context.imageSmoothingEnabled = width > canvas.width || height > canvas.height;
  context.drawImage(tileCanvas(pixels, width), out, out, wide, high);
  if (!fault) return element;
  stateFrame(context, { left: out, top: out, width: wide, height: high }, fault);
  element.append(h("span", { class: "tile-state", text: fault.brief }));
  return element;
}

/** Size of a tile whose longer side is `SIDE`, CSS px. @param {number} width @param {number} height */
function fit(width, height) {
  const factor = SIDE / Math.max(width, height, 1);
  return [Math.max(4, width * factor), Math.max(4, height * factor)];
}

// What is wrong, one line per finding, each with pictures that show it.

/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/health.js").Finding} Finding */
/** @typedef {import("../model/front.js").Evidence} Evidence */
/** @typedef {import("../model/front.js").Front} Front */

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
      front.answers.map(({ answer, error }) => [
        answer && { ...answer, findings: answer.findings.length },
        error,
      ]),
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
      ...quiet(front.answers, named),
    );
    focused?.();
    say(
      said,
      `${counted(front.lines.length, "finding")} in ${counted(front.chosen.length, "run")}`,
    );
  }

  /**
   * @param {import("../model/front.js").Line & Evidence} line @param {HTMLElement|null} run
   * @param {string} palette
   */
  function lineOf(line, run, palette) {
    const { finding, layer, scene, channels, text, step } = line;
    const go = (/** @type {number|null} */ channel) =>
      app.overview.go({ ...finding, run: line.run, step: finding.since }, channel);
    const press = h(
      "button",
      { type: "button", class: "finding", disabled: !layer, on: { click: () => go(null) } },
      explain(
        h("span", { class: "finding-class", "data-class": finding.class, text: finding.class }),
        finding.class,
      ),
      h("span", { class: "sentence" }, run, ...sentence(finding.message)),
      explained(finding.explanation),
      h("span", {
        class: "stems",
        text: [further(finding), line.loading ? "loading its pictures…" : text]
          .filter(Boolean)
          .join(" · "),
      }),
    );
    const of = `layer ${layer ? callName(layer) : ""} at step ${stepText(step)}`;
    const tiles = scene ? channels.map((c) => createTile(scene, c, palette, of, () => go(c))) : [];
    return h("li", { class: "line" }, press, h("div", { class: "tiles" }, ...tiles));
  }

  /**
   * What is said of runs without findings, and of those that were not read from their own series.
   * @param {Front["answers"]} answers @param {(run: string) => HTMLElement|null} named
   */
  function quiet(answers, named) {
    /** @type {HTMLElement[]} */
    const lines = [];
    const healthy = answers.filter(({ answer }) => answer && isQuiet(answer));
    const together = healthy.length > 1;
    if (together) {
      const runs = healthy.flatMap(({ run, answer }, i) => [
        ...(i ? ["; "] : []),
        named(run) ?? "",
        answer ? scope(answer) : "",
      ]);
      lines.push(h("li", { class: "quiet" }, "nothing found in ", ...runs));
    }
    for (const { run, answer, error } of answers) {
      if (error) {
        const text = `findings cannot be read: ${error}`;
        lines.push(h("li", { class: "quiet problem" }, named(run), text));
      } else if (answer && !(together && isQuiet(answer))) {
        const sofar = answer.unread === null ? "" : "so far ";
        const nothing = answer.findings.length ? "" : `nothing found ${sofar}in ${scope(answer)}`;
        const text = [nothing, unreadText(answer.unread)].filter(Boolean).join("; ");
        if (text) lines.push(h("li", { class: "quiet" }, named(run), text));
      }
    }
    const awaited = answers.filter(({ answer, error }) => !answer && !error);
    if (awaited.length) {
      const of =
        awaited.length < answers.length ? ` in ${counted(awaited.length, "further run")}` : "";
      lines.push(h("li", { class: "quiet" }, `looking for findings${of}…`));
    }
    return lines;
  }
  return { element, draw };
}

/** True if nothing was found in the whole run. @param {import("../server/health.js").FindingsAnswer} of */
function isQuiet({ findings, unread }) {
  return !findings.length && unread === null;
}

/** The layers that a line stands for besides its own, unless its message says so. @param {Finding} of */
function further({ more, message }) {
  if (!more || message.includes(`${more} further`)) return "";
  return `the same in ${more} further layer${more === 1 ? "" : "s"}`;
}

/** What a finding may mean, in one line that is cut where it ends; whole in its tooltip. @param {string} text */
function explained(text) {
  if (!text) return null;
  return h("span", { class: "explanation", title: text.replaceAll("`", "") }, ...sentence(text));
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
  return h("span", { class: "of-run" }, dot, runText(run), " · ");
}

/** A message with the text between backticks as code. @param {string} message */
export function sentence(message) {
  return message
    .split("`")
    .map((part, i) => (i % 2 ? h("code", { text: part }) : part.replace(/(\d) %/g, "$1\u00a0%")))
    .filter((part) => part !== "");
}
