// @ts-check
/** What the attribution view says, on the page and in a saved file. */

import { callName, short, stepText } from "../model/words.js";
import { pixels } from "../server/decode.js";
import { h, say, show } from "./dom.js";

// What the attribution view says, on the page and in a saved file.

/** @typedef {import("../model/attribution.js").Row} Row */
/** @typedef {import("../model/attribution.js").Tile} Tile */

/** The grey of a picture without attribution (`fmapboard.render.heat`). */
const NEGLIGIBLE = 128;

/** Of what the gradient is. */
const EFFECTS = Object.freeze({
  loss:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of this " +
    "step's loss, relu(−∂L/∂A)·A summed over channels.",
  probe:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of " +
    "attribution_loss on the probe in eval mode, relu(−∂L/∂A)·A summed over channels.",
  score:
    "Where it is bright, a larger activation of the layer raises the score here, of the class that " +
    "target= names or else of each image's highest score: LayerCAM in eval mode, relu(∂y/∂A)·A " +
    "summed over channels.",
});
const CONTROL =
  "The first logged step is the control: what is bright there too has not been learned since. " +
  "Bright does not mean that the network needs this place.";
const OTHER_IMAGES =
  " Two steps usually saw different images: attribution_loss= draws the same ones at each step.";

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
 * Step of a picture, and the norm of its gradient.
 * @param {Row} row @param {Tile} tile one of its two @param {ImageBitmap} picture of the tile
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

/** @type {WeakMap<ImageBitmap, boolean>} */
const greys = new WeakMap();

/** True if a picture is one even grey. @param {ImageBitmap} picture */
function isNegligible(picture) {
  const held = greys.get(picture);
  if (held !== undefined) return held;
  const [red, green, blue] = pixels(picture).data;
  const isGrey = [red, green, blue].every((each) => each === NEGLIGIBLE);
  greys.set(picture, isGrey);
  return isGrey;
}

// Attribution of a sample: heat over the input image at each layer, now and at the first step.

/** @typedef {import("../server/source.js").Model} Model */

/** Longer sides of a picture, CSS px: the largest at which all layers fit the window is used. */
const SIDES = [480, 400, 320, 260, 200, 180, 160];
/** Longer side where the layers do not fit at any, and scroll. */
const SCROLLED = 200;
/** Around a picture, CSS px: between the two of a layer, between layers, heading and captions. */
const [GAP, BETWEEN, WORDS] = [8, 20, 80];

/**
 * Longer side of the pictures, CSS px.
 * @param {readonly Row[]} rows @param {number} width of the window, CSS px
 * @param {number} height of the window, CSS px
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

export function createAttribution() {
  const effect = h("p");
  const control = h("p");
  const ramp = h("span", { class: "heat-ramp", role: "img", "aria-label": "grey to yellow" });
  const legend = h(
    "p",
    { class: "heat-legend" },
    h("span", { text: "input" }),
    ramp,
    h("span", { text: "maximum of the picture" }),
    h("span", { class: "heat-none" }),
    h("span", { text: "even grey: the map is negligible or not finite" }),
  );
  const list = h("div", { class: "attribution-rows" });
  const element = h(
    "section",
    {
      class: "attribution",
      role: "main",
      "aria-label": "Attribution",
      tabindex: "0",
      hidden: true,
    },
    h("h1", { text: "Attribution" }),
    h("div", { class: "attribution-text" }, effect, control, legend),
    list,
  );
  /** By key of the series. @type {Map<string, ReturnType<typeof createRow>>} */
  const made = new Map();

  /** @param {Model} model */
  function draw({ state, attribution }) {
    const isShown = state.view === "attribution";
    show(element, isShown);
    if (!isShown || !attribution?.rows.length) return;
    const { rows } = attribution;
    say(effect, effectText(rows));
    say(control, controlText(rows));
    show(control, Boolean(controlText(rows)));
    const head = list.offsetTop - element.offsetTop;
    const side = sideFor(rows, element.clientWidth - 24, element.clientHeight - head);
    element.style.setProperty("--side", `${side}px`);
    const views = rows.map((row) => {
      const key = `${state.run}\n${row.series.key}`;
      const view = made.get(key) ?? createRow();
      made.set(key, view);
      view.draw(row);
      return view.element;
    });
    if (views.length !== list.children.length || views.some((v, i) => v !== list.children[i])) {
      list.replaceChildren(...views);
    }
  }
  return { element, draw };
}

function createRow() {
  const heading = h("h2");
  const [now, first] = [createTile(), createTile()];
  const element = h(
    "section",
    {},
    heading,
    h("div", { class: "pictures" }, now.element, first.element),
  );

  /** @param {Row} row */
  function draw(row) {
    const { series, now: current, first: control } = row;
    say(heading, headingText(series));
    now.draw(row, current);
    show(first.element, control !== null);
    if (control) first.draw(row, control);
  }
  return { element, draw };
}

function createTile() {
  const canvas = h("canvas", { role: "img" });
  const [when, size] = [h("span"), h("span", { class: "value" })];
  const element = h("figure", {}, canvas, h("figcaption", {}, when, size));
  /** @type {ImageBitmap|null} */
  let drawn = null;

  /**
   * The picture before stays, marked as old, until the new one has arrived.
   * @param {Row} row @param {Tile} tile one of its two
   */
  function draw(row, tile) {
    const { picture, problem } = tile;
    element.classList.toggle("old", !picture);
    if (!picture) {
      if (problem) say(size, problem);
      return;
    }
    if (picture !== drawn) paint(picture);
    drawn = picture;
    const texts = captionTexts(row, tile, picture);
    say(when, texts[0]);
    say(size, texts[1]);
    canvas.setAttribute("aria-label", `Attribution of ${row.series.label}, ${texts.join(", ")}`);
  }

  /** @param {ImageBitmap} picture */
  function paint(picture) {
    const { width, height } = picture;
    const longer = Math.max(width, height);
    [canvas.width, canvas.height] = [width, height];
    canvas.style.width = `calc(var(--side) * ${width / longer})`;
    canvas.style.height = `calc(var(--side) * ${height / longer})`;
    canvas.getContext("2d")?.drawImage(picture, 0, 0);
  }
  return { element, draw };
}
