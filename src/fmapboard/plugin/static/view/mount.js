// @ts-check
/** Where a component stands among views that make their elements by hand. */

import { h, render } from "../vendor/preact_htm.js";

/**
 * An element for a component, and a function that draws the component into it from its properties.
 * @template {object} P
 * @param {import("../vendor/preact_htm.js").Component<P>} component
 * @param {HTMLElement} [around] without it, the component's element is laid out as if it stood alone
 */
export function mount(component, around) {
  const element = around ?? document.createElement("div");
  if (!around) element.style.display = "contents";
  return { element, draw: (/** @type {P} */ props) => render(h(component, props), element) };
}
