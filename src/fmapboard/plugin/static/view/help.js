// @ts-check
/** The terms of the tab in plain words: for tooltips, screen readers and the help. */

import { ATTRIBUTION_KEYS, nextKind } from "../model/attribution.js";
import { OVERVIEW_ACTS, inPalette, selected } from "../model/overview.js";
import { CHOICES, TILES } from "../model/state.js";
import { STEP_KEY, button, byPointer, h } from "./dom.js";

// The terms of the tab in plain words: for tooltips, screen readers and the help.

/**
 * Name and explanation of each term.
 * @type {Readonly<Record<string, readonly [name: string, text: string]>>}
 */
export const GLOSSARY = Object.freeze({
  maps: ["maps", "The layer's output (feature maps), one picture per channel."],
  inputs: ["inputs", "The input of the layer itself, one picture per channel."],
  gradients: ["gradients", "The gradient of the loss with respect to the layer's output."],
  kernels: ["kernels", "The layer's convolution weights."],
  attribution: [
    "attribution",
    "Where, in the input image, a larger activation lowers the loss of this training step.",
  ],
  patches: [
    "patches",
    "The parts of a folder of images that excite the channel most: the receptive fields of its largest values.",
  ],
  sample: [
    "sample",
    "The image whose maps are drawn, counted from 0 in the batch, or among the fixed images of probe=.",
  ],
  scale: [
    "scale",
    "The values that get the first and the last colour: those of each channel, or of the whole layer.",
  ],
  locked: ["locked", "One scale for all steps: the same colour is the same value at every step."],
  colours: [
    "colours",
    "The palette of the maps. Signed is centred on 0: blue below it, red above.",
  ],
  sort: [
    "sort",
    "The order of the channels. Channels in order of strength or similarity keep their places while the step changes.",
  ],
  tile: ["tile", "The size of the picture of a channel, in CSS pixels. Auto fits the window."],
  compare: [
    "compare",
    "Shows up to three further steps, runs or samples, or the inputs or gradients, next to the first, or the differences.",
  ],
  strength: ["strength", "The root mean square of a channel's values over the whole batch."],
  similarity: [
    "similarity",
    "Channels with similar maps stand next to each other, beginning at the strongest one.",
  ],
  change: [
    "change",
    "How much the maps, or else the weights, differ from the logged step before: 0 is no change.",
  ],
  unchanged: [
    "no change",
    "The weights are the same as at an earlier step although the optimizer has taken a step.",
  ],
  warning: ["warning", "A finding that is wrong for certain, whatever the network, such as a NaN."],
  note: [
    "note",
    "A finding that is unusual, not certainly wrong: a number that healthy runs seldom have.",
  ],
  state: [
    "state",
    "A lasting state of a layer that no check judges: it may be intended, as frozen weights are.",
  ],
  flagged: [
    "flagged",
    "Layers with non-finite or large values, with at least 10 % dead or constant channels, or with weights that do not change.",
  ],
  nonfinite: ["non-finite", "NaN, +Inf or −Inf: not a number, or too large for the number format."],
  large: ["large", "A value of magnitude 10 000 or more."],
  dead: [
    "dead",
    "The activation is 0 for the whole batch, so that no gradient reaches the channel's weights.",
  ],
  constant: ["constant", "The channel has the same value at every position of its map."],
  range: ["range", "The smallest and the largest value."],
  std: ["std", "The standard deviation of the channel's values over the whole batch."],
  norm: [
    "gradient norm",
    "The 2-norm of the gradient of the loss with respect to a parameter of the layer.",
  ],
  ratio: [
    "update ratio",
    "How much one optimizer step changed a parameter: the 2-norm of the change divided by that of the parameter.",
  ],
  histogram: ["histogram", "How often each value occurs, per step: the brighter, the more often."],
  batch: ["whole batch", "Measured over all images of the batch and all positions of the map."],
  block: [
    "block",
    "The square of positions that one stored pixel is the mean of, because the map was too large to store.",
  ],
  kept: [
    "kept",
    "TensorBoard holds a sample of the logged steps in memory: the first and the last always, others at random.",
  ],
  live: ["live", "Asks for new steps every 10 seconds. It is on while the run is being written."],
});

