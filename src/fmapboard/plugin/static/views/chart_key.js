// @ts-check
/** The values of a chart at the current step, each with the colour of its line. */

import { FAULT_COLOURS } from "../draw/palettes.js";
import { h } from "./dom.js";

/** What is shown, per element. @type {WeakMap<HTMLElement, string>} */
const drawn = new WeakMap();

/**
 * Fills the heading of a chart, if that changes it.
 * @param {HTMLElement} element @param {{text: string, colour: string}[]} lines colour "" for none
 * @param {boolean} nonfinite the chart marks steps with values that are not finite
 */
export function keyed(element, lines, nonfinite = false) {
  const all = nonfinite
    ? [...lines, { text: "non-finite", colour: FAULT_COLOURS.nonfinite }]
    : lines;
  const now = JSON.stringify(all.map(({ text, colour }) => [text, colour]));
  if (drawn.get(element) === now && element.childElementCount) return;
  drawn.set(element, now);
  element.replaceChildren(
    ...all.flatMap(({ text, colour }, i) => {
      const swatch = colour ? h("i", { class: "swatch" }) : "";
      if (swatch) swatch.style.background = colour;
      return [i > 0 ? " · " : "", swatch, text];
    }),
  );
  element.title = all.map(({ text }) => text).join(" · ");
}
