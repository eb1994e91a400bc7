// @ts-check
/** Attribution of a sample: heat over the input image at each layer, now and at the first step. */

import { callName, deadWord, short, wordOf } from "../model/words.js";
import { once } from "../server/cache.js";
import { pixels } from "../server/decode.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";
import { Painted } from "./hooks.js";

/** @import {Model, Row, Tile, Words} from "../model/model.js" */

/** The grey of a picture without attribution (`fmapboard.render.heat`). */
const NEGLIGIBLE = 128;

/** What is differentiated, what a larger activation does to it, and the formula. */
const METHODS = Object.freeze({
  loss: { what: "loss", does: "lowers", of: "this step's loss L, relu(−∂L/∂A)·A" },
  probe: {
    what: "loss",
    does: "lowers",
    of: "the loss L of the same images at each step in eval mode, relu(−∂L/∂A)·A",
  },
  score: { what: "score", does: "raises", of: "a class score y in eval mode, relu(∂y/∂A)·A" },
});
const DOTS =
  "Regular dots: strided convolutions or pooling behind the layer read some places more often.";
const CONTROL =
  "The first logged step is the control: what is bright there too has not been learned since. " +
  "Bright does not mean that the network needs this place.";
const OTHER_IMAGES = " Two steps mostly saw other images.";

/** What bright places mean. @param {Row[]} rows at least one */
export function effectText([{ series, now }]) {
  const { what, does } = METHODS[series.of];
  const whose = now.score ? ` of ${now.score.name}` : "";
  return `Bright: a larger activation of the layer ${does} the ${what}${whose} here.`;
}

/** What compares between layers. @param {Row[]} rows at least one */
export function scaleText([{ series }]) {
  return (
    "Each map is on its own scale: brightness does not compare layers. Gradient norm: how much " +
    `the ${METHODS[series.of].what} changes with the layer's output. Of the layers with maps of ` +
    "one size, the last one is shown, unless others were chosen."
  );
}

/** What regular dots are; "" where all maps have one size. @param {Row[]} rows */
export function dotsText(rows) {
  return new Set(rows.map(({ series }) => String(series.size))).size > 1 ? DOTS : "";
}

/** How the pictures are computed. @param {Row[]} rows at least one */
export function methodText([{ series }]) {
  const { of } = METHODS[series.of];
  return `LayerCAM of ${of} summed over channels.`;
}

/** What the first step is there for; "" without it. @param {Row[]} rows at least one */
export function controlText(rows) {
  if (!rows.some(({ first }) => first)) return "";
  return rows[0].series.of === "loss" ? CONTROL + OTHER_IMAGES : CONTROL;
}

/**
 * What the pictures are of: the class and its score, and the step, or the image.
 * @param {Row} row @param {Words} stepWords
 */
export function subjectText({ now: { score, step } }, stepWords) {
  const value = score?.value ?? null;
  const scored = score ? `${score.name}${value === null ? "" : `, score ${short(value, 4)}`}` : "";
  return [scored, wordOf(stepWords, step)].filter(Boolean).join(" · ");
}

/** Layer, type and size of the maps. @param {Row["series"]} of */
export function headingText({ name, label, type, size }) {
  const facts = [type, size ? `${size[0]}×${size[1]}` : ""].filter(Boolean).join(", ");
  return [callName({ name, label }), facts].filter(Boolean).join(" · ");
}

/**
 * @param {Row} row @param {Tile} tile one of its two @param {ImageBitmap} picture of it
 * @param {Words} stepWords
 * @returns {[string, string]}
 */
export function captionTexts(row, tile, picture, stepWords) {
  const { step, gradient, dead } = tile;
  const which = tile === row.first ? "first " : "";
  const time = row.first ? `${which}${wordOf(stepWords, step)}` : "";
  const norm = gradient === null ? "not finite or unknown" : short(gradient);
  const isGrey = isNegligible(picture) && gradient !== null;
  const why = dead === null ? "map negligible" : `${dead} is ${deadWord()}`;
  return [time, `gradient norm ${norm}${isGrey ? `, ${why}` : ""}`];
}

