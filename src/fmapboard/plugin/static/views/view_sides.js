// @ts-check
/** Headings above the pictures: where each side stems from, its input image, and what differs. */

import { h, say, show } from "./dom.js";

/** Height of an input image, CSS px. */
const SIDE = 44;

function createSide() {
  const canvas = h("canvas", { role: "img" });
  const letter = h("b");
  const text = h("span");
  const element = h("div", { class: "side" }, canvas, letter, text);

  /** @param {import("../state/sides.js").SideFacts|undefined} of @param {string} name */
  function draw(of, name) {
    show(element, Boolean(of));
    if (!of) return;
    say(letter, name);
    say(text, of.text);
    element.title = of.text;
    show(canvas, Boolean(of.input));
    if (!of.input) return;
    canvas.setAttribute("aria-label", `network's input of ${of.text}`);
    canvas.width = of.input.width;
    canvas.height = of.input.height;
    canvas.style.height = `${SIDE}px`;
    canvas.getContext("2d")?.drawImage(of.input, 0, 0);
  }
  return { element, draw };
}

export function createSides() {
  const both = [createSide(), createSide()];
  const note = h("p", { class: "differs", role: "status" });
  const element = h("div", { class: "sides" }, ...both.map((side) => side.element), note);

  /** @param {import("../data/tab_data.js").Model} model */
  function draw({ sides }) {
    show(element, Boolean(sides));
    if (!sides) return;
    const named = sides.each.length > 1;
    both.forEach((side, i) => side.draw(sides.each[i], named ? "AB"[i] : ""));
    say(note, sides.notes.join(" "));
    show(note, sides.notes.length > 0);
    element.dataset.inputs = sides.inputs;
  }
  return { element, draw };
}
