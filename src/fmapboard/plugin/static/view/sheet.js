// @ts-check
/** The contact sheet: a row per layer, a column per step, in each cell one channel as a picture. */

import { middle } from "../model/compare.js";
import { KINDS, SEVERE, cellLines, numbersOf } from "../model/health_states.js";
import { explanation } from "../model/terms.js";
import * as words from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { SHEET_GAP as GAP, pageLayout, sheetLayout } from "../picture/layouts.js";
import { markTile, paint as paintTiles } from "../picture/painter.js";
import { isNan, tileCanvas } from "../picture/pixels.js";
import { hasValue, paintPage, pixelMarksOf, rowRanges } from "../picture/sheet_tiles.js";
import { LEGEND, MARK, MARK_COLOURS, css, packed } from "../server/palettes.js";
import { keptFrom } from "../server/steps.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact_htm.js";
import { Cells, themeName } from "./cells.js";
import { Segments, reveal } from "./controls.js";
import { Painted } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {Front, SheetScale} from "../model/model.js" */
/** @import {Box, Look, SheetLayout, Tile} from "../picture/picture.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {Health, HealthLayer, Pass, SheetInput, SheetPage} from "../server/server.js" */
/** @import {Cell, Drawn, Page, Sheet} from "./view.js" */

/** Largest side of a picture that the server sends, px. */
const MOST_PIXELS = 256;
/** Part of the page's height that is left for the rows: verdict and steps are above. */
const ROOM = 0.85;
/** Mean width of a character, CSS px. */
const CHARACTER = 7;
/** Names at the left have no room for a sentence from here down, CSS px. */
const NARROW = 150;
/** Lower rows have a name and one line below it, CSS px. */
const LOW = 66;

/**
 * @param {App} app @param {Health} health @param {readonly number[]} onsets
 * @param {{width: number, height: number, isFlat: boolean}} size CSS px
 */
function laidOut(app, health, onsets, size) {
  const shown = new Map(health.layers.filter(isShown).map((each) => [words.callName(each), each]));
  const indices = [...health.layers.keys()].filter((i) => {
    const name = words.callName(health.layers[i]);
    // Beside the rows of attention, those with the largest logit are nearly the same.
    const other = name.replace(".peak_rows", ".rows");
    return shown.has(name) && (other === name || !shown.has(other));
  });
  const layers = indices.map((i) => health.layers[i]);
  const steps = app.report ? (app.model?.steps ?? []) : health.steps; // it has pictures of few
  const layout = sheetLayout({ layers: layers.length, steps, onsets, ...size });
  const keys = [];
  for (let i = 0; i < layers.length; i += layout.rows) {
    keys.push(layers.slice(i, i + layout.rows).map((each) => each.key ?? ""));
  }
  const names = words.elided(layers.map(words.callName), Math.floor(layout.names / CHARACTER));
  return { health, layers, indices, onsets, layout, keys, names };
}

const SCALES = /** @type {const} */ ([
  [
    "picture",
    "Each picture on its own scale",
    "each picture between its own least and largest value",
  ],
  [
    "row",
    "One scale per row",
    "one scale per layer, without steps with non-finite or large values",
  ],
]);

/**
 * `front` has `health`; `children` are the legend.
 * @param {{app: App, front: Front, palette: string, scale: SheetScale, children?: Child}} props
 */
