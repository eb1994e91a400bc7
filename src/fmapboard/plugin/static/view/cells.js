// @ts-check
/**
 * Cells of layers × steps: pointer and keyboard go over them, a text says what one is, Enter opens
 * it.
 */

import * as states from "../model/health_states.js";
import { callName, counted, elided, inWordsOf, runText, short, labelOf } from "../model/words.js";
import { prepare, textWidth, theme } from "../picture/canvas.js";
import * as maps from "../picture/health_map.js";
import { corner, hit } from "../picture/layouts.js";
import { css } from "../server/palettes.js";
import { indexOf, within } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { Painted } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {Theme} from "../model/model.js" */
/** @import {Box} from "../picture/picture.js" */
/** @import {Health, HealthLayer, Pass} from "../server/server.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {Cell, Grid} from "./view.js" */

const HELP =
  "Arrow keys move over layers and steps, Home and End to the first and last step, Page up and " +
  "down by ten layers; Enter shows the maps.";

/**
 * An element that holds cells, with the boxes over them. `grid` is what the cells are of, `lines`
 * is what is said of one, `channelOf` the channel that it shows; a new `layout` takes the
 * pointer's box away.
 * @param {{app: App, grid: Grid|null, layout: object|null, name: string,
 *   label: string, about: string, under: (event: MouseEvent) => Cell|null,
 *   boxOf: (cell: Cell) => Box, lines: (cell: Cell, pass: Pass) => string[],
 *   reveal?: (box: Box) => void, channelOf?: (cell: Cell) => number|null,
 *   holder: {current: HTMLElement|null}, style?: object,
 *   children?: Child, [attribute: string]: unknown}} props
 */
export function Cells({ app, grid, layout, name, label, about, holder, children, ...how }) {
  const { under, boxOf, lines, reveal, channelOf, style, ...attributes } = how;
  const [pointed, point] = useState(/** @type {Cell|null} */ (null));
  /** The keyboard's cell. */
  const [kept, stand] = useState(/** @type {Cell|null} */ (null));
  const [isHere, enter] = useState(false);
  const [note, say] = useState("");
  const [, again] = useState(0);
  const pass = useMemo(() => ({ most: 1, changed: () => again((count) => count + 1) }), []);
  const marks = useRef(/** @type {HTMLElement|null} */ (null));
  const cursor = useRef(/** @type {HTMLElement|null} */ (null));
  const tip = useRef(/** @type {HTMLElement|null} */ (null));
  const { layers, steps } = grid ?? { layers: [], steps: [] };
  const at = grid && kept && cellIn(kept, layers, steps);
  const told = pointed ?? (isHere ? at : null);
  const text = told ? lines(told, pass) : [];
  const spoken = useRef("");
  if (told && !pointed) spoken.current = text.join(". ");

  useLayoutEffect(() => stand(null), [grid?.run]);
  useLayoutEffect(() => point(null), [layout]);
  useLayoutEffect(() => {
    put(marks.current, pointed && boxOf(pointed));
    put(cursor.current, at && boxOf(at));
    if (told && tip.current && holder.current) beside(tip.current, boxOf(told), holder.current);
  });
  useLayoutEffect(() => void (at && reveal?.(boxOf(at))), [at?.row, at?.column]);

  /** @param {number} rows @param {number} columns to move by */
  function move(rows, columns) {
    if (!grid) return;
    const { layer, step } = app.state;
    const start = {
      row: layers.findIndex(({ key }) => key === layer),
      column: indexOf(steps, step),
    };
    const next = at ? { row: at.row + rows, column: at.column + columns } : start;
    holder.current?.focus({ preventScroll: true });
    point(null);
    say("");
    stand(cellIn(next, layers, steps));
  }

  /** Shows the maps of a cell. @param {Cell|null} cell */
  function open(cell) {
    if (!cell || !grid) return;
    const layer = layers[cell.row];
    const asked = { ...layer, run: grid.run, step: steps[cell.column] };
    const isDone = app.overview.go(asked, channelOf?.(cell) ?? null);
    if (!isDone) say(`${callName(layer)}: there are no pictures to show`);
  }
  app.page.cells = { move, enter: () => open(at) };
  return html`
    <div class=${name} tabindex="0" role="application" aria-roledescription=${about}
      aria-label=${`${label}. ${HELP}`} ref=${holder}
      style=${{ ...style, cursor: pointed ? "pointer" : "" }}
      onMouseMove=${(/** @type {MouseEvent} */ event) => point(under(event))}
      onMouseLeave=${() => point(null)}
      onClick=${(/** @type {MouseEvent} */ event) => open(under(event))}
      onFocus=${() => enter(true)} onBlur=${() => enter(false)} ...${attributes}>
      ${children}
      <div class="pointed" hidden=${!pointed} ref=${marks} />
      <div class="cursor" hidden=${!at} ref=${cursor} />
      <div class="tip" aria-hidden="true" hidden=${!told} ref=${tip}>
        ${text.map((line, i) => (i ? html`<span>${line}</span>` : html`<b>${line}</b>`))}
      </div>
    </div>
    <p class="visually-hidden" role="status" aria-live="polite">${note || spoken.current}</p>
  `;
}

