// @ts-check
/** Boxes on a canvas of cells: of the one under the pointer and the keyboard's, and a text on it. */

import {
  CODE,
  LEVELS,
  SEVERE,
  STATES,
  UNKNOWN_LEVEL,
  cellLines,
  numbersOf,
  shadeOf,
  tableOf,
} from "../model/health_states.js";
import { callName, counted, elided, inWordsOf, runText, short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import {
  binOf,
  binned,
  boxOf,
  cellAt,
  fillCells,
  firstOf,
  mapLayout,
  paintMap,
} from "../picture/health_map.js";
import { css } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";
import { Painted, Segments } from "./controls.js";
import { h, say, show } from "./dom.js";

// Boxes on a canvas of cells: of the one under the pointer and the keyboard's, and a text on it.

/** @typedef {{left: number, top: number, width: number, height: number}} CellBox CSS px in the element */

/** @param {HTMLElement} element that holds the canvas, and comes to hold the boxes */
export function createCellTip(element) {
  const pointed = h("div", { class: "pointed", hidden: true });
  const cursor = h("div", { class: "cursor", hidden: true });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const said = h("p", { class: "visually-hidden", role: "status", "aria-live": "polite" });
  element.append(pointed, cursor, tip);

  /**
   * Shows lines beside a box, and reads them out if the keyboard is there.
   * @param {readonly string[]} lines @param {CellBox} box @param {boolean} aloud
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

  /** @param {CellBox|null} box null for no cell under the pointer */
  function point(box) {
    show(pointed, Boolean(box));
    element.style.cursor = box ? "pointer" : "";
    if (box) put(pointed, box);
    else show(tip, false);
  }

  /** @param {CellBox|null} box of the keyboard's cell */
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

/** @param {HTMLElement} box @param {CellBox} where */
function put(box, { left, top, width, height }) {
  const [w, h] = [Math.max(4, width), Math.max(4, height)];
  box.style.width = `${w + 2}px`;
  box.style.height = `${h + 2}px`;
  box.style.transform = `translate(${left - 1}px, ${top - 1}px)`;
}

// What the colours, the hatching and the brightness of the map mean.

/** @typedef {import("../model/health_states.js").Theme} Theme */
/** @typedef {import("../model/health_states.js").Shade} Shade */

const [WIDE, HIGH] = [22, 14];
const DOTTED = "the state of these cells is known, but not the number that brightness shows";

const SHADES = [
  ["range", "Range", "brightness shows the range of values of a layer"],
  ["change", "Change", "brightness shows how much a layer has changed"],
];

/** @param {{app: import("../app.js").App, health: Health, shade: Shade}} props */
export function HealthKey({ app, health, shade }) {
  const table = tableOf(health);
  const { lo, hi, text, hasGaps } = table.shading(shade);
  const name = themeName();
  const codes = Object.values(CODE).filter((code) => table.present.has(code) || code === CODE.FINE);
  const isKnown = Number.isFinite(lo);
  const when = [name, window.devicePixelRatio];
  const ramp = (/** @type {HTMLCanvasElement} */ canvas) => {
    const context = prepare(canvas, 4 * LEVELS, 10);
    for (let level = 0; level < LEVELS; level += 1) {
      context.fillStyle = css(shadeOf(name, CODE.FINE, level));
      context.fillRect(4 * level, 0, 4, 10);
    }
  };
  return html`
    <div class="health-key">
      <ul class="states">
        ${codes.reverse().map(
          (code) => html`
            <li key=${code} title=${STATES[code].what}>
              <${Painted} paint=${(/** @type {HTMLCanvasElement} */ of) => sample(of, code, name)} of=${when} />
              ${inWordsOf(STATES[code].word)}
            </li>
          `,
        )}
        ${
          hasGaps &&
          html`<li key="" title=${DOTTED}>
            <${Painted}
              paint=${(/** @type {HTMLCanvasElement} */ of) => sample(of, CODE.FINE, name, true)}
              of=${when}
            />
            brightness not recorded
          </li>`
        }
      </ul>
      <div class="brightness">
        <span class="label">Brightness</span>
        <${Segments}
          label="Brightness"
          options=${SHADES}
          value=${shade}
          choose=${(/** @type {Shade} */ of) => app.update({ shade: of })}
        />
        <span class="label">${text}${isKnown ? ", logarithmic:" : ": not recorded"}</span>
        <span class="health-scale" hidden=${!isKnown}>
          <span>≤ ${short(lo, 2)}</span>
          <${Painted}
            class="health-ramp"
            role="img"
            aria-label=${`from ${short(lo, 2)} to ${short(hi, 2)}`}
            paint=${ramp}
            of=${when}
          />
          <span>≥ ${short(hi, 2)}</span>
        </span>
      </div>
    </div>
  `;
}

/**
 * A cell of the map.
 * @param {HTMLCanvasElement} canvas @param {number} code @param {Theme} name
 * @param {boolean} unknown of unknown brightness
 */
function sample(canvas, code, name, unknown = false) {
  const context = prepare(canvas, WIDE, HIGH);
  const { width, height } = canvas;
  const image = context.getImageData(0, 0, width, height);
  const cell = {
    codes: Uint8Array.of(code),
    levels: Uint8Array.of(unknown ? UNKNOWN_LEVEL : Math.round(0.7 * (LEVELS - 1))),
    at: Int32Array.of(0),
  };
  const look = { ...theme(), theme: name, ratio: window.devicePixelRatio || 1 };
  const out = new Uint32Array(image.data.buffer);
  fillCells(out, width, height, { rows: 1, columns: 1 }, cell, look, 0);
  context.putImageData(image, 0, 0);
}

// The map of layers × steps: a canvas, and above it the cell under the pointer or the cursor.

/** @typedef {import("../server/health.js").Health} Health */
/** @typedef {import("../picture/health_map.js").Binned} Binned */
/** @typedef {import("../picture/health_map.js").MapLayout} MapLayout */
/** @typedef {ReturnType<typeof boxOf>} Box */

/**
 * @typedef {object} Drawn
 * @property {Health} health
 * @property {Uint8Array} codes [steps, layers]
 * @property {MapLayout} layout
 * @property {Binned} cells
 * @property {Map<string, string>} labels of layers by key
 * @property {import("../model/health_states.js").Shade} shade
 */

/** Length of the names of layers, characters. */
const LONGEST = 32;
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
  const changed = () => void (told && tip.isOpen() && tell(...told));
  const { cache } = app.source;
  const pass = { most: 1, changed };

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
    const known = numbersOf(cache, pass, health, index);
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
   * @param {Health} health @param {import("../model/health_states.js").Shade} shade
   * @param {number} width CSS px @param {number} height CSS px
   */
  function draw(health, shade, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const look = { ...theme(), theme: themeName(), ratio };
    const { size } = document.fonts; // a font that has arrived gives the names other widths
    const now = JSON.stringify([shade, width, height, ratio, look.theme, size]);
    if (drawn?.health === health && now === before) return;
    if (drawn?.health !== health) {
      if (drawn?.health.run !== health.run) at = null;
      else if (at) at.step = Math.min(at.step, health.steps.length - 1);
    }
    before = now;
    const { codes, worst, shading } = tableOf(health);
    const layers = elided(health.layers.map(callName), LONGEST);
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
