// @ts-check
/** The strip of a layer in the list: its range, its faulty channels and its change, with a header. */

import { short } from "../draw/number_text.js";
import { h, say } from "./dom.js";
import { explain } from "./glossary.js";
import { layerChange } from "./change_text.js";
import { strip } from "./health_strip.js";

const RANGE =
  "Bar: from the smallest to the largest value. The scale is logarithmic, with lines at 0, ±1 and ±100, and ends at ±10 000. Number: the largest magnitude.";
const FAULTS = "Share of channels that are dead (orange), constant (cyan) or non-finite (magenta).";
const CHANGE =
  "How much the layer has changed since the logged step before. The scale is logarithmic, from 0.0001 to 1.";

/** Smallest part of a bar that is drawn if there is anything, percent. */
const LEAST = 8;

/** The header over the strips of the list. */
export function createStripHead() {
  const head = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("span", { class: name, text });
  return h(
    "div",
    { class: "tree-head" },
    h("span", { text: "layer" }),
    h(
      "span",
      { class: "strip-head" },
      explain(head("span", "range"), "range", RANGE),
      explain(head("share", "faults"), "dead constant nonfinite", FAULTS),
      explain(head("moved", "change"), "change", CHANGE),
    ),
  );
}

export function createStrip() {
  const bar = (/** @type {string} */ name) => h("i", { class: name });
  const range = bar("range");
  const peak = h("span", { class: "peak" });
  const [dead, constant, bad, change] = ["dead", "constant", "bad", "change"].map(bar);
  const moved = h("b", { class: "moved" }, change);
  const element = h(
    "span",
    { class: "strip", role: "img" },
    h("b", { class: "span" }, range),
    peak,
    h("b", { class: "share" }, dead, constant, bad),
    moved,
  );

  /** @param {import("./health_strip.js").Overview|undefined} of */
  function draw(of) {
    element.classList.toggle("known", Boolean(of));
    if (!of) return;
    const parts = strip(of);
    range.style.left = `${parts.from * 100}%`;
    range.style.width = `${Math.max(4, (parts.to - parts.from) * 100)}%`;
    say(peak, short(parts.peak, 2));
    element.setAttribute("aria-label", `range ${short(of.minimum)} … ${short(of.maximum)}`);
    const size = (/** @type {HTMLElement} */ part, /** @type {number} */ share) => {
      part.style.width = share > 0 ? `${Math.max(share * 100, LEAST)}%` : "0";
    };
    size(dead, parts.dead);
    size(constant, parts.constant);
    size(bad, parts.nonfinite);
    size(change, parts.change);
    moved.dataset.state = parts.changeState;
    moved.title = parts.changeState ? layerChange(of) : "";
  }
  return { element, draw };
}
