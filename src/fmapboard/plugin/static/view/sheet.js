// @ts-check
/** The contact sheet: a row per layer, a column per step, in each cell one channel as a picture. */

import { middle } from "../model/compare.js";
import { KINDS, cellLines, numbersOf } from "../model/health_states.js";
import * as words from "../model/words.js";
import { inPalette } from "../model/overview.js";
import { prepare, theme } from "../picture/canvas.js";
import { GAP, paintPage, sheetLayout } from "../picture/sheet.js";
import { keptFrom } from "../server/steps.js";
import { HELP, createCells, themeName } from "./cells.js";
import { h, reveal, say, show } from "./controls.js";

/** @import {SheetLayout} from "../picture/sheet.js" */
/** @import {Health, HealthLayer, SheetInput, SheetPage} from "../server/health.js" */

/** @typedef {{element: HTMLElement, painted: string, page: SheetPage|null}} Placed `painted` is what it was painted from */

/**
 * What is laid out: layers, their indices in `health.layers`, their names, and the keys of each page.
 * @typedef {{health: Health, layers: HealthLayer[], indices: number[], names: string[],
 *   layout: SheetLayout, keys: string[][], pages: Placed[]}} Drawn
 */

/** Part of the page's height that is left for the rows: verdict and steps are above. */
const ROOM = 0.85;
/** Mean width of a character, CSS px, and length of the names of images above the columns. */
const [CHARACTER, IMAGE] = [7, 12];
/** Names at the left have no room for a sentence from here down, CSS px. */
const NARROW = 150;
/** @param {import("../app.js").App} app */
export function createSheet(app) {
  const thumbnail = h("canvas", { "aria-hidden": "true" });
  const corner = h("span", { class: "sheet-input-text" });
  const steps = h("div", { class: "sheet-steps" });
  const top = h("div", { class: "sheet-corner" }, thumbnail, corner);
  const head = h("div", { class: "sheet-head" }, top, steps);
  const inputs = h("canvas", { "aria-hidden": "true" });
  const inputText = h("span", { class: "sheet-note" });
  const names = h("div", { class: "sheet-names" }, h("b", { text: "input" }), inputText);
  const inputRow = h("div", { class: "sheet-page" }, names, inputs);
  const body = h("div");
  const attributes = { class: "contact-sheet", tabindex: "0", role: "application" };
  const roledescription = { "aria-roledescription": "contact sheet of layers and steps" };
  const element = h("div", { ...attributes, ...roledescription }, head, inputRow, body);
  /** What is on the page, and what is to be there. @type {Drawn|null} */
  let drawn = null;
  /** @type {Drawn|null} */
  let next = null;
  let before = "";
  /** @type {{input: SheetInput, now: string}|null} */
  let shownInput = null;
  const cells = createCells(app, element, {
    grid: () => drawn && { layers: drawn.layers, steps: drawn.layout.steps, run: drawn.health.run },
    under({ clientX, clientY }) {
      if (!drawn) return null;
      const { layout, layers } = drawn;
      const box = body.getBoundingClientRect();
      const pitch = layout.side + GAP;
      const row = Math.floor((clientY - box.top) / pitch);
      const column = Math.floor((clientX - box.left - layout.names) / pitch);
      const isIn = layers[row] !== undefined && layout.steps[column] !== undefined;
      return isIn ? { row, column } : null;
    },
    boxOf({ row, column }) {
      const { side, names: left } = /** @type {Drawn} */ (drawn).layout;
      const pitch = side + GAP;
      return {
        left: body.offsetLeft + left + column * pitch + GAP / 2,
        top: body.offsetTop + row * pitch + GAP / 2,
        ...{ width: side, height: side },
      };
    },
    lines({ row, column }, pass) {
      const { health, indices, layout, pages } = /** @type {Drawn} */ (drawn);
      const step = health.steps.indexOf(layout.steps[column]);
      const index = step * health.layers.length + indices[row];
      const numbers = numbersOf(app.source.cache, pass, health, index);
      const lines = cellLines(health, index, numbers);
      const { page } = pages[Math.floor(row / layout.rows)];
      const own = page?.rows[row % layout.rows];
      const i = (row % layout.rows) * layout.steps.length + column;
      const [lo, hi] = [page?.lo[i] ?? NaN, page?.hi[i] ?? NaN];
      const range = Number.isNaN(lo) ? "not drawn here" : `${words.short(lo)} … ${words.short(hi)}`;
      if (own?.channel != null) lines.push(`channel ${own.channel}: ${range}`);
      return own?.why ? [...lines, own.why] : lines;
    },
    reveal({ top: above, height }) {
      const scroller = /** @type {HTMLElement} */ (element.parentElement);
      const from = element.offsetTop + above;
      reveal(scroller, "Top", from - head.offsetHeight, from + height + GAP);
    },
  });

  /**
   * Asks for the pictures in sight and a screen more, and paints those that are known: true if all in sight are.
   * A new layout of the same run takes the place of the old one once it is known.
   * @param {import("../model/front.js").Front} front with `health` @param {HTMLElement} scroller
   */
  function draw(front, scroller) {
    const health = /** @type {Health} */ (front.health);
    const [width, height] = [element.clientWidth, Math.round(ROOM * scroller.clientHeight)];
    const onsets = front.lines
      .filter(({ run }) => run === health.run)
      .map(({ finding }) => keptFrom(health.steps, finding.since));
    const now = JSON.stringify([health.run, health.steps, width, height, onsets]);
    if (next?.health !== health || now !== before) next = laid(health, width, height, onsets);
    before = now;
    const ratio = window.devicePixelRatio || 1;
    const { layout, keys, layers } = next;
    const cell = Math.max(8, Math.min(256, Math.round(layout.side * ratio)));
    const asked = { run: health.run, name: layers[0]?.name ?? "", steps: layout.steps, cell };
    const input = front.sheet.input(asked);
    const pitch = layout.side + GAP;
    const mayDiffer = input.value ? input.value.same === false : !input.error;
    const room = inputRow.hidden && mayDiffer ? pitch : 0;
    const top = element.offsetTop + body.offsetTop - scroller.scrollTop + room;
    const placeOf = (/** @type {number} */ i) => top + i * layout.rows * pitch;
    const isWithin = (/** @type {number} */ i, /** @type {number} */ more) =>
      placeOf(i) < scroller.clientHeight * (1 + more) &&
      placeOf(i + 1) > -more * scroller.clientHeight;
    const inSight = keys.flatMap((of, i) =>
      isWithin(i, 0) ? [{ i, entry: front.sheet.page(asked, of) }] : [],
    );
    const isKnown = [input, ...inSight.map(({ entry }) => entry)].every(
      (each) => each.value ?? each.error,
    );
    if (drawn !== next && (isKnown || drawn?.health.run !== health.run)) adopt(next, onsets);
    if (drawn !== next) return false;
    const isSame = input.value?.same !== false;
    show(inputRow, !isSame);
    for (const each of [thumbnail, corner]) show(each, Boolean(input.value) && isSame);
    if (input.value) drawInput(input.value, layout, words.kindOf(health.step_words));
    for (const { i, entry } of inSight) put(i, entry);
    keys.forEach((of, i) => {
      if (isKnown && isWithin(i, 1) && !isWithin(i, 0)) put(i, front.sheet.page(asked, of));
      else if (!isWithin(i, 3)) clear(i);
    });
    return isKnown;
  }

  /** Shows what is known of a page. @param {number} i @param {import("../server/cache.js").Entry<SheetPage>} entry */
  function put(i, { value, error }) {
    if (!drawn) return;
    if (value) paint(drawn, i, value);
    else if (error) say(drawn.pages[i].element, error.message);
  }

  /** Frees the memory of a page that is far out of sight. @param {number} i */
  function clear(i) {
    const held = drawn?.pages[i];
    if (!drawn || !held?.painted) return;
    held.element.replaceChildren();
    drawn.pages[i] = { ...held, painted: "", page: null };
  }

  /** @param {Health} health @param {number} width @param {number} height @param {readonly number[]} onsets */
  function laid(health, width, height, onsets) {
    const indices = [...health.layers.keys()].filter((i) => isShown(health.layers[i]));
    const layers = indices.map((i) => health.layers[i]);
    const columns = app.report ? (app.model?.steps ?? []) : health.steps; // it has pictures of few
    const layout = sheetLayout({ layers: layers.length, steps: columns, onsets, width, height });
    const keys = [];
    for (let i = 0; i < layers.length; i += layout.rows) {
      keys.push(layers.slice(i, i + layout.rows).map((each) => each.key ?? ""));
    }
    const pages = keys.map((of) => {
      const made = h("div", { class: "sheet-page" });
      made.style.height = `${of.length * (layout.side + GAP)}px`;
      return { element: made, painted: "", page: null };
    });
    const names = words.elided(layers.map(words.callName), Math.floor(layout.names / CHARACTER));
    return { health, layers, indices, layout, keys, pages, names };
  }

  /** Puts a layout on the page. @param {Drawn} of @param {readonly number[]} onsets */
  function adopt(of, onsets) {
    const { health, layers, layout, pages } = of;
    const isOther = drawn?.health.run !== health.run;
    drawn = of;
    body.replaceChildren(...pages.map((each) => each.element));
    const pitch = layout.side + GAP;
    element.style.setProperty("--names", `${layout.names}px`);
    element.style.setProperty("--pitch", `${pitch}px`);
    cells.renew(isOther);
    steps.replaceChildren(...stepNames(health, layout.steps, onsets, pitch));
    const size = `${words.counted(layers.length, "layer")} × ${words.counted(layout.steps.length, "step")}`;
    element.setAttribute("aria-label", `${size} of ${words.runText(health.run)}. ${HELP}`);
  }

  /** @param {Drawn} of @param {number} i @param {SheetPage} page */
  function paint({ health, layout, pages, layers, indices, names: shortest }, i, page) {
    const ratio = window.devicePixelRatio || 1;
    const { colours } = inPalette(app.state);
    const now = `${themeName()} ${colours} ${ratio} ${words.deadWord()}`;
    if (pages[i].painted === now && pages[i].page === page) return;
    pages[i] = { ...pages[i], painted: now, page };
    const pitch = layout.side + GAP;
    const first = i * layout.rows;
    const canvas = h("canvas", { "aria-hidden": "true" });
    const context = prepare(canvas, layout.steps.length * pitch, page.rows.length * pitch);
    const columns = layout.steps.map((step) => health.steps.indexOf(step));
    const stateOf = (/** @type {number} */ row, /** @type {number} */ column) => {
      const code =
        health.cells.codes[columns[column] * health.layers.length + indices[first + row]];
      return KINDS[code] ?? null;
    };
    paintPage(context, page, layout.side, colours, stateOf, { ...theme(), ratio });
    const names = page.rows.map(({ channel }, row) =>
      nameOf(layers[first + row], shortest[first + row], channel, pitch),
    );
    pages[i].element.replaceChildren(h("div", { class: "sheet-names" }, ...names), canvas);
  }

  /** One image, or one per column. @param {SheetInput} input @param {SheetLayout} layout @param {import("../model/words.js").Unit} unit */
  function drawInput(input, layout, unit) {
    const ratio = window.devicePixelRatio || 1;
    const now = `${ratio} ${unit}`;
    if (shownInput?.input === input && shownInput.now === now) return;
    shownInput = { input, now };
    const { same, cell, width, height, kept, pixels } = input;
    const pitch = layout.side + GAP;
    const isRow = same === false;
    const columns = isRow ? kept.map((_, i) => i) : [kept.indexOf(true)];
    const context = isRow
      ? prepare(inputs, kept.length * pitch, pitch)
      : prepare(thumbnail, width / ratio, height / ratio);
    for (const i of columns.filter((each) => kept[each])) {
      const image = context.createImageData(width, height);
      const out = new Uint32Array(image.data.buffer);
      for (let p = 0; p < out.length; p += 1) {
        const at = 3 * (i * cell * cell + Math.floor(p / width) * cell + (p % width));
        out[p] = (255 << 24) | (pixels[at + 2] << 16) | (pixels[at + 1] << 8) | pixels[at];
      }
      const x = isRow ? Math.round((i * pitch + GAP / 2) * ratio) + ((cell - width) >> 1) : 0;
      context.putImageData(image, x, isRow ? Math.round((GAP / 2) * ratio) : 0);
    }
    say(inputText, unit === "image" ? "" : "another image at each step; probe= keeps one");
    const always = layout.names < NARROW ? "same input" : "input, the same at every step";
    say(corner, same === null ? "input" : always);
  }
  const { said, move, enter } = cells;
  return { element, said, draw, move, enter };
}