export function ContactSheet({ app, front, palette, scale, children }) {
  const holder = useRef(/** @type {HTMLElement|null} */ (null));
  const head = useRef(/** @type {HTMLElement|null} */ (null));
  const body = useRef(/** @type {HTMLElement|null} */ (null));
  const next = useRef(/** @type {Sheet|null} */ (null));
  /** Run of which all maps that are known are one row of pixels, and one that has others. */
  const [flat, tall] = [useRef(""), useRef("")];
  const [drawn, show] = useState(/** @type {Drawn|null} */ (null));
  const ratio = window.devicePixelRatio || 1;

  /**
   * Asks for the pictures in sight and a screen more. A new layout of the same run takes the place
   * of the old one once all that it shows in sight is known.
   */
  useLayoutEffect(() => {
    const { current: element } = holder;
    const scroller = element?.parentElement;
    if (!element || !scroller || !body.current) return;
    const sight = scroller.clientHeight;
    const [health, width] = [/** @type {Health} */ (front.health), element.clientWidth];
    const height = Math.round(ROOM * sight);
    const onsets = front.findings.map(({ since }) => keptFrom(health.steps, since));
    const isFlat = flat.current === health.run && tall.current !== health.run;
    const size = { width, height, isFlat };
    const key = JSON.stringify([size, onsets]);
    const { current: last } = next;
    const isSame = last?.health === health && last.key === key;
    const sheet = isSame ? last : { ...laidOut(app, health, onsets, size), key };
    next.current = sheet;
    const { layout, keys, layers } = sheet;
    const cell = Math.max(8, Math.min(MOST_PIXELS, Math.round(layout.side * ratio)));
    const name = layers[0]?.name ?? "";
    const asked = { run: health.run, name, steps: layout.steps, cell };
    const listed = app.source.layers(health.run).value;
    const hasInput = listed?.inputs.some(({ name }) => name === asked.name) ?? false;
    const input = hasInput ? front.sheet.input(asked) : NO_INPUT;
    const pitch = layout.side + GAP;
    const mayDiffer = input.value ? input.value.same === false : !input.error;
    const room = mayDiffer && drawn?.input?.same !== false ? pitch : 0;
    const top = element.offsetTop + body.current.offsetTop - scroller.scrollTop + room;
    const placeOf = (/** @type {number} */ i) => top + i * layout.rows * layout.line;
    const isWithin = (/** @type {number} */ i, /** @type {number} */ more) =>
      placeOf(i) < sight * (1 + more) && placeOf(i + 1) > -more * sight;
    const ask = (/** @type {number} */ i) => front.sheet.page(asked, keys[i]);
    const entries = keys.map((_, i) => (isWithin(i, 0) ? ask(i) : null));
    const inSight = [input, ...entries.filter((entry) => entry !== null)];
    for (const { height: heights } of entries.flatMap((entry) => entry?.value ?? [])) {
      const known = heights.some((each) => each > 1) ? tall : flat;
      if (heights.some(Boolean)) known.current = health.run;
    }
    if (isFlat !== (flat.current === health.run && tall.current !== health.run)) {
      app.overview.isUp = false;
      return app.redraw(); // with rows of another height
    }
    const isKnown = inSight.every((entry) => entry.value ?? entry.error);
    const isUsable = isKnown || drawn?.sheet === sheet || drawn?.sheet.health.run !== health.run;
    app.overview.isUp = isKnown;
    if (!isUsable) return;
    const before = drawn?.sheet === sheet ? drawn.pages : [];
    const pages = keys.map((_, i) => {
      const entry = entries[i] ?? (isKnown && isWithin(i, 1) ? ask(i) : null);
      const kept = isWithin(i, 3) ? (before[i] ?? null) : null; // frees the memory of the others
      return entry?.value ?? entry?.error?.message ?? kept;
    });
    const shown = input.value ?? (drawn?.sheet === sheet ? drawn.input : null);
    const isOld = drawn?.sheet === sheet && drawn.input === shown;
    if (!isOld || pages.some((page, i) => page !== before[i])) show({ sheet, pages, input: shown });
  });

  const { sheet = null, pages = [], input = null } = drawn ?? {};
  const { side, high, line, names: left, steps, rows } = sheet?.layout ?? NO_LAYOUT;
  const pitch = side + GAP;
  const under = (/** @type {MouseEvent} */ { clientX, clientY }) => {
    if (!sheet || !body.current) return null;
    const box = body.current.getBoundingClientRect();
    const row = Math.floor((clientY - box.top) / line);
    const column = Math.floor((clientX - box.left - left) / pitch);
    const isIn = sheet.layers[row] !== undefined && steps[column] !== undefined;
    return isIn ? { row, column } : null;
  };
  const boxOf = (/** @type {Cell} */ { row, column }) => ({
    left: (body.current?.offsetLeft ?? 0) + left + column * pitch + GAP / 2,
    top: (body.current?.offsetTop ?? 0) + row * line + GAP / 2,
    ...{ width: side, height: high },
  });
  const channelOf = (/** @type {Cell} */ { row }) => {
    const page = pages[Math.floor(row / rows)];
    return page && typeof page !== "string" ? page.rows[row % rows].channel : null;
  };
  const lines = (/** @type {Cell} */ { row, column }, /** @type {Pass} */ pass) => {
    const { health, indices } = /** @type {Sheet} */ (sheet);
    const index = health.steps.indexOf(steps[column]) * health.layers.length + indices[row];
    const said = cellLines(health, index, numbersOf(app.source.cache, pass, health, index));
    const page = pages[Math.floor(row / rows)];
    if (!page || typeof page === "string") return said;
    const { channel, why } = page.rows[row % rows];
    const at = (row % rows) * steps.length + column;
    const values = `${words.short(page.least[at])} … ${words.short(page.most[at])}`;
    const isDrawn = page.height[at] > 0;
    const range = !isDrawn ? "not drawn here" : hasValue(page, at) ? values : "no finite value";
    const layer = health.layers[indices[row]];
    const drawn = channel === null ? "" : `${words.tileText(layer, channel)}: ${range}`;
    return [...said, drawn, words.inWordsOf(why ?? "", layer)].filter(Boolean);
  };
  const bring = (/** @type {Box} */ { top, height }) => {
    const { current: element } = holder;
    if (!element?.parentElement) return;
    const from = element.offsetTop + top;
    const above = head.current?.offsetHeight ?? 0;
    reveal(element.parentElement, "Top", from - above, from + height + GAP);
  };
  const grid = sheet && { layers: sheet.layers, steps, run: sheet.health.run };
  const counts =
    `${words.counted(grid?.layers.length ?? 0, "layer")} × ` +
    `${words.counted(steps.length, "step")}`;
  const isSame = input?.same !== false;
  return html`
    <div class="sheet-about">
      ${sheet && html`<span>${sizeText(sheet)}</span>`}
      ${children}<${NonfinitePixels} pages=${pages} /><span class="space" />
      <${Segments} label="Scale" options=${SCALES} value=${scale} choose=${app.set("sheet_scale")}
        />
    </div>
    <${Cells} name="contact-sheet" about="contact sheet of layers and steps" reveal=${bring}
      label=${`${counts} of ${words.runText(grid?.run ?? "")}`} layout=${sheet}
      style=${{ "--names": `${left}px`, "--pitch": `${pitch}px`, "--line": `${line}px` }}
      ...${{ app, holder, grid, under, boxOf, lines, channelOf }}>
      <div class="sheet-head" ref=${head}>
        <div class="sheet-corner">
          ${sheet && input && isSame && html`<${Corner} ...${{ input, left, ratio, sheet }} />`}
        </div>
        <div class="sheet-steps">${sheet && stepNames(sheet, pitch)}</div>
      </div>
      ${sheet && input && !isSame && html`<${InputRow} ...${{ input, pitch, ratio, sheet }} />`}
      <div ref=${body}>
        ${
          sheet &&
          pages.map(
            (page, i) => html`<${Rows} key=${i} ...${{ sheet, i, page, palette, scale, ratio }} />`,
          )
        }
      </div>
    <//>
  `;
}

