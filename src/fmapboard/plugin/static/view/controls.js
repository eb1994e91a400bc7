// @ts-check
/** Buttons, lists, groups of controls and what they open, all in one style. */

import { explanation } from "../model/terms.js";
import { inWordsOf } from "../model/words.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact_htm.js";
import { useKeys } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {IconName, OfSelect} from "./view.js" */

export const ICONS = Object.freeze({
  previous: "M11 3v10L4 8z",
  play: "M5 3v10l8-5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z",
  reload:
    "M8 3a5 5 0 1 0 4.8 6.4h-1.7A3.4 3.4 0 1 1 8 4.6c.9 0 1.7.4 2.3 1L8.4 7.5H13V3l-1.5 " +
    "1.5A5 5 0 0 0 8 3z",
  link:
    "M6.5 10.5l4-4-1-1-4 4zM7 4.5l1.4-1.4a3.2 3.2 0 0 1 4.5 4.5L11.5 " +
    "9l-1-1 1.4-1.4a1.8 1.8 0 0 0-2.5-2.5L8 5.5zM9 11.5l-1.4 1.4a3.2 " +
    "3.2 0 0 1-4.5-4.5L4.5 7l1 1-1.4 1.4a1.8 1.8 0 0 0 2.5 2.5L8 10.5z",
  save: "M7.2 2.5h1.6v6l2.2-2.2 1.1 1.1L8 11.5 3.9 7.4 5 6.3l2.2 " + "2.2zM3 12.5h10V14H3z",
  folded: "M6 4l5 4-5 4z",
  open: "M4 6h8l-4 5z",
  close: "M4.5 3.5L8 7l3.5-3.5 1 1L9 8l3.5 3.5-1 1L8 9l-3.5 3.5-1-1L7 8 3.5 4.5z",
});

/** Keys that change the step, unless a list is gone through with the keyboard. */
export const STEP_KEY = /^(ArrowLeft|ArrowRight|Home|End)$/;

/** True for a list that has the focus because it was clicked. @param {HTMLElement} element */
export function byPointer(element) {
  return element.matches("select") && element.dataset.pointer !== undefined;
}

/** @param {{name: IconName}} props */
export function Icon({ name }) {
  return html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
}

/**
 * @param {{icon?: IconName, text?: string, label: string, keys?: string,
 *   press: () => void, [attribute: string]: unknown}} props `keys` do the same
 */
export function Button({ icon, text, label, keys, press, ...attributes }) {
  return html`
    <button type="button" title=${keys ? `${label} (${keys})` : label}
      aria-label=${text ? null : label} onClick=${press} ...${attributes}>
      ${icon && html`<${Icon} name=${icon} />`}${text && html`<span>${text}</span>`}
    </button>
  `;
}

/**
 * What takes the value of a text field or slider when it changes.
 * @param {(value: string) => void} use
 */
export function typed(use) {
  return (/** @type {{currentTarget: HTMLInputElement}} */ event) => use(event.currentTarget.value);
}

/**
 * A button that stays pressed.
 * @param {{text: string, isOn: boolean, press: () => void, [attribute: string]: unknown}} props
 */
export function Toggle({ text, isOn, press, ...attributes }) {
  const pressed = String(isOn);
  return html`
    <button type="button" class="toggle" aria-pressed=${pressed} onClick=${press} ...${attributes}>
      ${text}
    </button>
  `;
}

/**
 * A row of buttons, one of which is pressed.
 * @template {string} T
 * @param {{label: string, options: readonly (readonly [T, string, string?])[], value: T, choose:
 *   (value: T) => void, kind?: string}} props options are value, text, tooltip; a further class
 */
export function Segments({ label, options, value, choose, kind = "" }) {
  return html`
    <div class=${`segments ${kind}`.trim()} role="group" aria-label=${label}>
      ${options.map(
        ([id, text, title]) => html`
          <button type="button" key=${id} title=${title} aria-pressed=${String(id === value)}
            onClick=${() => choose(id)}>
            ${text}
          </button>
        `,
      )}
    </div>
  `;
}

/**
 * A list to choose from. Whoever chooses with the pointer leaves the arrow keys to the steps.
 * @template {string|number|null} T
 * @param {{label: string, options: readonly (readonly [T, string])[], value: T,
 *   choose: (value: T) => void, terms?: string}} props `terms` of the glossary
 */
export function Choice({ label, options, value, choose, terms = "" }) {
  const byKeys = useRef(false);
  const pressed = (/** @type {OfSelect} */ { currentTarget: select }, by = "pointer") => {
    byKeys.current = by === "keys";
    if (by === "pointer") select.dataset.pointer = "true";
    else delete select.dataset.pointer;
  };
  const chosen = (/** @type {OfSelect} */ { currentTarget: select }) => {
    choose(options[select.selectedIndex][0]);
    if (byKeys.current) return; // whoever goes through the list with the keyboard stays in it
    select.blur(); // so that arrow keys change the step again
    // some browsers focus it once more on closing the list
    window.setTimeout(() => select.blur(), 0);
  };
  return html`
    <span class="choice" title=${label}>
      <select aria-label=${label} ...${terms ? explanation(terms) : {}} value=${value ?? ""}
        onChange=${chosen} onPointerDown=${pressed}
        onBlur=${(/** @type {OfSelect} */ event) => pressed(event, "")}
        onKeyDown=${(/** @type {KeyboardEvent & OfSelect} */ event) => {
          if (!byPointer(event.currentTarget) || !STEP_KEY.test(event.key)) pressed(event, "keys");
        }}>
        ${options.map(([id, text]) => html`<option key=${id} value=${id ?? ""}>${text}</option>`)}
      </select>
    </span>
  `;
}

