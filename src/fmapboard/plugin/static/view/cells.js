// @ts-check
/** Cells of layers × steps: pointer and keyboard go over them, a text says what one is, Enter opens it. */

import { callName } from "../model/words.js";
import { indexOf } from "../server/steps.js";
import { h, say, show } from "./dom.js";

/** @typedef {{left: number, top: number, width: number, height: number}} Box CSS px in the element */
/** @typedef {{row: number, column: number}} Cell index of a layer, and of a step */

/** @typedef {import("../server/health.js").HealthLayer} Layer */
/** @typedef {{layers: readonly Layer[], steps: readonly number[], run: string}} Grid */

export const HELP =
  "Arrow keys move over layers and steps, Home and End to the first and last step, " +
  "Page up and Page down by ten layers; Enter shows the maps.";

/**
 * @param {import("../app.js").App} app
 * @param {HTMLElement} element that holds the cells, and comes to hold the boxes
 * @param {object} of
 * @param {() => Grid|null} of.grid what is shown @param {(event: MouseEvent) => Cell|null} of.under
 * @param {(cell: Cell) => Box} of.boxOf
 * @param {(cell: Cell, pass: import("../server/cache.js").Pass) => string[]} of.lines about a cell
 * @param {(box: Box) => void} [of.reveal] brings a box into sight
 */
export function createCells(app, element, { grid, under, boxOf, lines, reveal }) {
  const pointed = h("div", { class: "pointed", hidden: true });
  const cursor = h("div", { class: "cursor", hidden: true });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const said = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  element.append(pointed, cursor, tip);
  /** The keyboard's cell. @type {Cell|null} */
  let at = null;
  /** The cell that the text is on, and whether the keyboard is there. @type {[Cell, boolean]|null} */
  let told = null;
  const pass = { most: 1, changed: () => void (told && !tip.hidden && tell(...told)) };

  /** Shows a text beside a cell, and reads it out if the keyboard is there. @param {Cell} cell @param {boolean} aloud */
  function tell(cell, aloud) {
    told = [cell, aloud];
    const [text, box] = [lines(cell, pass), boxOf(cell)];
    if (aloud) say(said, text.join(". "));
    tip.replaceChildren(...text.map((each, i) => h(i ? "span" : "b", { text: each })));
    show(tip, true);
    const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
    const right = box.left + box.width + 10;
    const left = right + wide > element.clientWidth ? Math.max(0, box.left - wide - 10) : right;
    const top = Math.max(0, Math.min(box.top - 8, element.clientHeight - high));
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  /** @param {HTMLElement} mark @param {Cell|null} cell null to hide the mark */
  function put(mark, cell) {
    show(mark, Boolean(cell));
    if (!cell) return;
    const { left, top, width, height } = boxOf(cell);
    mark.style.width = `${Math.max(4, width) + 2}px`;
    mark.style.height = `${Math.max(4, height) + 2}px`;
    mark.style.transform = `translate(${left - 1}px, ${top - 1}px)`;
  }

  /** @param {Cell|null} cell under the pointer */
  function point(cell) {
    put(pointed, cell);
    element.style.cursor = cell ? "pointer" : "";
    if (cell) tell(cell, false);
    else show(tip, false);
  }

  /** Marks the keyboard's cell, and says what it is if the keyboard is there. */
  function stand() {
    put(cursor, at);
    if (at && document.activeElement === element) tell(at, true);
  }

  /** @param {number} rows @param {number} columns to move by */
  function move(rows, columns) {
    const of = grid();
    if (!of) return;
    const { layers, steps } = of;
    const { layer, step } = app.state;
    const start = {
      row: layers.findIndex(({ key }) => key === layer),
      column: indexOf(steps, step),
    };
    const { row, column } = at ? { row: at.row + rows, column: at.column + columns } : start;
    at = {
      row: Math.max(0, Math.min(layers.length - 1, row)),
      column: Math.max(0, Math.min(steps.length - 1, column)),
    };
    if (document.activeElement !== element) element.focus({ preventScroll: true });
    stand();
    reveal?.(boxOf(at));
  }

  /** Shows the maps of a cell. @param {Cell|null} cell */
  function open(cell) {
    const of = grid();
    if (!cell || !of) return;
    const layer = of.layers[cell.row];
    const done = app.overview.go({ ...layer, run: of.run, step: of.steps[cell.column] });
    if (!done) say(said, `${callName(layer)}: there are no pictures to show`);
  }

  /** After a new layout: the keyboard stays where it is, unless another run is shown. @param {boolean} isOther */
  function renew(isOther) {
    const of = grid();
    if (isOther || !of) at = null;
    else if (at) {
      const [row, column] = [of.layers.length - 1, of.steps.length - 1];
      at = { row: Math.min(at.row, row), column: Math.min(at.column, column) };
    }
    point(null);
    stand();
  }
  element.addEventListener("mousemove", (event) => point(under(event)));
  element.addEventListener("mouseleave", () => {
    point(null);
    stand();
  });
  element.addEventListener("click", (event) => open(under(event)));
  element.addEventListener("focus", stand);
  element.addEventListener("blur", () => show(tip, false));
  return { said, move, renew, enter: () => open(at) };
}