/** The colours of single pixels that are not finite. @param {{pages: Page[]}} props */
function NonfinitePixels({ pages }) {
  const known = pages.flatMap((page) => (page && typeof page !== "string" ? [page] : []));
  const marks = LEGEND.filter(({ code }) => known.some((page) => pixelMarksOf(page).has(code)));
  if (!marks.length) return null;
  return html`<ul class="states">
    ${marks.map(
      ({ code, name }) => html`
        <li key=${name}>
          <i class="dot" aria-hidden="true" style=${{ background: css(MARK_COLOURS[code]) }} />
          ${name}
        </li>
      `,
    )}
  </ul>`;
}

/** Of a run without pictures of its input. @type {ReturnType<Front["sheet"]["input"]>} */
const NO_INPUT = Object.freeze({
  ...{ value: undefined, epoch: 0, loading: false, error: new Error("no input is kept") },
});

/** @type {SheetLayout} */
const NO_LAYOUT = { side: 0, high: 0, line: 0, names: 0, steps: [], rows: 1 };

/**
 * How many of the layers have pictures, and of the steps a column.
 * @param {Pick<Sheet, "health"|"layout">} sheet
 */
export function sizeText({
  health: { layers, steps: kept, step_words: named },
  layout: { steps },
}) {
  const { length: drawn } = layers.filter(isShown);
  const rows = drawn < layers.length ? `${drawn} of ${layers.length} layers have pictures · ` : "";
  const all = words.counted(kept.length, words.kindOf(named));
  return rows + (steps.length < kept.length ? `${steps.length} of ${all}` : all);
}

