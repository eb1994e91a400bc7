// @ts-check
/** Elements without markup: text is text, never HTML. */

/**
 * @param {string} tag
 * @param {Record<string, any>} set `text`, `on` (listeners), booleans and attributes
 * @param {(Node|string|null)[]} children
 * @returns {HTMLElement}
 */
export function h(tag, set = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(set)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") listen(element, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** @param {Element} element @param {Record<string, (event: any) => void>} listeners */
function listen(element, listeners) {
  for (const [type, listener] of Object.entries(listeners)) element.addEventListener(type, listener);
}

/** Sets text only where it differs: screen readers and selections are left in peace. @param {Element} element @param {string} text */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {HTMLElement} element @param {boolean} shown */
export function show(element, shown) {
  element.hidden = !shown;
}

const SVG = "http://www.w3.org/2000/svg";

const ICONS = Object.freeze({
  first: "M4 3h2v10H4zM14 3v10L7 8z", previous: "M11 3v10L4 8z", play: "M5 3v10l8-5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z", next: "M5 3v10l7-5z", last: "M10 3h2v10h-2zM2 3v10l7-5z",
  reload: "M8 3a5 5 0 1 0 4.8 6.4h-1.7A3.4 3.4 0 1 1 8 4.6c.9 0 1.7.4 2.3 1L8.4 7.500H13V3l-1.500 1.500A5 5 0 0 0 8 3z",
  link: "M6.500 10.500l4-4-1-1-4 4zM7 4.500l1.400-1.400a3.200 3.200 0 0 1 4.500 4.500L11.500 9l-1-1 1.400-1.400a1.800 1.800 0 0 0-2.500-2.500L8 5.500zM9 11.500l-1.400 1.400a3.200 3.200 0 0 1-4.500-4.500L4.500 7l1 1-1.400 1.400a1.800 1.800 0 0 0 2.500 2.500L8 10.500z",
  save: "M7.200 2.500h1.600v6l2.200-2.200 1.100 1.100L8 11.500 3.900 7.400 5 6.300l2.200 2.200zM3 12.500h10V14H3z",
  folded: "M6 4l5 4-5 4z", open: "M4 6h8l-4 5z", close: "M4.500 3.500L8 7l3.500-3.500 1 1L9 8l3.500 3.500-1 1L8 9l-3.500 3.500-1-1L7 8 3.500 4.500z",
});

/** @param {keyof typeof ICONS} name */
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
 * A button with an icon, or with text.
 * @param {{icon?: keyof typeof ICONS, text?: string, label: string, key?: string, press: () => void}} what
 */
export function button({ icon: name, text, label, key, press }) {
  const title = key ? `${label} (${key})` : label;
  const made = h("button", { type: "button", title, "aria-label": text ? null : label, on: { click: press } });
  if (name) made.append(icon(name));
  if (text) made.append(h("span", { text }));
  return /** @type {HTMLButtonElement} */ (made);
}

/**
 * A choice; its label is for screen readers and the tooltip.
 * @param {string} label @param {(value: string) => void} chosen
 */
export function choice(label, chosen) {
  const select = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": label }));
  let byMouse = false;
  select.addEventListener("pointerdown", () => { byMouse = true; });
  select.addEventListener("keydown", () => { byMouse = false; });
  select.addEventListener("change", () => {
    if (byMouse) select.blur(); // so that the arrow keys move the step again
    byMouse = false;
    chosen(select.value);
  });
  const element = h("span", { class: "choice", title: label }, select);
  return { element, select, fill: filler(select) };
}

/** Renews a select's options only where they differ. @param {HTMLSelectElement} select */
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
 * A row of buttons of which one is pressed.
 * @param {string} label @param {[string, string, string?][]} options id, text, title
 * @param {(id: string) => void} chosen
 */
export function segments(label, options, chosen) {
  /** @type {Map<string, HTMLElement>} */
  const buttons = new Map();
  for (const [id, text, title] of options) {
    buttons.set(id, h("button", { type: "button", text, title, on: { click: () => chosen(id) } }));
  }
  const element = h("div", { class: "segments", role: "group", "aria-label": label }, ...buttons.values());
  const draw = (/** @type {string} */ value, /** @type {(id: string) => boolean} */ offered = () => true) => {
    for (const [id, each] of buttons) {
      each.setAttribute("aria-pressed", String(id === value));
      each.hidden = !offered(id);
    }
  };
  return { element, draw };
}
