// @ts-check
/** The map of layers × steps: a canvas, and above it the cell under the pointer or the cursor. */

import { CellNumbers } from "../data/cell_numbers.js";
import { counted } from "../draw/number_text.js";
import { prepare, theme } from "../draw/theme.js";
import { binOf, binned, boxOf, cellAt, firstOf, mapLayout } from "../draw/health_layout.js";
import { paintMap } from "../draw/health_paint.js";
import { callName } from "../state/call_names.js";
import { cellLines } from "../state/cell_text.js";
import { SEVERE, STATES, tableOf } from "../state/health_states.js";
import { indexOf } from "../state/steps.js";
import { createCellTip } from "./cell_tip.js";
import { h, say } from "./dom.js";
import { inWordsOf } from "../state/dead_word.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../data/health.js").Health} Health */
/** @typedef {import("../draw/health_layout.js").Binned} Binned */
/** @typedef {import("../draw/health_layout.js").MapLayout} MapLayout */
/** @typedef {ReturnType<typeof boxOf>} Box */

/**
 * @typedef {object} Drawn
 * @property {Health} health
 * @property {Uint8Array} codes [steps, layers]
 * @property {MapLayout} layout
 * @property {Binned} cells
 * @property {Map<string, string>} labels of layers by key
 * @property {import("../state/health_states.js").Shade} shade
 */

const HELP =
  "Arrow keys move over layers and steps, Home and End to the first and last step, " +
  "Page up and Page down by ten layers; Enter shows the maps.";

