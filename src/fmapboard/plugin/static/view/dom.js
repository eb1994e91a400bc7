// @ts-check
/** Elements that hold canvases and components; text is never parsed as HTML. */

import { h as create, render } from "../vendor/preact_htm.js";

/** @typedef {string|boolean} Attribute true adds it, false does not */

/**
 * @typedef {{[T in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[T]) => void}} Listeners
 */

/** @typedef {{text?: string, on?: Listeners} & {[name: string]: Attribute|Listeners}} Settings */

/**
 * Creates an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Settings} settings attributes, `text`, and listeners (`on`)
 * @param {Node[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, { text, on = {}, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [type, listener] of Object.entries(on)) {
    element.addEventListener(type, /** @type {EventListener} */ (listener));
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Sets text only if it differs, so as not to disturb screen readers and selections.
 * @param {Element} element @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLElement} element @param {boolean} shown */
export function show(element, shown) {
  element.hidden = !shown;
}

/**
 * An element for a component, and a function that draws the component into it from its properties.
 * @template {object} P
 * @param {import("../vendor/preact_htm.js").Component<P>} component
 * @param {HTMLElement} [around] without it, the component's element is laid out as if it stood alone
 */
export function mount(component, around) {
  const element = around ?? document.createElement("div");
  if (!around) element.style.display = "contents";
  return { element, draw: (/** @type {P} */ props) => render(create(component, props), element) };
}
