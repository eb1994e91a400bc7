// @ts-check
/** The colour bar with its values, and the meaning of the colours of marks. */

import { LETTERS } from "../state/columns.js";
import { sideName } from "../state/compare.js";
import { h, say, show } from "./dom.js";
import { barLabels } from "../draw/bar_labels.js";
import { differenceRange, drawnRange, marksIn } from "../draw/captions.js";
import { drawKernelBars } from "./kernel_bars.js";
import { short } from "../draw/number_text.js";
import { FAULT_COLOURS, LEGEND, MARK_COLOURS, css, ramp } from "../draw/palettes.js";
import { drawnOf, stepsText } from "../draw/locked_scale.js";
import { isDifference } from "../draw/scene_columns.js";
import { theme } from "../draw/theme.js";
import { explain } from "./glossary.js";
import { deadWord } from "../state/dead_word.js";

/** What a title of a difference says of the inputs of its sides. */
const INPUTS = Object.freeze({
  same: "",
  loading: "",
  different: ", different inputs",
  unknown: ", inputs not known",
});

/** Red, green and blue above one another, each while the other two are 0. */
const RGB = ["rgb(0 128 128), rgb(255 128 128)", "rgb(128 0 128), rgb(128 255 128)"]
  .concat("rgb(128 128 0), rgb(128 128 255)")
  .map((ends, i) => `linear-gradient(to right, ${ends}) 0 ${50 * i}% / 100% 34% no-repeat`)
  .join(", ");

/** A CSS gradient of a palette; "rgb" for kernels. @param {string} name */
export function gradient(name) {
  if (name === "rgb") return RGB;
  return `linear-gradient(to right, ${ramp(name, 17).map(css).join(", ")})`;
}

/** Measures texts. @type {CanvasRenderingContext2D|null} */
let pen = null;

/** Width of a text of the scale, CSS px. @param {string} text */
function widthOf(text) {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return text.length * 7;
  pen.font = theme().font;
  return pen.measureText(text).width + 1;
}

/** A colour bar with its scale below. */
export function createBar() {
  const ramp = h("div", { class: "ramp" });
  const scale = h("div", { class: "ramp-scale" });
  const title = h("span", { class: "ramp-title" });
  const room = h("div", { class: "ramp-room" }, ramp, scale);
  const element = h("div", { class: "bar", role: "img" }, title, room);
  let before = "";

  /** @param {number} lo @param {number} hi @param {string} palette @param {string} text */
  function draw(lo, hi, palette, text) {
    say(title, text);
    show(title, Boolean(text));
    const width = room.clientWidth || 120;
    const key = `${lo}/${hi}/${palette}/${text}/${width}`;
    if (key === before) return;
    before = key;
    ramp.style.background = gradient(palette);
    ramp.classList.toggle("rgb", palette === "rgb");
    scale.replaceChildren(
      ...barLabels(lo, hi, width, widthOf).map(({ text: value, left, end }) => {
        const label = h("span", { class: end ? "end" : null, text: value });
        label.style.left = `${left}px`;
        return label;
      }),
    );
    const range = Number.isNaN(lo) ? "no finite value" : `${short(lo)} to ${short(hi)}`;
    element.setAttribute("aria-label", `${text}: ${range}`);
  }
  return { element, draw };
}

/** True if a column has maps, and a scale of its own. @param {import("../draw/scene.js").MapsScene|null} scene @param {number} i */
function isOwn(scene, i) {
  return Boolean(scene?.ownScale && scene.columns[i]?.side);
}

export function createLegend() {
  const main = createBar();
  const own = LETTERS.map(createBar);
  const between = createBar();
  /** One entry per mark, by name. @type {Map<string, {entry: HTMLElement, said: HTMLElement}>} */
  const entries = new Map();
  const add = (
    /** @type {string} */ name,
    /** @type {string} */ term,
    /** @type {Element} */ i,
  ) => {
    const said = h("span", { text: name });
    entries.set(name, { entry: explain(h("li", {}, i, said), term), said });
  };
  for (const { code, name, term } of LEGEND) {
    const swatch = h("i");
    swatch.style.background = css(MARK_COLOURS[code]);
    add(name, term, swatch);
  }
  const edge = h("i", { class: "edge" });
  edge.style.borderColor = FAULT_COLOURS.large;
  add("large", "large", edge);
  const marks = h(
    "ul",
    { class: "marks", "aria-label": "Marks in the pictures" },
    ...[...entries.values()].map(({ entry }) => entry),
  );
  const element = h(
    "div",
    { class: "legend" },
    main.element,
    ...own.map((bar) => bar.element),
    between.element,
    marks,
  );

  /** @param {import("../app.js").Model} model @param {number|null} hovered */
  function draw(model, hovered) {
    const { scene, state } = model;
    const maps = scene?.kind === "maps" ? scene : null;
    const hasMaps = Boolean(maps && !isDifference(maps.parts[0]));
    show(main.element, hasMaps && !maps?.ownScale);
    own.forEach((bar, i) => show(bar.element, hasMaps && isOwn(maps, i)));
    show(between.element, Boolean(maps?.parts.some(isDifference)));
    if (scene?.kind === "kernels") drawKernelBars(scene, main, between);
    const found = maps ? marksIn(maps) : new Set();
    for (const [name, { entry }] of entries) show(entry, found.has(name));
    show(marks, found.size > 0);
    if (!maps) return;
    const follower = maps.question.role === "feature_maps" && maps.maps.header.activation;
    const dead = entries.get("dead");
    if (dead)
      say(dead.said, follower ? `${deadWord()} after its ${follower.type}: 0 there` : deadWord());
    const c = hovered ?? state.channel ?? maps.order[0] ?? 0;
    const whose = maps.wholeLayer ? "whole layer" : `channel ${c}`;
    main.draw(...drawnRange(maps, c), state.colours, `${whose}, ${drawnOf(maps, state)}`);
    own.forEach((bar, i) => {
      if (!isOwn(maps, i)) return;
      const steps = stepsText([maps.columns[i]], state.locked);
      bar.draw(...drawnRange(maps, c, i), state.colours, `${LETTERS[i]}: ${whose}${steps}`);
    });
    const compared = maps.columns.filter((each) => each.difference);
    if (compared.length) {
      const all = maps.columns.map((each) => each.question);
      const names = compared.map(({ question }) => (question ? sideName(question, all) : ""));
      const pair = `${sideName(maps.question, all)} − ${names.length > 1 ? "each other column" : names[0]}`;
      between.draw(
        ...differenceRange(maps, c),
        "signed",
        `${pair}, ${state.scale === "layer" ? "whole layer" : `channel ${c}`}${INPUTS[model.sides?.inputs ?? "same"]}`,
      );
    }
  }
  return { element, draw };
}