/** @param {import("../app.js").App} app */
export function createHealthMap(app) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const element = h(
    "div",
    {
      class: "health-map",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map of layers and steps",
      title: "",
    },
    canvas,
  );
  const tip = createCellTip(element);
  /** @type {Drawn|null} */
  let drawn = null;
  let before = "";
  /** Index in [steps, layers] of the keyboard's cell. @type {{layer: number, step: number}|null} */
  let at = null;
  /** What the tip is on, and whether the keyboard is there. @type {[number, Box, boolean]|null} */
  let told = null;
  const numbers = new CellNumbers(() => {
    if (told && tip.isOpen()) tell(...told);
  });

  element.addEventListener("mousemove", (event) => point(event));
  element.addEventListener("mouseleave", () => {
    tip.point(null);
    if (at && document.activeElement === element) cursorAt();
  });
  element.addEventListener("click", (event) => {
    const cell = under(event);
    if (cell) open(cell.at);
  });
  element.addEventListener("focus", () => {
    if (at) cursorAt();
  });
  element.addEventListener("blur", tip.close);

  /** The worst member of the cell under the pointer. @param {MouseEvent} event */
  function under(event) {
    if (!drawn) return null;
    const box = canvas.getBoundingClientRect();
    const cell = cellAt(drawn.layout, event.clientX - box.left, event.clientY - box.top);
    if (!cell) return null;
    return { ...cell, at: drawn.cells.at[cell.row * drawn.layout.columns + cell.column] };
  }

  /** @param {MouseEvent} event */
  function point(event) {
    const cell = under(event);
    const box = cell && drawn ? boxOf(drawn.layout, cell.row, cell.column) : null;
    tip.point(box);
    if (cell && box) tell(cell.at, box, false);
  }

  /**
   * Shows the text on a cell beside its box, and reads it out if the keyboard is there.
   * @param {number} index @param {Box} box @param {boolean} aloud
   */
  function tell(index, box, aloud) {
    if (!drawn) return;
    told = [index, box, aloud];
    const { health, codes, layout, labels, shade } = drawn;
    const known = numbers.of(health, index);
    const labelOf = (/** @type {string} */ key) => labels.get(key) ?? "";
    const lines = cellLines(health, codes, index, labelOf, known, shade);
    const row = binOf(index % layout.layers, layout.layers, layout.rows);
    const [from, to] = [row, row + 1].map((each) => firstOf(each, layout.layers, layout.rows));
    const binnedText =
      to - from > 1 ? `the worst of the ${to - from} layers in this row (${from + 1}–${to})` : "";
    tip.tell([...lines, binnedText].filter(Boolean), box, aloud);
  }

  /** Places the box of the keyboard's cell, and says what it is. */
  function cursorAt() {
    if (!drawn || !at) return;
    const { layout } = drawn;
    const row = binOf(at.layer, layout.layers, layout.rows);
    const column = binOf(at.step, layout.steps, layout.columns);
    const box = boxOf(layout, row, column);
    tip.stand(box);
    tell(at.step * layout.layers + at.layer, box, true);
  }

  /** @param {number} layers @param {number} steps to move by */
  function move(layers, steps) {
    if (!drawn) return;
    const { layout, health } = drawn;
    const clamp = (/** @type {number} */ to, /** @type {number} */ count) =>
      Math.max(0, Math.min(count - 1, to));
    if (at) {
      at = {
        layer: clamp(at.layer + layers, layout.layers),
        step: clamp(at.step + steps, layout.steps),
      };
    } else {
      const { layer, step } = app.state;
      at = {
        layer: Math.max(
          0,
          health.layers.findIndex((each) => each.key === layer),
        ),
        step: Math.max(0, indexOf(health.steps, step)),
      };
    }
    if (document.activeElement !== element) element.focus();
    cursorAt();
  }

  /** Shows the maps of a cell. @param {number} index in [steps, layers] */
  function open(index) {
    if (!drawn) return;
    const { health } = drawn;
    const layer = health.layers[index % health.layers.length];
    const step = health.steps[Math.floor(index / health.layers.length)];
    const done = app.overview.go({ ...layer, run: health.run, step });
    if (!done) say(tip.said, `${callName(layer)}: there are no pictures to show`);
  }

  function enter() {
    if (drawn && at) open(at.step * drawn.layout.layers + at.layer);
  }

  /**
   * Draws the map if anything in it has changed.
   * @param {Health} health @param {import("../state/health_states.js").Shade} shade
   * @param {number} width CSS px @param {number} height CSS px
   */
  function draw(health, shade, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const look = { ...theme(), theme: themeName(), ratio };
    const { size } = document.fonts; // a font that has arrived gives the names other widths
    const now = JSON.stringify([shade, width, height, ratio, look.theme, size]);
    if (drawn?.health === health && now === before) return;
    if (drawn?.health !== health) {
      numbers.retry();
      if (drawn?.health.run !== health.run) at = null;
      else if (at) at.step = Math.min(at.step, health.steps.length - 1);
    }
    before = now;
    const { codes, worst, shading } = tableOf(health);
    const layers = health.layers.map(callName);
    const measure = /** @type {CanvasRenderingContext2D} */ (
      canvas.getContext("2d", { willReadFrequently: true })
    );
    measure.font = look.font;
    const longest = [...layers].sort((a, b) => b.length - a.length).slice(0, 12);
    const layout = mapLayout({
      layers: layers.length,
      steps: health.steps.length,
      width,
      height,
      names: Math.max(0, ...longest.map((name) => measure.measureText(name).width)),
    });
    const cells = binned(layout, codes, shading(shade).levels);
    const labels = new Map(
      health.layers.flatMap((each) => (each.key === null ? [] : [[each.key, callName(each)]])),
    );
    drawn = { health, codes, layout, cells, labels, shade };
    const { left, top } = layout;
    element.dataset.plot = JSON.stringify({
      left,
      top,
      width: layout.width,
      height: layout.height,
    });
    const context = prepare(canvas, width, layout.top + layout.height + 2);
    paintMap(
      context,
      layout,
      cells,
      {
        layers,
        steps: health.steps,
        worst,
        severe: (layer) => (worst[layer] >= SEVERE ? inWordsOf(STATES[worst[layer]].word) : ""),
      },
      look,
    );
    element.setAttribute(
      "aria-label",
      `${counted(layers.length, "layer")} × ${counted(health.steps.length, "step")} of ${runText(health.run)}. ${HELP}`,
    );
    tip.point(null);
    if (!at) tip.stand(null);
    else if (document.activeElement === element) cursorAt();
  }
  return { element, said: tip.said, draw, move, enter };
}

/** @returns {"light"|"dark"} */
function themeName() {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}