/**
 * What a button opens: Escape, a press elsewhere, and lost focus close it. `around` is for what
 * holds both, `opener` for the button.
 */
export function usePopover() {
  const [isOpen, open] = useState(false);
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  const opener = useRef(/** @type {HTMLElement|null} */ (null));
  const elsewhere = (/** @type {EventTarget|null} */ to) => {
    if (to instanceof Node && !element.current?.contains(to)) open(false);
  };
  useKeys("pointerdown", ({ target }) => elsewhere(target));
  const leave = () => {
    open(false);
    opener.current?.focus();
  };
  const around = {
    ref: element,
    onfocusout: (/** @type {FocusEvent} */ event) => elsewhere(event.relatedTarget),
    onKeyDown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Escape" || !isOpen) return;
      event.stopPropagation(); // the channel stays open
      leave();
    },
  };
  const button = { "aria-expanded": String(isOpen), ref: opener, onClick: () => open(!isOpen) };
  return { isOpen, open, leave, around, opener: button };
}

/**
 * A group of controls; `useFolding` makes it a menu where the row has no room for it.
 * @param {{label: string, what: string, folds: number, children?: Child}} props `what` is a
 *   tooltip, groups with small `folds` become menus first
 */
export function Group({ label, what, folds, children }) {
  const { isOpen, leave, around, opener } = usePopover();
  const body = useRef(/** @type {HTMLElement|null} */ (null));
  const id = `group-${label.toLowerCase()}`;
  useLayoutEffect(() => {
    const { current } = body;
    if (!isOpen || !current) return;
    current.style.left = "0";
    const over = current.getBoundingClientRect().right - (window.innerWidth - 4);
    if (over > 0) current.style.left = `${-over}px`;
  }, [isOpen]);
  return html`
    <div class=${isOpen ? "toolgroup open" : "toolgroup"} role="group" aria-label=${label}
      data-folds=${folds} ...${around}>
      <button type="button" class="fold" title=${what} aria-controls=${id} ...${opener}>
        <span>${label}</span><${Icon} name="open" />
      </button>
      <div class="toolgroup-body" id=${id} ref=${body}
        onClick=${(/** @type {MouseEvent} */ { target, detail }) => {
          // Whoever chooses with the keyboard stays in the menu.
          const isChoice = target instanceof Element && target.closest(".segments");
          if (isOpen && isChoice && detail > 0) leave();
        }}>${children}</div>
    </div>
  `;
}

/** In a window of at most this width all groups are menus, CSS px, as in style.css. */
export const SMALL = 900;

/**
 * Makes as many groups of a row into menus as it takes to fit.
 * @param {{current: HTMLElement|null}} row
 */
export function useFolding(row) {
  useLayoutEffect(() => {
    const { current: element } = row;
    if (!element) return;
    let width = -1;
    function fit() {
      if (!element?.clientWidth || element.querySelector(".toolgroup.open")) return;
      width = element.clientWidth;
      const groups = /** @type {HTMLElement[]} */ ([...element.querySelectorAll(".toolgroup")]);
      groups.sort((a, b) => Number(a.dataset.folds) - Number(b.dataset.folds));
      const isSmall = window.innerWidth <= SMALL;
      for (const group of groups) group.toggleAttribute("data-folded", isSmall);
      for (const group of groups) {
        if (isSmall || element.scrollWidth <= element.clientWidth) break;
        group.toggleAttribute("data-folded", true);
      }
      watch.takeRecords();
    }
    // Whatever a view shows, hides or fills changes the width that is needed; the texts of the step
    // and of what is going on, which change all the time, make menus only where they do not fit.
    const watch = new MutationObserver((changes) => {
      const isOfTexts = (/** @type {Node} */ node) =>
        (node instanceof HTMLElement ? node : node.parentElement)?.closest(".time, .said");
      const isOver = element.scrollWidth > element.clientWidth;
      if (isOver || changes.some(({ target }) => !isOfTexts(target))) fit();
    });
    watch.observe(element, { subtree: true, childList: true, characterData: true });
    const sized = new ResizeObserver(() => element.clientWidth !== width && fit());
    sized.observe(element);
    void document.fonts.ready.then(fit);
    fit();
    return () => {
      watch.disconnect();
      sized.disconnect();
    };
  }, []);
}

/** A control with its name. @param {{text: string, term: string, children?: Child}} props */
export function Labelled({ text, term, children }) {
  const { title, ...described } = explanation(term);
  return html`
    <div class="labelled">
      <span class="sublabel" title=${title} ...${described}>${text}</span>${children}
    </div>
  `;
}

/** The head of the open channel. @param {{app: App, name: string, children?: Child}} props */
export function ChannelHead({ app, name, children }) {
  const move = (/** @type {number} */ by) => () => app.moveChannel(by);
  const close = () => app.update({ channel: null });
  return html`
    <div class="row spread">
      <h2>${name}</h2>
      <span class="row">
        ${children}
        <${Button} icon="previous" label=${inWordsOf("Channel before")} keys="["
          press=${move(-1)} />
        <${Button} icon="next" label=${inWordsOf("Channel after")} keys="]" press=${move(1)} />
        <${Button} icon="close" label=${inWordsOf("Close the channel")} keys="Esc" press=${close} />
      </span>
    </div>
  `;
}

/**
 * Scrolls as little as it takes to bring a stretch into sight. @param {HTMLElement} scroller
 * @param {"Left"|"Top"} side @param {number} from @param {number} to CSS px in what is scrolled
 */
export function reveal(scroller, side, from, to) {
  const at = /** @type {const} */ (`scroll${side}`);
  const seen = side === "Top" ? scroller.clientHeight : scroller.clientWidth;
  if (from < scroller[at]) scroller[at] = from;
  else if (to > scroller[at] + seen) scroller[at] = to - seen;
}
