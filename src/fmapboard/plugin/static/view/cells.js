// @ts-check
/** Cells of layers × steps: pointer and keyboard go over them, a text says what one is, Enter opens it. */

import * as states from "../model/health_states.js";
import { callName, counted, elided, inWordsOf, runText, short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import * as maps from "../picture/health_map.js";
import { css } from "../server/palettes.js";
import { indexOf, within } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";
import { Painted, Segments, h, say, show } from "./controls.js";

/** @import {Shade, Theme} from "../model/health_states.js" */
/** @import {Box} from "../picture/canvas.js" */
/** @import {Binned, MapLayout} from "../picture/health_map.js" */
/** @import {Pass} from "../server/cache.js" */
/** @import {Health, HealthLayer as Layer} from "../server/health.js" */

/** @typedef {{row: number, column: number}} Cell index of a layer, and of a step */
/** @typedef {{layers: readonly Layer[], steps: readonly number[], run: string}} Grid */

export const HELP =
  "Arrow keys move over layers and steps, Home and End to the first and last step, " +
  "Page up and Page down by ten layers; Enter shows the maps.";

/**
 * @param {import("../app.js").App} app
 * @param {HTMLElement} element that holds the cells, and comes to hold the boxes
 * @param {{grid: () => Grid|null, under: (event: MouseEvent) => Cell|null,
 *   boxOf: (cell: Cell) => Box, lines: (cell: Cell, pass: Pass) => string[],
 *   reveal?: (box: Box) => void}} of what is shown, and said of a cell
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
    const start = layers.findIndex(({ key }) => key === layer);
    const row = within(at ? at.row + rows : start, layers.length);
    at = { row, column: within(at ? at.column + columns : indexOf(steps, step), steps.length) };
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
      const { layers, steps } = of;
      at = { row: within(at.row, layers.length), column: within(at.column, steps.length) };
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

// The map of layers × steps, and what its colours, its hatching and its brightness mean.

const [WIDE, HIGH] = [22, 14];
const DOTTED = "the state of these cells is known, but not the number that brightness shows";

const SHADES = [
  ["range", "Range", "brightness shows the range of values of a layer"],
  ["change", "Change", "brightness shows how much a layer has changed"],
];

/** @param {{app: import("../app.js").App, health: Health, shade: Shade}} props */
export function HealthKey({ app, health, shade }) {
  const table = states.tableOf(health);
  const { lo, hi, text, hasGaps } = table.shading(shade);
  const name = themeName();
  const codes = Object.values(states.CODE).filter(
    (code) => table.present.has(code) || code === states.CODE.FINE,
  );
  const isKnown = Number.isFinite(lo);
  const when = [name, window.devicePixelRatio];
  const ramp = (/** @type {HTMLCanvasElement} */ canvas) => {
    const context = prepare(canvas, 4 * states.LEVELS, 10);
    for (let level = 0; level < states.LEVELS; level += 1) {
      context.fillStyle = css(states.shadeOf(name, states.CODE.FINE, level));
      context.fillRect(4 * level, 0, 4, 10);
    }
  };
  return html`
    <div class="health-key">
      <ul class="states">
        ${codes.reverse().map(
          (code) => html`
            <li key=${code} title=${states.STATES[code].what}>
              <${Painted} paint=${(/** @type {HTMLCanvasElement} */ of) => sample(of, code, name)} of=${when} />
              ${inWordsOf(states.STATES[code].word)}
            </li>
          `,
        )}
        ${
          hasGaps &&
          html`<li key="" title=${DOTTED}>
            <${Painted}
              paint=${(/** @type {HTMLCanvasElement} */ of) => sample(of, states.CODE.FINE, name, true)}
              of=${when} />
            brightness not recorded
          </li>`
        }
      </ul>
      <div class="brightness">
        <span class="label">Brightness</span>
        <${Segments} label="Brightness" options=${SHADES} value=${shade}
          choose=${app.set("shade")} />
        <span class="label">${text}${isKnown ? ", logarithmic:" : ": not recorded"}</span>
        <span class="health-scale" hidden=${!isKnown}>
          <span>≤ ${short(lo, 2)}</span>
          <${Painted} class="health-ramp" role="img"
            aria-label=${`from ${short(lo, 2)} to ${short(hi, 2)}`} paint=${ramp} of=${when} />
          <span>≥ ${short(hi, 2)}</span>
        </span>
      </div>
    </div>
  `;
}

/** A cell of the map. @param {HTMLCanvasElement} canvas @param {number} code @param {Theme} name @param {boolean} unknown */
function sample(canvas, code, name, unknown = false) {
  const context = prepare(canvas, WIDE, HIGH);
  const { width, height } = canvas;
  const image = context.getImageData(0, 0, width, height);
  const cell = {
    codes: Uint8Array.of(code),
    levels: Uint8Array.of(unknown ? states.UNKNOWN_LEVEL : Math.round(0.7 * (states.LEVELS - 1))),
    at: Int32Array.of(0),
  };
  const look = { ...theme(), theme: name, ratio: window.devicePixelRatio || 1 };
  const out = new Uint32Array(image.data.buffer);
  maps.fillCells(out, width, height, { rows: 1, columns: 1 }, cell, look, 0);
  context.putImageData(image, 0, 0);
}

// The map of layers × steps: a canvas, and above it the cell under the pointer or the cursor.

/** @typedef {{health: Health, layout: MapLayout, cells: Binned, shade: Shade}} Drawn */

/** Length of the names of layers, characters. */
const LONGEST = 32;
/** @param {import("../app.js").App} app */
export function createHealthMap(app) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const roledescription = "map of layers and steps";
  const attributes = { class: "health-map", tabindex: "0", role: "application", title: "" };
  const element = h("div", { ...attributes, "aria-roledescription": roledescription }, canvas);
  /** @type {Drawn|null} */
  let drawn = null;
  let before = "";
  const cells = createCells(app, element, {
    grid: () => drawn && drawn.health,
    under(event) {
      if (!drawn) return null;
      const { layout, cells: of } = drawn;
      const box = canvas.getBoundingClientRect();
      const cell = maps.cellAt(layout, event.clientX - box.left, event.clientY - box.top);
      const worst = cell && of.at[cell.row * layout.columns + cell.column];
      if (worst === null) return null;
      return { row: worst % layout.layers, column: Math.floor(worst / layout.layers) };
    },
    boxOf({ row, column }) {
      const { layout } = /** @type {Drawn} */ (drawn);
      const { layers, steps, rows, columns } = layout;
      return maps.boxOf(layout, maps.binOf(row, layers, rows), maps.binOf(column, steps, columns));
    },
    lines({ row, column }, pass) {
      const { health, layout, shade } = /** @type {Drawn} */ (drawn);
      const { layers, rows } = layout;
      const index = column * layers + row;
      const known = states.numbersOf(app.source.cache, pass, health, index);
      const bin = maps.binOf(row, layers, rows);
      const [from, to] = [bin, bin + 1].map((each) => maps.firstOf(each, layers, rows));
      const worst = `the worst of the ${to - from} layers in this row (${from + 1}–${to})`;
      const lines = states.cellLines(health, index, known, shade);
      return to - from > 1 ? [...lines, worst] : lines;
    },
  });

  /** @param {Health} health @param {Shade} shade @param {number} width CSS px @param {number} height CSS px */
  function draw(health, shade, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const look = { ...theme(), theme: themeName(), ratio };
    const { size } = document.fonts; // a font that has arrived gives the names other widths
    const now = JSON.stringify([shade, width, height, ratio, look.theme, size]);
    if (drawn?.health === health && now === before) return;
    const isOther = drawn?.health.run !== health.run;
    before = now;
    const { worst, shading } = states.tableOf(health);
    const layers = elided(health.layers.map(callName), LONGEST);
    const measure = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { willReadFrequently: true })
    );
    measure.font = look.font;
    const longest = [...layers].sort((a, b) => b.length - a.length).slice(0, 12);
    const names = Math.max(0, ...longest.map((name) => measure.measureText(name).width));
    const { steps } = health;
    const count = { layers: layers.length, steps: steps.length };
    const layout = maps.mapLayout({ ...count, width, height, names });
    const of = maps.binned(layout, health.cells.codes, shading(shade).levels);
    drawn = { health, layout, cells: of, shade };
    const { left, top, width: wide, height: high } = layout;
    element.dataset.plot = JSON.stringify({ left, top, width: wide, height: high });
    const context = prepare(canvas, width, top + high + 2);
    const severe = (/** @type {number} */ layer) =>
      worst[layer] >= states.SEVERE ? inWordsOf(states.STATES[worst[layer]].word) : "";
    maps.paintMap(context, layout, of, { layers, steps, worst, severe }, look);
    const said = `${counted(layers.length, "layer")} × ${counted(steps.length, "step")}`;
    element.setAttribute("aria-label", `${said} of ${runText(health.run)}. ${HELP}`);
    cells.renew(isOther);
  }
  const { said, move, enter } = cells;
  return { element, said, draw, move, enter };
}

/** @returns {Theme} */
export const themeName = () =>
  document.documentElement.dataset.theme === "dark" ? "dark" : "light";