/**
 * Whose input is shown: that of the first model, if there are several.
 * @param {Pick<Sheet, "layers">} sheet
 */
export function inputName({ layers }) {
  const [{ name }] = layers;
  return layers.every((each) => each.name === name) ? "input" : `input of ${name}`;
}

/**
 * What is said of the input, and of the maps beside it.
 * @param {{text: string, health: Health}} props
 */
function About({ text, health }) {
  /** @type {Child[]} */
  const said = [text];
  if (health.is_of_probe)
    said.push(html`<span ...${explanation("eval_mode")}>maps in eval mode</span>`);
  if (health.input_is_stretched)
    said.push(html`<span ...${explanation("stretched")}>stretched colours</span>`);
  return said.filter(Boolean).map((each, i) => html`${i > 0 && "; "}${each}`);
}

/**
 * The input that all steps have.
 * @param {{input: SheetInput, left: number, ratio: number, sheet: Sheet}} props
 */
function Corner({ input, left, ratio, sheet }) {
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const size = { width: input.width / ratio, height: input.height / ratio };
    const look = theme();
    const tile = inputTile(input, input.kept.indexOf(true), { left: 0, top: 0, ...size }, look);
    const context = prepare(canvas, size.width, size.height);
    paintTiles(context, { ...size, top: 0, ratio }, look, [tile]);
  };
  const name = inputName(sheet);
  const always = left < NARROW ? `same ${name}` : `${name}, the same at every step`;
  return html`
    <${Painted} aria-hidden="true" paint=${paint} of=${[input, ratio, themeName()]} />
    <span class="sheet-input-text">
      <${About} text=${input.same === null ? name : always} health=${sheet.health} />
    </span>
  `;
}

const DIFFERENT = "a different image at each step, which the maps follow";

/**
 * The input of each step.
 * @param {{input: SheetInput, pitch: number, ratio: number, sheet: Sheet}} props
 */
function InputRow({ input, pitch, ratio, sheet }) {
  const { health } = sheet;
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const [look, whole] = [theme(), { width: input.kept.length * pitch, height: pitch }];
    const size = { width: input.width / ratio, height: input.height / ratio };
    const within = (input.cell - input.width) >> 1;
    const top = Math.round((GAP / 2) * ratio) / ratio;
    const tiles = [...input.kept.keys()].map((i) => {
      const left = (Math.round((i * pitch + GAP / 2) * ratio) + within) / ratio;
      return inputTile(input, i, { left, top, ...size }, look);
    });
    const context = prepare(canvas, whole.width, whole.height);
    paintTiles(context, { ...whole, top: 0, ratio }, look, tiles);
  };
  const isOfImages = words.kindOf(health.step_words) === "image";
  return html`
    <div class="sheet-page">
      <div class="sheet-names">
        <b>${inputName(sheet)}</b>
        <span class="sheet-note">
          <${About} text=${isOfImages ? "" : DIFFERENT} health=${health} />
        </span>
      </div>
      <${Painted} aria-hidden="true" paint=${paint} of=${[input, pitch, ratio, themeName()]} />
    </div>
  `;
}

/**
 * The input of a step.
 * @param {SheetInput} input @param {number} i of the step @param {Box} box CSS px
 * @param {Pick<Look, "text">} look @returns {Tile}
 */
function inputTile({ cell, width, height, kept, pixels }, i, box, look) {
  if (!kept[i]) return { box };
  const out = new Uint32Array(width * height);
  for (let p = 0; p < out.length; p += 1) {
    const at = 3 * (i * cell * cell + Math.floor(p / width) * cell + (p % width));
    out[p] = packed([pixels[at], pixels[at + 1], pixels[at + 2]]);
  }
  return isNan(out) ? markTile(box, MARK.NAN, NaN, look) : { box, image: tileCanvas(out, width) };
}

/**
 * A screenful of rows, empty while they are not known.
 * @param {{sheet: Sheet, i: number, page: Page, palette: string, scale: SheetScale,
 *   ratio: number}} props
 */