/**
 * Which layers let no gradient through at the shown step; "" if none is known.
 * @param {Row[]} rows @param {Words} stepWords
 */
export function deadText(rows, stepWords) {
  const names = [...new Set(rows.flatMap(({ now }) => now.dead ?? []))];
  if (!names.length) return "";
  const [own, after] = names.length > 1 ? ["their", "them"] : ["its", "it"];
  const place = wordOf(stepWords, rows[0].now.step).toLowerCase();
  return (
    `No gradient comes through ${names.join(", ")} at ${place}: every one of ${own} channels is ` +
    `${deadWord()}, 0 for the whole batch. There is nothing to attribute to ${after} and to the ` +
    `layers before; those behind see only zeros.`
  );
}

/** True if a picture is one even grey. */
const isNegligible = once((/** @type {ImageBitmap} */ picture) =>
  pixels(picture)
    .data.subarray(0, 3)
    .every((each) => each === NEGLIGIBLE),
);

/** Longer side of a picture, CSS px: the largest at which all layers fit the window is used. */
const [LEAST, MOST] = [160, 640];
/** Longer side where the layers do not fit at any, and scroll. */
const SCROLLED = 200;
/** Between the two pictures of a layer, and between layers, CSS px. */
const [GAP, BETWEEN] = [8, 20];
/** Height of a heading, and of one with captions, CSS px. */
const [WORDS, PAIRED_WORDS] = [40, 80];

/**
 * Longer side of the pictures, CSS px. @param {readonly Row[]} rows @param {number} width
 * @param {number} height CSS px @param {number} [more] cells that are as large as the others
 */
export function sideOf(rows, width, height, more = 0) {
  const shapes = rows.map(({ series }) => (series.size ? series.size[0] / series.size[1] : 1));
  const aspect = Math.min(1, Math.max(...shapes)); // of the input, nearly
  const counts = rows.map(({ first }) => (first ? 2 : 1));
  return sideFor([...Array(more).fill(1), ...counts], aspect, width, height);
}

/**
 * @param {readonly number[]} counts of pictures that stay side by side @param {number} aspect
 * @param {number} width @param {number} height CSS px
 */
function sideFor(counts, aspect, width, height) {
  const texts = Math.max(...counts) > 1 ? PAIRED_WORDS : WORDS;
  for (let side = MOST; side >= LEAST; side -= 4) {
    let [lines, used] = [1, 0];
    for (const count of counts) {
      const wide = count * (side + GAP) - GAP;
      if (wide > width) lines = Infinity;
      if (used && used + wide > width) [lines, used] = [lines + 1, 0];
      used += wide + BETWEEN;
    }
    if (lines * (side * aspect + texts) <= height) return side;
  }
  return SCROLLED;
}

/**
 * Width of lines that are as long as each other, CSS px.
 * @param {number} count of pictures @param {number} side @param {number} width CSS px
 */
export function evenWidth(count, side, width) {
  const fitting = Math.max(1, Math.floor((width + BETWEEN) / (side + BETWEEN)));
  const lines = Math.ceil(count / fitting);
  return Math.ceil(count / lines) * (side + BETWEEN);
}

