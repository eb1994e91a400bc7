// @ts-check
/** Boxes on a canvas of cells: of the one under the pointer and the keyboard's, and a text on it. */

import { h, say, show } from "./dom.js";

/** @typedef {{left: number, top: number, width: number, height: number}} Box CSS px in the element */

/** @param {HTMLElement} element that holds the canvas, and comes to hold the boxes */
export function createCellTip(element) {
  const pointed = h("div", { class: "pointed", hidden: true });
  const cursor = h("div", { class: "cursor", hidden: true });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const said = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  element.append(pointed, cursor, tip);

  /**
   * Shows lines beside a box, and reads them out if the keyboard is there.
   * @param {readonly string[]} lines @param {Box} box @param {boolean} aloud
   */
  function tell(lines, box, aloud) {
    if (aloud) say(said, lines.join(". "));
    tip.replaceChildren(...lines.map((text, i) => h(i ? "span" : "b", { text })));
    show(tip, true);
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    const right = box.left + box.width + 10;
    const left = right + wide > element.clientWidth ? Math.max(0, box.left - wide - 10) : right;
    const top = Math.max(0, Math.min(box.top - 8, element.clientHeight - high));
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  /** @param {Box|null} box null for no cell under the pointer */
  function point(box) {
    show(pointed, Boolean(box));
    element.style.cursor = box ? "pointer" : "";
    if (box) put(pointed, box);
    else show(tip, false);
  }

  /** @param {Box|null} box of the keyboard's cell */
  function stand(box) {
    show(cursor, Boolean(box));
    if (box) put(cursor, box);
  }
  return {
    ...{ said, tell, point, stand },
    isOpen: () => !tip.hidden,
    close: () => show(tip, false),
  };
}

/** @param {HTMLElement} box @param {Box} where */
function put(box, { left, top, width, height }) {
  const [w, h] = [Math.max(4, width), Math.max(4, height)];
  box.style.width = `${w + 2}px`;
  box.style.height = `${h + 2}px`;
  box.style.transform = `translate(${left - 1}px, ${top - 1}px)`;
}
