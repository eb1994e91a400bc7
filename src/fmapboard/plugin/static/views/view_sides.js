// @ts-check
/** Headings above the pictures: where each column stems from, its input image, and what differs. */

import { leftToRight } from "../draw/scene_columns.js";
import { runColour } from "../draw/run_colours.js";
import { MOST } from "../state/columns.js";
import { createColumnControls } from "./column_controls.js";
import { h, say, show } from "./dom.js";
import { mount } from "./mount.js";
import { RunName } from "./run_name.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */

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