/** Id of the element of the help that explains a term. @param {string} term */
export const termId = (term) => `term-${term}`;

/**
 * A tooltip of one or more terms, several with their names, and the same as description for screen readers:
 * attributes of an element.
 * @param {string} terms names of terms, separated by spaces
 * @param {string} more what else the tooltip says, before the explanation
 */
export function explanation(terms, more = "") {
  const names = terms.split(" ");
  const texts = names.map((term) => {
    const found = GLOSSARY[term];
    if (!found) throw new Error(`no term ${term}; there are ${Object.keys(GLOSSARY).join(", ")}`);
    return names.length > 1 ? `${found[0]}: ${found[1]}` : found[1];
  });
  const title = [more, ...texts].filter(Boolean).join("\n");
  return { title, "aria-describedby": names.map(termId).join(" ") };
}

/**
 * Gives an element the attributes of `explanation`.
 * @template {HTMLElement} T
 * @param {T} element @param {string} terms @param {string} more @returns {T}
 */
export function explain(element, terms, more = "") {
  const { title, "aria-describedby": ids } = explanation(terms, more);
  element.title = title;
  element.setAttribute("aria-describedby", ids);
  return element;
}

// Keyboard shortcuts, and the list of them that `?` opens.

/** @typedef {import("../app.js").App} App */

/** @type {readonly (readonly [string, string])[]} */
export const KEYS = Object.freeze([
  ["v", "overview, or the maps again"],
  ["Enter", "in the overview: show the maps of the cell; arrow keys move over the cells"],
  ["← →", "previous step, next step"],
  ["Home End", "first step, newest step"],
  ["Space", "play or pause"],
  ["↑ ↓", "previous layer, next layer; in the grid: one row of channels up, down"],
  ["[ ]", "previous channel, next channel"],
  ["Esc", "close what is open"],
  ["/", "filter layers"],
  ["f", "fold or open the group of the layer"],
  ["c", "next palette"],
  ["s", "scale per channel or per layer"],
  ["l", "lock the scale over steps"],
  ["r", "maps, inputs, gradients, kernels, attribution"],
  ["d", "compare with another step, on or off; brings removed columns back"],
  ["o", "lay the channel over the input image"],
  ["+ − 0", "larger tiles, smaller tiles, tiles that fit the window"],
  ["x", "point at a pixel: which channels and layers respond there; the arrow keys move the point"],
  ["m", "film strip of the open or chosen channels, or back to the maps"],
  ["p", "save the view as PNG"],
  ["?", "open or close this help"],
]);

/**
 * The value after `now` in a list; after the last, the first.
 * @template T @param {readonly T[]} among @param {T} now
 */
export function next(among, now) {
  return among[(among.indexOf(now) + 1) % among.length];
}

/**
 * The next larger or smaller tile size.
 * @param {number} shown current size on the screen, CSS px @param {number} by 1 or -1
 */
export function nextTile(shown, by) {
  const sides = TILES.filter(Boolean);
  if (by > 0) return sides.find((side) => side > shown * 1.1) ?? sides[sides.length - 1];
  return sides.findLast((side) => side < shown * 0.9) ?? sides[0];
}

/** @param {App} app */
function shownTile({ state, page }) {
  return state.view === "film" ? page.film.shownTile() : page.grid.shownTile();
}

/** @param {App} app */
export function installKeys(app) {
  document.addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (byPointer(target) && STEP_KEY.test(event.key)) target.blur();
    else if (
      target.matches("select, textarea") ||
      (target.matches("input") && event.key !== "Escape" && !isSlider(target, event.key))
    ) {
      return;
    }
    if (app.state.view === "attribution" && !ATTRIBUTION_KEYS.has(event.key)) return;
    const ofPage = app.state.view === "overview" ? OVERVIEW_ACTS : ACTS;
    const act = pointAct(app, event.key) ?? ofPage[event.key];
    if (!act) return;
    // The space bar presses a focused button, as on any page.
    if (event.key === " " && target.matches("button")) return;
    if (act(app, target) !== false) event.preventDefault();
  });
}

/** Cells down and right that an arrow key moves the point by. @type {Record<string, [number, number]>} */
const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * What a key does while a point is looked at; undefined for what it does otherwise.
 * @param {App} app @param {string} key
 */
