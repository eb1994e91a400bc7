// @ts-check
/** The values of a chart at the current step, each with the colour of its line. */

import { FAULT_COLOURS } from "../draw/palettes.js";
import { h } from "./dom.js";

/**
 * Fills the heading of a chart, if that changes it.
 * @param {HTMLElement} element @param {{text: string, colour: string}[]} lines
 * @param {boolean} nonfinite the chart marks steps with values that are not finite
 */
export function keyed(element, lines, nonfinite = false) {
  const all = nonfinite
    ? [...lines, { text: "non-finite", colour: FAULT_COLOURS.nonfinite }]
    : lines;
  const now = JSON.stringify(all);
  if (element.dataset.key === now) return;
  element.dataset.key = now;
  element.replaceChildren(
    ...all.flatMap(({ text, colour }, i) => {
      const swatch = h("i", { class: "key" });
      swatch.style.background = colour;
      return [i > 0 ? " · " : "", swatch, text];
    }),
  );
}