function Rows({ sheet, i, page, palette, scale, ratio }) {
  const { health, layout, keys, layers, indices, names } = sheet;
  const style = { height: `${keys[i].length * layout.line}px` };
  if (!page || typeof page === "string")
    return html`<div class="sheet-page" style=${style}>${page}</div>`;
  const first = i * layout.rows;
  const columns = layout.steps.map((step) => health.steps.indexOf(step));
  const stateOf = (/** @type {number} */ row, /** @type {number} */ column) => {
    const at = columns[column] * health.layers.length + indices[first + row];
    return frameOfCode(health.cells.codes[at]);
  };
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const placed = pageLayout(layout, page.rows.length);
    const context = prepare(canvas, placed.width, placed.height);
    paintPage(context, page, placed, stateOf, { ...theme(), palette }, ratio, scale === "row");
  };
  const when = [sheet, page, palette, scale, ratio, themeName(), words.deadWord()];
  const ranges = scale === "row" ? rowRanges(page, stateOf) : [];
  const rangeOf = (/** @type {number} */ row) => {
    const { lo = NaN, hi = NaN } = ranges[row] ?? {};
    return lo < hi ? words.endsText(lo, hi) : "";
  };
  return html`
    <div class="sheet-page" style=${style}>
      <div class="sheet-names">
        ${page.rows.map((shown, row) =>
          nameOf(layers[first + row], names[first + row], shown, layout.line, {
            state: words.inWordsOf(health.severe[indices[first + row]] ?? ""),
            range: rangeOf(row),
          }),
        )}
      </div>
      <${Painted} aria-hidden="true" paint=${paint} of=${when} />
    </div>
  `;
}

/**
 * Numbers or names of images above the columns, as far as they have room; those of onsets always.
 * @param {Sheet} sheet @param {number} pitch
 */
function stepNames({ health, layout: { steps }, onsets }, pitch) {
  const longest = Math.max(...steps.map((step) => words.stepText(step).length)) * 8 + 8;
  const every = Math.ceil(longest / pitch);
  return steps.map((step, i) => {
    const [number, image] = words.labelOf(health.step_words, step);
    const isOnset = onsets.includes(step);
    const isShort = image !== "" && pitch >= 60;
    const text = isShort
      ? middle(image, Math.floor(pitch / CHARACTER))
      : i % every === 0 || isOnset
        ? number
        : "";
    const gap = i ? health.steps.indexOf(step) - health.steps.indexOf(steps[i - 1]) - 1 : 0;
    const without = gap > 0 ? `; ${words.counted(gap, "step")} before it left out` : "";
    const title = (image || `step ${number}`) + without;
    const classes = `${isOnset ? "onset" : ""} ${gap > 0 ? "gap" : ""}`.trim();
    return html`<span class=${classes} title=${title}>${text}</span>`;
  });
}

/** The state that a picture has a frame of: one of half of the channels. @param {number} code */
export const frameOfCode = (code) => (code < SEVERE ? null : (KINDS[code] ?? null));

/** True for a layer that has maps. @param {HealthLayer} of */
export function isShown({ key, roles }) {
  return key !== null && roles.includes("feature_maps");
}

/** Whose attention the maps of heads are. */
const [ROW, PEAK_ROW] = [
  ["from the first token,", "or the last if causal"],
  ["from the token with", "the largest logit"],
];

/**
 * What is left of a row. @param {HealthLayer} layer @param {string} shown
 * @param {SheetPage["rows"][number]} row @param {number} line its height, CSS px
 * @param {{state: string, range: string}} of the worst state of the row, and the range of its
 *   colours if it has one
 */
function nameOf(layer, shown, { channel, view = "" }, line, { state, range }) {
  const kernels = words.shapeText(layer);
  const isHead = layer.unit === "head";
  const whose = layer.label.includes(".peak_rows") ? PEAK_ROW : ROW;
  const tile = `${isHead ? "attention of " : ""}${words.tileText(layer, channel ?? "")}`;
  const drawn = channel === null ? "no picture" : tile;
  const slice = layer.kernel_shape?.length === 5 ? view : "";
  const about = isHead ? [drawn, ...whose] : [kernels, drawn, slice];
  const all = [range, ...about].filter(Boolean);
  const facts = line < LOW ? (state ? [] : [range || slice || drawn]) : all;
  const title = [words.callName(layer), state, kernels, drawn, view, range]
    .filter(Boolean)
    .join("\n");
  return html`
    <div class="sheet-name" title=${title}>
      <b>${shown}</b>
      ${state && html`<em>${state}</em>`}
      ${facts.map((text) => html`<span>${text}</span>`)}
    </div>
  `;
}
