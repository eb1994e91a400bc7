// @ts-check
/** A row of groups of controls; groups that do not fit into the window become menus. */

import { h, icon } from "./dom.js";
import { explain } from "./glossary.js";

/** @typedef {ReturnType<typeof createGroup>} Group */

/**
 * A labelled group of controls.
 * @param {string} label short and visible @param {string} what the group is for, as a tooltip
 * @param {Element[]} controls
 */
export function createGroup(label, what, ...controls) {
  const id = `group-${label.toLowerCase()}`;
  const button = h(
    "button",
    {
      type: "button",
      class: "fold",
      title: what,
      "aria-expanded": "false",
      "aria-controls": id,
      on: { click: () => open(button.getAttribute("aria-expanded") !== "true") },
    },
    h("span", { text: label }),
    icon("open"),
  );
  const body = h("div", { class: "toolgroup-body", id }, ...controls);
  const element = h(
    "div",
    { class: "toolgroup", role: "group", "aria-label": label },
    h("span", { class: "label", title: what, text: label }),
    button,
    body,
  );

  /** Opens or closes the menu. @param {boolean} shown */
  function open(shown) {
    button.setAttribute("aria-expanded", String(shown));
    element.classList.toggle("open", shown);
    if (!shown) return;
    body.style.left = "0";
    const over = body.getBoundingClientRect().right - (window.innerWidth - 4);
    if (over > 0) body.style.left = `${-over}px`;
  }
  const isOpen = () => element.classList.contains("open");
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation(); // the channel stays open
    open(false);
    button.focus();
  });
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !element.contains(relatedTarget)) open(false);
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (isOpen() && target instanceof Node && !element.contains(target)) open(false);
  });
  return {
    element,
    isOpen,
    fold: (/** @type {boolean} */ folded) => element.classList.toggle("folded", folded),
  };
}

/**
 * A group of controls within a group, with a name of its own.
 * @param {string} text @param {string} term of the glossary @param {Element[]} controls
 */
export function labelled(text, term, ...controls) {
  const label = h("span", { class: "sublabel", text });
  return h("div", { class: "labelled" }, explain(label, term), ...controls);
}

/**
 * The row; as many groups as necessary are folded, those named first in `folding` first.
 * @param {Group[]} groups from left to right @param {Group[]} folding
 */
export function createToolbar(groups, folding) {
  const element = h("div", { class: "toolbar" }, ...groups.map((group) => group.element));
  let width = -1;

  function fit() {
    if (element.hidden || groups.some((group) => group.isOpen())) return;
    width = element.clientWidth;
    for (const group of groups) group.fold(false);
    for (const group of folding) {
      if (element.scrollWidth <= element.clientWidth) return;
      group.fold(true);
    }
  }
  // Whatever a view shows, hides or fills changes the width that is needed.
  new MutationObserver(fit).observe(element, {
    subtree: true,
    childList: true,
    characterData: true,
    attributeFilter: ["hidden"],
  });
  new ResizeObserver(() => element.clientWidth !== width && fit()).observe(element);
  void document.fonts.ready.then(fit);
  return { element, fit };
}