function pointAct({ state, page }, key) {
  const by = state.view === "maps" && page.pixel.isOn() ? MOVES[key] : undefined;
  return by && (() => page.pixel.move(...by));
}

/**
 * True if the target is a slider, which has no use for the key.
 * @param {HTMLElement} target @param {string} key
 */
function isSlider(target, key) {
  return target.getAttribute("type") === "range" && !/^(Arrow|Home|End|Page)/.test(key);
}

/** @param {App} app @param {HTMLElement} target @param {number} by */
function vertical(app, target, by) {
  if (target.closest(".grid")) app.page.grid.move(by, true);
  else app.page.layers.move(by);
}

/** @type {Readonly<Record<string, (app: App, target: HTMLElement) => void|boolean>>} */
const ACTS = Object.freeze({
  ArrowLeft: (app) => app.stepBy(-1),
  ArrowRight: (app) => app.stepBy(1),
  Home: (app) => app.stepTo("first"),
  End: (app) => app.stepTo("last"),
  " ": (app) => app.play(),
  ArrowUp: (app, target) => vertical(app, target, -1),
  ArrowDown: (app, target) => vertical(app, target, 1),
  "[": (app) => app.moveChannel(-1),
  "]": (app) => app.moveChannel(1),
  Enter: (app, target) => {
    if (target.matches(".film-strip")) return void app.page.film.enter();
    return target.matches(".grid") ? app.moveChannel(0) : false;
  },
  Escape: (app, target) => {
    if (app.page.help.isOpen()) app.page.help.close();
    else if (target.matches("input")) target.blur();
    else if (app.state.pixel) app.update({ pixel: "" });
    else if (["film", "attribution"].includes(app.state.view)) app.update({ view: "maps" });
    else app.update({ channel: null });
  },
  v: (app) => app.overview.toggle(),
  "/": (app) => app.page.layers.filter.focus(),
  f: (app) => app.page.layers.fold(),
  c: (app) => app.update(selected(app.state, next(CHOICES.colours, inPalette(app.state).colours))),
  s: (app) => app.update({ scale: next(CHOICES.scale, app.state.scale) }),
  l: (app) =>
    app.update(
      app.state.view === "film"
        ? { film_scale: next(CHOICES.film_scale, app.state.film_scale) }
        : { locked: !app.state.locked },
    ),
  m: (app) => app.toggleFilm(),
  x: (app) => app.page.pixel.toggle(),
  r: nextKind,
  d: (app) => app.toggleColumns(),
  o: (app) => app.toggleOverlay(),
  "+": (app) => app.update({ tile: nextTile(shownTile(app), 1) }),
  "=": (app) => app.update({ tile: nextTile(shownTile(app), 1) }),
  "-": (app) => app.update({ tile: nextTile(shownTile(app), -1) }),
  0: (app) => app.update({ tile: 0 }),
  p: (app) => void app.page.bar.save(),
  "?": (app) => app.page.help.toggle(),
});

// The list of keyboard shortcuts and the meaning of the tab's terms, opened by `?`.

/** Terms that a report has no use for. */
const OF_SERVER = new Set(["kept", "live"]);

/** @param {boolean} isReport */
export function createHelp(isReport) {
  const dialog = h("dialog", { class: "help", "aria-label": "Help" });
  const rows = KEYS.map(([keys, what]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...keys.split(" ").map((key) => h("kbd", { text: key }))),
      h("td", { text: what }),
    ),
  );
  const entries = Object.entries(GLOSSARY).filter(([term]) => !isReport || !OF_SERVER.has(term));
  const terms = entries.flatMap(([term, [name, text]]) => [
    h("dt", { text: name }),
    h("dd", { id: termId(term), text }),
  ]);
  dialog.append(
    h(
      "div",
      { class: "row spread" },
      h("h2", { text: "Keys" }),
      button({ icon: "close", label: "Close", press: () => dialog.close() }),
    ),
    h("table", {}, h("tbody", {}, ...rows)),
    h("h2", { text: "Terms" }),
    h("dl", { class: "terms" }, ...terms),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return {
    element: dialog,
    isOpen: () => dialog.open,
    close: () => dialog.close(),
    toggle: () => (dialog.open ? dialog.close() : dialog.showModal()),
  };
}
