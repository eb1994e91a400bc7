// @ts-check
/** Where a component stands among views that make their elements by hand. */

import { h, render } from "../vendor/preact_htm.js";

/**
 * An element for a component, and a function that draws the component into it from its properties.
 * @template {object} P
 * @param {import("../vendor/preact_htm.js").Component<P>} component
 */
export function mount(component) {
  const element = document.createElement("div");
  element.style.display = "contents"; // the component's element is laid out as if it stood alone
  return { element, draw: (/** @type {P} */ props) => render(h(component, props), element) };
}