/** @param {Cell} cell @param {readonly HealthLayer[]} layers @param {readonly number[]} steps */
function cellIn({ row, column }, layers, steps) {
  return { row: within(row, layers.length), column: within(column, steps.length) };
}

/** @param {HTMLElement|null} mark @param {Box|null} box that it is around */
function put(mark, box) {
  if (!mark || !box) return;
  mark.style.width = `${Math.max(4, box.width) + 2}px`;
  mark.style.height = `${Math.max(4, box.height) + 2}px`;
  mark.style.transform = `translate(${box.left - 1}px, ${box.top - 1}px)`;
}

/**
 * Puts a text beside a box.
 * @param {HTMLElement} tip @param {Box} box @param {HTMLElement} holder
 */
function beside(tip, box, holder) {
  const [wide, high] = [tip.offsetWidth, tip.offsetHeight];
  const right = box.left + box.width + 10;
  const left = right + wide > holder.clientWidth ? Math.max(0, box.left - wide - 10) : right;
  const top = Math.max(0, Math.min(box.top - 8, holder.clientHeight - high));
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}

// The map of layers × steps, and what its colours, its hatching and its brightness mean.

const [WIDE, HIGH] = [22, 14];
const DOTTED = "the range of values of these cells is not known";

/** @param {{health: Health}} props */
export function HealthKey({ health }) {
  const table = states.tableOf(health);
  const { lo, hi, hasGaps } = table.shading;
  const large = states.largeText(health);
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
  const unknown = (/** @type {HTMLCanvasElement} */ canvas) =>
    sample(canvas, states.CODE.FINE, name, true);
  return html`
    <div class="health-key">
      <ul class="states">
        ${codes.reverse().map(
          (code) => html`
            <li key=${code} title=${health.states[code].what}>
              <${Painted} paint=${(/** @type {HTMLCanvasElement} */ of) => sample(of, code, name)}
                of=${when} />
              ${code === states.CODE.LARGE ? large : inWordsOf(health.states[code].word)}
            </li>
          `,
        )}
        ${!table.present.has(states.CODE.LARGE) && large && html`<li>${large}</li>`}
        ${
          hasGaps &&
          html`<li key="" title=${DOTTED}>
            <${Painted}
              paint=${unknown}
              of=${when} />
            shade not recorded
          </li>`
        }
      </ul>
      ${
        isKnown &&
        html`<div class="brightness">
        <span class="label">shade: maximum − minimum, logarithmic</span>
        <span class="health-scale">
          <span>≤ ${short(lo, 2)}</span>
          <${Painted} class="health-ramp" role="img"
            aria-label=${`from ${short(lo, 2)} to ${short(hi, 2)}`} paint=${ramp} of=${when} />
          <span>≥ ${short(hi, 2)}</span>
        </span>
      </div>`
      }
    </div>
  `;
}

/**
 * A cell of the map.
 * @param {HTMLCanvasElement} canvas @param {number} code @param {Theme} name
 * @param {boolean} unknown
 */
