// @ts-check
/** Attribution of a sample: heat over the input image at each layer, now and at the first step. */

import { callName, short, stepText } from "../model/words.js";
import { once } from "../server/cache.js";
import { pixels } from "../server/decode.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";
import { Painted } from "./hooks.js";

/** @import {Model, Row, Tile} from "../model/model.js" */

/** The grey of a picture without attribution (`fmapboard.render.heat`). */
const NEGLIGIBLE = 128;

/** Of what the gradient is. */
const EFFECTS = Object.freeze({
  loss:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of this " +
    "step's loss, relu(−∂L/∂A)·A summed over channels.",
  probe:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of " +
    "the loss of the same images at each step in eval mode, relu(−∂L/∂A)·A summed over channels.",
  score:
    "Where it is bright, a larger activation of the layer raises the score here, of the class " +
    "that was chosen or else of the image's highest score: LayerCAM in eval mode, relu(∂y/∂A)·A " +
    "summed over channels.",
});
const CONTROL =
  "The first logged step is the control: what is bright there too has not been learned since. " +
  "Bright does not mean that the network needs this place.";
const OTHER_IMAGES = " Two steps usually saw different images.";

/** What bright places mean. @param {Row[]} rows at least one */
export function effectText(rows) {
  return EFFECTS[rows[0].series.of];
}

/** What the first step is there for; "" without it. @param {Row[]} rows at least one */
export function controlText(rows) {
  if (!rows.some(({ first }) => first)) return "";
  return rows[0].series.of === "loss" ? CONTROL + OTHER_IMAGES : CONTROL;
}

/** Layer, type and size of the maps. @param {Row["series"]} of */
export function headingText({ name, label, type, size }) {
  const facts = [type, size ? `maps of ${size[0]}×${size[1]}` : ""].filter(Boolean).join(", ");
  return [callName({ name, label }), facts].filter(Boolean).join(" · ");
}

/**
 * @param {Row} row @param {Tile} tile one of its two @param {ImageBitmap} picture of it
 * @returns {[string, string]}
 */
export function captionTexts(row, tile, picture) {
  const { step, gradient } = tile;
  const time = `${tile === row.first ? "first step: " : "step "}${stepText(step)}`;
  const symbol = row.first ? "∂L/∂A" : "∂y/∂A";
  const norm = gradient === null ? "not finite or unknown" : short(gradient);
  const isGrey = isNegligible(picture) && gradient !== null;
  return [time, `|${symbol}| = ${norm}${isGrey ? ", map negligible" : ""}`];
}

/** True if a picture is one even grey. */
const isNegligible = once((/** @type {ImageBitmap} */ picture) =>
  pixels(picture)
    .data.subarray(0, 3)
    .every((each) => each === NEGLIGIBLE),
);

/** Longer sides of a picture, CSS px: the largest at which all layers fit the window is used. */
const SIDES = [480, 400, 320, 260, 200, 180, 160];
/** Longer side where the layers do not fit at any, and scroll. */
const SCROLLED = 200;
/** Around a picture, CSS px: between the two of a layer, between layers, heading and captions. */
const [GAP, BETWEEN, WORDS] = [8, 20, 80];

/**
 * Longer side of the pictures, CSS px.
 * @param {readonly Row[]} rows @param {number} width @param {number} height CSS px
 */
export function sideFor(rows, width, height) {
  const pictures = Math.max(...rows.map(({ first }) => (first ? 2 : 1)));
  const shapes = rows.map(({ series }) => (series.size ? series.size[0] / series.size[1] : 1));
  const aspect = Math.min(1, Math.max(...shapes)); // of the input, nearly
  const fits = (/** @type {number} */ side) => {
    const columns = Math.floor((width + BETWEEN) / (pictures * (side + GAP) - GAP + BETWEEN));
    return columns > 0 && Math.ceil(rows.length / columns) * (side * aspect + WORDS) <= height;
  };
  return SIDES.find(fits) ?? SCROLLED;
}

/** @param {{model: Model}} props */
export function Attribution({ model: { state, attribution } }) {
  const view = useRef(/** @type {HTMLElement|null} */ (null));
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const isShown = state.view === "attribution";
  const rows = (isShown && attribution?.rows) || [];
  useLayoutEffect(() => {
    const [{ current: element }, { current: below }] = [view, list];
    if (!element || !below || !rows.length) return;
    const head = below.offsetTop - element.offsetTop;
    const side = sideFor(rows, element.clientWidth - 24, element.clientHeight - head);
    element.style.setProperty("--side", `${side}px`);
  });
  if (!isShown) return null;
  const control = rows.length ? controlText(rows) : "";
  return html`
    <section class="attribution" role="main" aria-label="Attribution" tabindex="0" ref=${view}>
      <h1>Attribution</h1>
      <div class="attribution-text">
        <p>${rows.length ? effectText(rows) : ""}</p>
        ${control && html`<p>${control}</p>`}
        <p class="heat-legend">
          <span>input</span><span class="heat-ramp" role="img" aria-label="grey to yellow" />
          <span>maximum of the picture</span><span class="heat-none" />
          <span>even grey: the map is negligible or not finite</span>
        </p>
      </div>
      <div class="attribution-rows" ref=${list}>
        ${rows.map(
          (row) => html`
            <section key=${`${state.run} ${row.series.key}`}>
              <h2>${headingText(row.series)}</h2>
              <div class="pictures">
                <${Picture} row=${row} tile=${row.now} />
                ${row.first && html`<${Picture} row=${row} tile=${row.first} />`}
              </div>
            </section>
          `,
        )}
      </div>
    </section>
  `;
}

/**
 * A picture of a layer; the last one stays, marked as old, until it is there.
 * @param {{row: Row, tile: Tile}} props
 */
function Picture({ row, tile }) {
  const { picture, problem } = tile;
  const last = useRef(/** @type {{picture: ImageBitmap, texts: string[]}|null} */ (null));
  if (picture) last.current = { picture, texts: captionTexts(row, tile, picture) };
  const shown = last.current?.picture;
  const [when, size] = last.current?.texts ?? ["", ""];
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    if (!shown) return;
    const longer = Math.max(shown.width, shown.height);
    [canvas.width, canvas.height] = [shown.width, shown.height];
    canvas.style.width = `calc(var(--side) * ${shown.width / longer})`;
    canvas.style.height = `calc(var(--side) * ${shown.height / longer})`;
    canvas.getContext("2d")?.drawImage(shown, 0, 0);
  };
  const label = shown ? `Attribution of ${row.series.label}, ${when}, ${size}` : null;
  return html`
    <figure class=${picture ? null : "old"}>
      <${Painted} role="img" aria-label=${label} paint=${paint} of=${[shown]} />
      <figcaption><span>${when}</span><span
        class="value">${(!picture && problem) || size}</span></figcaption>
    </figure>
  `;
}