/**
 * Numbers or names of images above the columns, as far as they have room; those of onsets always.
 * @param {Health} health @param {readonly number[]} columns @param {readonly number[]} onsets @param {number} pitch
 */
function stepNames(health, columns, onsets, pitch) {
  const first = new Set(onsets);
  const longest = Math.max(...columns.map((step) => words.stepText(step).length)) * 8 + 8;
  const every = Math.ceil(longest / pitch);
  return columns.map((step, i) => {
    const [number, image] = words.labelOf(health.step_words, step);
    const isOnset = first.has(step);
    const isShort = image !== "" && pitch >= 60;
    const text = isShort ? middle(image, IMAGE) : i % every === 0 || isOnset ? number : "";
    return h("span", { class: isOnset ? "onset" : "", title: image || `step ${number}`, text });
  });
}

/** True for a layer that has maps. @param {HealthLayer} of */
export function isShown({ key, roles }) {
  return key !== null && roles.includes("feature_maps");
}

/** What stands left of a row. @param {HealthLayer} layer @param {string} shown @param {number|null} channel @param {number} pitch */
function nameOf(layer, shown, channel, pitch) {
  const name = words.callName(layer);
  const kernels = layer.kernel_shape?.join("×") ?? "";
  const drawn = channel === null ? "no picture" : `channel ${channel}`;
  const few = pitch < 60;
  const rest = few ? [drawn] : [kernels, drawn].filter(Boolean);
  return h(
    "div",
    { class: few ? "sheet-name few" : "sheet-name", title: [name, kernels, drawn].join("\n") },
    h("b", { text: shown }),
    ...rest.map((text) => h("span", { text })),
  );
}