/** @param {{model: Model}} props */
export function Attribution({ model: { state, attribution } }) {
  const view = useRef(/** @type {HTMLElement|null} */ (null));
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const isShown = state.view === "attribution";
  const rows = (isShown && attribution?.rows) || [];
  const isPaired = rows.some(({ first }) => first);
  useLayoutEffect(() => {
    const [{ current: element }, { current: below }] = [view, list];
    if (!element || !below || !rows.length) return;
    const head = below.offsetTop - element.offsetTop;
    const [width, height] = [element.clientWidth - 24, element.clientHeight - head];
    const more = Number(Boolean(attribution?.input)) + Number(!isPaired);
    const side = sideOf(rows, width, height, more);
    element.style.setProperty("--side", `${side}px`);
    below.style.maxWidth = isPaired ? "" : `${evenWidth(rows.length + more, side, width)}px`;
  });
  if (!isShown) return null;
  const words = rows.length > 0 && html`<${Texts} ...${{ rows, words: attribution?.words }} />`;
  return html`
    <section class="attribution" role="main" aria-label="Attribution" tabindex="0" ref=${view}>
      ${isPaired && words}
      <div class="attribution-rows" ref=${list}>
        ${!isPaired && words}
        ${attribution?.input && html`<${Input} picture=${attribution.input} />`}
        ${rows.map(
          (row) => html`
            <section key=${`${state.run} ${row.series.key}`}>
              ${row.first && html`<h2>${headingText(row.series)}</h2>`}
              <div class="pictures">
                <${Picture} row=${row} tile=${row.now} words=${attribution?.words} />
                ${
                  row.first &&
                  html`<${Picture} row=${row} tile=${row.first} words=${attribution?.words} />`
                }
              </div>
            </section>
          `,
        )}
      </div>
    </section>
  `;
}

/** What the pictures show. @param {{rows: Row[], words: Words}} props at least one row */
function Texts({ rows, words }) {
  const tiles = rows.flatMap(({ now, first }) => [now, first]);
  const hasGrey = tiles.some((tile) => tile?.picture && isNegligible(tile.picture));
  const texts = [scaleText, dotsText, controlText].map((text) => text(rows));
  const dead = deadText(rows, words);
  return html`
    <div class="attribution-text">
      <h1>Attribution · ${subjectText(rows[0], words)}</h1>
      <p title=${methodText(rows)}>${effectText(rows)}</p>
      <p class="heat-legend">
        <span>input</span><span class="heat-ramp" role="img" aria-label="grey to yellow" />
        <span>maximum of the map</span>
        ${hasGrey && html`<span class="heat-none" />even grey: negligible or not finite`}
      </p>
      ${texts.map((text) => text && html`<p>${text}</p>`)}
      ${dead && html`<p class="dead" role="status">${dead}</p>`}
    </div>
  `;
}

/**
 * A picture of a layer; the last one stays, marked as old, until it is there.
 * @param {{row: Row, tile: Tile, words: Words}} props
 */
function Picture({ row, tile, words }) {
  const { picture, problem } = tile;
  const last = useRef(/** @type {{picture: ImageBitmap, texts: string[]}|null} */ (null));
  if (picture) last.current = { picture, texts: captionTexts(row, tile, picture, words) };
  const shown = last.current?.picture;
  const [when, size] = last.current?.texts ?? ["", ""];
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => shown && drawn(canvas, shown);
  const about = ["Attribution of", `${row.series.label},`, when && `${when},`, size];
  const label = shown ? about.filter(Boolean).join(" ") : null;
  const caption = html`
    <figcaption>
      ${row.first ? html`<span>${when}</span>` : html`<h2>${headingText(row.series)}</h2>`}
      <span class="value">${(!picture && problem) || size}</span>
    </figcaption>
  `;
  return html`
    <figure class=${picture ? null : "old"}>
      ${!row.first && caption}
      <${Painted} role="img" aria-label=${label} paint=${paint} of=${[shown]} />
      ${row.first && caption}
    </figure>
  `;
}

/** The input without attribution. @param {{picture: ImageBitmap}} props */
function Input({ picture }) {
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => drawn(canvas, picture);
  return html`
    <div key="input">
      <h2>input</h2>
      <figure>
        <${Painted} role="img" aria-label="network's input" paint=${paint} of=${[picture]} />
      </figure>
    </div>
  `;
}

/**
 * Draws a picture whose longer side is that of all.
 * @param {HTMLCanvasElement} canvas @param {ImageBitmap} shown
 */
function drawn(canvas, shown) {
  const longer = Math.max(shown.width, shown.height);
  [canvas.width, canvas.height] = [shown.width, shown.height];
  canvas.style.width = `calc(var(--side) * ${shown.width / longer})`;
  canvas.style.height = `calc(var(--side) * ${shown.height / longer})`;
  canvas.getContext("2d")?.drawImage(shown, 0, 0);
}
