// @ts-check
/** Controls of one column beside the main one: its run, step, sample and role, or to remove it. */

import { ROLE_NAMES } from "../model/compare.js";
import { leftToRight } from "../model/scene.js";
import { LETTERS, MOST, changed } from "../model/state.js";
import { runText, stepText } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { button, choice, h, say, show } from "./dom.js";
import { mount } from "./mount.js";
import { RunName, RunPicker } from "./runs.js";

// Controls of one column beside the main one: its run, step, sample and role, or to remove it.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/answers.js").Role} Role */
/** @typedef {import("../model/state.js").Column} Column */

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

// Headings above the pictures: where each column stems from, its input image, and what differs.

/** Height of an input image, CSS px. */
const SIDE = 40;

/** @param {App} app @param {number} i column, 0 for the main one */
function createSide(app, i) {
  const canvas = h("canvas", { role: "img" });
  const letter = h("b");
  const name = mount(RunName);
  const place = h("p", { class: "place" });
  const match = h("p", { class: "match" });
  const note = h("p", { class: "differs", role: "status" });
  const controls = i ? createColumnControls(app, i - 1) : null;
  const element = h(
    "div",
    { class: "side", role: "group" },
    h("div", { class: "origin" }, letter, name.element, controls?.element ?? null),
    h("div", { class: "side-body" }, canvas, place),
    match,
    note,
  );

  /** @param {Model} model */
  function draw(model) {
    const of = model.sides?.each[i];
    const isAsked = i > 0 && i <= model.state.columns.length && model.state.role !== "kernels";
    show(element, Boolean(of) || isAsked);
    controls?.draw(model);
    say(letter, of?.letter ?? "");
    show(name.element, Boolean(of));
    const from = of ? [of.place, of.follows].filter(Boolean).join(" · ") : "Loading…";
    if (place.textContent !== from) place.replaceChildren(...unbroken(from));
    if (of) name.draw({ run: of.run, colour: runColour(of.run, model.runs) });
    element.setAttribute("aria-label", of ? `${of.letter} ${of.text}`.trim() : "column, loading");
    element.dataset.inputs = of?.inputs ?? "loading";
    say(match, of?.match ?? "");
    show(match, Boolean(of?.match));
    say(note, of?.notes.join("; ") ?? "");
    show(note, Boolean(of?.notes.length));
    show(canvas, Boolean(of?.input));
    if (!of?.input) return;
    canvas.setAttribute("aria-label", `network's input of ${of.text}`);
    canvas.width = of.input.width;
    canvas.height = of.input.height;
    canvas.style.height = `${SIDE}px`;
    canvas.getContext("2d")?.drawImage(of.input, 0, 0);
  }
  return { element, draw };
}

/** The parts of a text between dots, none of which is broken into lines. @param {string} text */
function unbroken(text) {
  return text
    .split(" · ")
    .flatMap((part, i) => [i ? " · " : "", h("span", { class: "whole", text: part })]);
}

/** @param {App} app */
export function createSides(app) {
  const each = Array.from({ length: MOST + 1 }, (_, i) => createSide(app, i));
  const note = h("p", { class: "differs all", role: "status" });
  const own = h("button", {
    type: "button",
    class: "toggle own-scale",
    on: { click: () => app.update({ own_scale: !app.state.own_scale }) },
    text: "Own scale per column",
  });
  const below = h("div", { class: "below-sides" }, note, own);
  below.style.order = String(each.length);
  const element = h("div", { class: "sides" }, ...each.map((side) => side.element), below);

  /** @param {Model} model */
  function draw(model) {
    const { sides, state } = model;
    show(element, Boolean(sides) || (state.columns.length > 0 && state.role !== "kernels"));
    if (element.hidden) return;
    for (const side of each) side.draw(model);
    const order = leftToRight(model.scene?.columns ?? []);
    each.forEach((side, i) => {
      const place = order.length ? order.indexOf(i) : i;
      side.element.style.order = String(place < 0 ? i : place);
      side.element.classList.toggle("first", place === 0);
    });
    const shown = each.filter((side) => !side.element.hidden).length;
    element.style.setProperty("--columns", String(shown));
    say(note, sides?.notes.join(" ") ?? "");
    show(below, Boolean(sides?.notes.length));
    show(own, Boolean(sides?.hasScaleNote));
    say(own, state.own_scale ? "One scale for all columns" : "Own scale per column");
    element.dataset.inputs = sides?.inputs ?? "loading";
  }
  return { element, draw };
}