function sample(canvas, code, name, unknown = false) {
  const level = unknown ? states.UNKNOWN_LEVEL : Math.round(0.7 * (states.LEVELS - 1));
  const look = { ...theme(), theme: name, ratio: window.devicePixelRatio || 1 };
  maps.paintCell(prepare(canvas, WIDE, HIGH), code, level, { width: WIDE, height: HIGH }, look);
}

// The map of layers × steps: a canvas, and above it the cell under the pointer or the cursor.

/** Length of the names of layers, characters. */
const LONGEST = 32;

/**
 * @param {{app: App, health: Health, width: number,
 *   height: number}} props CSS px
 */
export function HealthMap({ app, health, width, height }) {
  const holder = useRef(/** @type {HTMLElement|null} */ (null));
  const ratio = window.devicePixelRatio || 1;
  const look = { ...theme(), theme: themeName(), ratio };
  const { size } = document.fonts; // a font that has arrived gives the names other widths
  const { layers, steps } = health;
  const { worst, shading } = states.tableOf(health);
  const when = [health, width, height, ratio, look.theme, size];
  const { names, layout, binned } = useMemo(() => {
    const names = elided(layers.map(callName), LONGEST);
    const longest = [...names].sort((a, b) => b.length - a.length).slice(0, 12);
    const widest = Math.max(0, ...longest.map(textWidth));
    const isSevere = worst.some((code) => code >= states.SEVERE);
    const count = { layers: names.length, steps: steps.length, isSevere };
    const layout = maps.mapLayout({ ...count, width, height, names: widest });
    return { names, layout, binned: maps.binned(layout, health.cells.codes, shading.levels) };
  }, when);
  const { left, top, width: wide, height: high, lines: rows, columns } = layout;
  const severe = (/** @type {number} */ layer) => inWordsOf(health.severe[layer] ?? "");
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const where = { top: 0, width, height: top + high + 2, ratio };
    const context = prepare(canvas, width, where.height);
    const labels = steps.map((step) => labelOf(health.step_words, step));
    const texts = { layers: names, steps: labels, worst, severe };
    maps.paintMap(context, layout, binned, texts, where, look);
  };
  const under = (/** @type {MouseEvent} */ event) => {
    const box = /** @type {HTMLElement} */ (holder.current).getBoundingClientRect();
    const at = hit(layout, event.clientX - box.left, event.clientY - box.top);
    if (!at) return null;
    const index = binned.at[at.cell];
    return { row: index % names.length, column: Math.floor(index / names.length) };
  };
  const boxOf = (/** @type {Cell} */ { row, column }) => {
    const line = maps.binOf(row, names.length, rows);
    const cell = line * columns + maps.binOf(column, steps.length, columns);
    return { ...corner(layout, cell), width: layout.cellWidth, height: layout.cellHeight };
  };
  const lines = (/** @type {Cell} */ { row, column }, /** @type {Pass} */ pass) => {
    const index = column * names.length + row;
    const known = states.numbersOf(app.source.cache, pass, health, index);
    const said = states.cellLines(health, index, known);
    const bin = maps.binOf(row, names.length, rows);
    const [from, to] = [bin, bin + 1].map((each) => maps.firstOf(each, names.length, rows));
    if (to - from < 2) return said;
    return [...said, `the worst of the ${to - from} layers in this row (${from + 1}–${to})`];
  };
  const counts = `${counted(names.length, "layer")} × ${counted(steps.length, "step")}`;
  return html`
    <${Cells} name="health-map" about="map of layers and steps" title=""
      label=${`${counts} of ${runText(health.run)}`} grid=${health}
      data-plot=${JSON.stringify({ left, top, width: wide, height: high })}
      ...${{ app, holder, layout, under, boxOf, lines }}>
      <${Painted} aria-hidden="true" paint=${paint} of=${when} />
    <//>
  `;
}

/** @returns {Theme} */
export const themeName = () =>
  document.documentElement.dataset.theme === "dark" ? "dark" : "light";
