// @ts-check
/** Creates DOM elements; text is never parsed as HTML. */

import { explanation } from "../model/terms.js";

/** @typedef {string|number|boolean|null|undefined} Attribute true adds it, false and null do not */

/**
 * @typedef {{[T in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[T]) => void}} Listeners
 */

/** @typedef {{text?: string, on?: Listeners} & {[name: string]: Attribute|Listeners}} Settings */

/**
 * Creates an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Settings} settings attributes, `text`, and listeners (`on`)
 * @param {(Node|string|null)[]} children null is skipped
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, { text, on, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (on) listen(element, on);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** @param {Element} element @param {Listeners} listeners */
function listen(element, listeners) {
  for (const [type, listener] of Object.entries(listeners)) {
    element.addEventListener(type, /** @type {EventListener} */ (listener));
  }
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

const SVG = "http://www.w3.org/2000/svg";

export const ICONS = Object.freeze({
  first: "M4 3h2v10H4zM14 3v10L7 8z",
  previous: "M11 3v10L4 8z",
  play: "M5 3v10l8-5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z",
  last: "M10 3h2v10h-2zM2 3v10l7-5z",
  reload:
    "M8 3a5 5 0 1 0 4.8 6.4h-1.7A3.4 3.4 0 1 1 8 4.6c.9 0 1.7.4 2.3 1L8.4 7.500H13V3l-1.500 1.500A5 5 0 0 0 8 3z",
  link: "M6.500 10.500l4-4-1-1-4 4zM7 4.500l1.400-1.400a3.200 3.200 0 0 1 4.500 4.500L11.500 9l-1-1 1.400-1.400a1.800 1.800 0 0 0-2.500-2.500L8 5.500zM9 11.500l-1.400 1.400a3.200 3.200 0 0 1-4.500-4.500L4.500 7l1 1-1.400 1.400a1.800 1.800 0 0 0 2.500 2.500L8 10.500z",
  save: "M7.200 2.500h1.600v6l2.200-2.200 1.100 1.100L8 11.500 3.900 7.400 5 6.300l2.200 2.200zM3 12.500h10V14H3z",
  folded: "M6 4l5 4-5 4z",
  open: "M4 6h8l-4 5z",
  close:
    "M4.500 3.500L8 7l3.500-3.500 1 1L9 8l3.500 3.500-1 1L8 9l-3.500 3.500-1-1L7 8 3.500 4.500z",
});

/** @typedef {keyof typeof ICONS} Icon */

/** @param {Icon} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * A button with an icon or text.
 * @param {{icon?: Icon, text?: string, label: string, key?: string, press: () => void}} what
 */
export function button({ icon: name, text, label, key, press }) {
  const title = key ? `${label} (${key})` : label;
  const made = h("button", {
    type: "button",
    title,
    "aria-label": text ? null : label,
    on: { click: press },
  });
  if (name) made.append(icon(name));
  if (text) made.append(h("span", { text }));
  return made;
}

/**
 * Gives an element the attributes of `explanation`.
 * @template {HTMLElement} T
 * @param {T} element @param {string} terms @param {string} more @returns {T}
 */
export function explain(element, terms, more = "") {
  const { title, "aria-describedby": ids } = explanation(terms, more);
  element.title = title;
  element.setAttribute("aria-describedby", ids);
  return element;
}

/** Keys that change the step, unless a list is gone through with the keyboard. */
export const STEP_KEY = /^(ArrowLeft|ArrowRight|Home|End)$/;

/** True for a list that has the focus because it was clicked. @param {HTMLElement} element */
export function byPointer(element) {
  return element.matches("select") && element.dataset.pointer !== undefined;
}

/**
 * A select element; its label is for screen readers and the tooltip.
 * @template {string} T
 * @param {string} label @param {(value: T) => void} chosen
 */
export function choice(label, chosen) {
  const select = h("select", { "aria-label": label });
  let byKeys = false;
  select.addEventListener("keydown", (event) => {
    if (byPointer(select) && STEP_KEY.test(event.key)) return;
    byKeys = true;
    delete select.dataset.pointer;
  });
  select.addEventListener("pointerdown", () => {
    byKeys = false;
    select.dataset.pointer = "true";
  });
  select.addEventListener("blur", () => {
    byKeys = false;
    delete select.dataset.pointer;
  });
  select.addEventListener("change", () => {
    chosen(/** @type {T} */ (select.value));
    if (byKeys) return; // whoever goes through the list with the keyboard stays in it
    select.blur(); // so that arrow keys change the step again
    window.setTimeout(() => select.blur(), 0); // some browsers focus it once more on closing the list
  });
  const element = h("span", { class: "choice", title: label }, select);
  return { element, select, fill: filler(select) };
}

/**
 * Replaces the options of a select element, if they differ, and selects one.
 * @template {string} T
 * @param {HTMLSelectElement} select
 * @returns {(options: [T, string][], value: T) => void}
 */
function filler(select) {
  let before = "";
  return (/** @type {[string, string][]} */ options, /** @type {string} */ value) => {
    const now = JSON.stringify(options);
    if (now !== before) {
      select.replaceChildren(...options.map(([id, text]) => h("option", { value: id, text })));
      before = now;
    }
    if (select.value !== value) select.value = value;
  };
}

/**
 * A row of buttons, one of which is pressed.
 * @template {string} T
 * @param {string} label @param {[T, string, string?][]} options value, text, title
 * @param {(value: T) => void} chosen
 */
export function segments(label, options, chosen) {
  /** @type {Map<T, HTMLElement>} */
  const buttons = new Map();
  for (const [id, text, title] of options) {
    buttons.set(id, h("button", { type: "button", text, title, on: { click: () => chosen(id) } }));
  }
  const element = h(
    "div",
    { class: "segments", role: "group", "aria-label": label },
    ...buttons.values(),
  );
  const draw = (/** @type {T} */ value, /** @type {(id: T) => boolean} */ offered = () => true) => {
    for (const [id, each] of buttons) {
      each.setAttribute("aria-pressed", String(id === value));
      each.hidden = !offered(id);
    }
  };
  return { element, draw };
}
