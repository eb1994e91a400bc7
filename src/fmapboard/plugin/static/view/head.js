// @ts-check
/** A row of groups of controls; groups that do not fit into the window become menus. */

import { ROLE_NAMES, partners } from "../model/compare.js";
import { selected } from "../model/overview.js";
import { MOST, TILES, comparesKernels, newColumn } from "../model/state.js";
import { callName, counted, stepText, wordOf } from "../model/words.js";
import { ROW_SHARE } from "../picture/tile_layout.js";
import { indexOf } from "../server/steps.js";
import { choice, h, icon, say, segments, show } from "./dom.js";
import { GLOSSARY, explain } from "./help.js";

// A row of groups of controls; groups that do not fit into the window become menus.

/** @typedef {ReturnType<typeof createGroup>} Group */

/**
 * A labelled group of controls.
 * @param {string} label short and visible @param {string} what the group is for, as a tooltip
 * @param {Element[]} controls
 */
export function createGroup(label, what, ...controls) {
  const id = `group-${label.toLowerCase()}`;
  const button = h(
    "button",
    {
      type: "button",
      class: "fold",
      title: what,
      "aria-expanded": "false",
      "aria-controls": id,
      on: { click: () => open(button.getAttribute("aria-expanded") !== "true") },
    },
    h("span", { text: label }),
    icon("open"),
  );
  const body = h("div", { class: "toolgroup-body", id }, ...controls);
  const element = h(
    "div",
    { class: "toolgroup", role: "group", "aria-label": label },
    h("span", { class: "label", title: what, text: label }),
    button,
    body,
  );

  /** Opens or closes the menu. @param {boolean} shown */
  function open(shown) {
    button.setAttribute("aria-expanded", String(shown));
    element.classList.toggle("open", shown);
    if (!shown) return;
    body.style.left = "0";
    const over = body.getBoundingClientRect().right - (window.innerWidth - 4);
    if (over > 0) body.style.left = `${-over}px`;
  }
  const isOpen = () => element.classList.contains("open");
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    event.stopPropagation(); // the channel stays open
    open(false);
    button.focus();
  });
  element.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget instanceof Node && !element.contains(relatedTarget)) open(false);
  });
  document.addEventListener("pointerdown", ({ target }) => {
    if (isOpen() && target instanceof Node && !element.contains(target)) open(false);
  });
  return {
    element,
    isOpen,
    fold: (/** @type {boolean} */ folded) => element.classList.toggle("folded", folded),
  };
}

/**
 * A group of controls within a group, with a name of its own.
 * @param {string} text @param {string} term of the glossary @param {Element[]} controls
 */
export function labelled(text, term, ...controls) {
  const label = h("span", { class: "sublabel", text });
  return h("div", { class: "labelled" }, explain(label, term), ...controls);
}

/**
 * The row; as many groups as necessary are folded, those named first in `folding` first.
 * @param {Group[]} groups from left to right @param {Group[]} folding
 */
export function createToolbar(groups, folding) {
  const element = h("div", { class: "toolbar" }, ...groups.map((group) => group.element));
  let width = -1;

  function fit() {
    if (element.hidden || groups.some((group) => group.isOpen())) return;
    width = element.clientWidth;
    for (const group of groups) group.fold(false);
    for (const group of folding) {
      if (element.scrollWidth <= element.clientWidth) return;
      group.fold(true);
    }
  }
  // Whatever a view shows, hides or fills changes the width that is needed.
  new MutationObserver(fit).observe(element, {
    subtree: true,
    childList: true,
    characterData: true,
    attributeFilter: ["hidden"],
  });
  new ResizeObserver(() => element.clientWidth !== width && fit()).observe(element);
  void document.fonts.ready.then(fit);
  return { element, fit };
}

// Controls of the comparison as a whole: another column, how it is drawn, the ranking of layers.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../model/state.js").Kind} Kind */

const KINDS = /** @type {[Kind, string][]} */ ([
  ["step", "another step"],
  ["run", "another run"],
  ["sample", "another sample"],
  ["role", "inputs or gradients"],
]);

/** @param {App} app */
export function createCompare(app) {
  const kind = choice("Compare with", (/** @type {Kind|"off"|""} */ value) => {
    if (value) app.compare(value);
    else app.redraw();
  });
  const view = segments(
    "How to compare",
    [
      ["both", "Side by side"],
      ["difference", "Difference", "column A minus each other column"],
      ["all", "Both"],
    ],
    (value) => app.update({ show: value }),
  );
  const rank = h("button", {
    type: "button",
    class: "toggle",
    text: "Rank layers",
    title: "List the layers by how much a column differs from column A",
    on: { click: () => app.update({ rank: app.state.rank ? 0 : 1 }) },
  });
  const element = h("div", { class: "group compare" }, kind.element, view.element, rank);

  /** @param {Model} model */
  function draw(model) {
    const { state, layer } = model;
    const on = state.columns.length > 0;
    const runs = partners(state.run, model.runs);
    const full = state.columns.length >= MOST;
    const isKernels = state.role === "kernels";
    const offered = KINDS.filter(([id]) => {
      const column = full ? null : newColumn(id, state, layer, runs);
      return column && (!isKernels || comparesKernels(column));
    });
    /** @type {[Kind|"off"|"", string][]} */
    const options = [
      ["", on ? "Add a column …" : "Compare with …"],
      .../** @type {[Kind, string][]} */ (offered),
    ];
    if (full) options[0][1] = `${MOST + 1} columns`;
    if (on) options.push(["off", "Remove all columns"]);
    kind.fill(options, "");
    show(view.element, on);
    show(rank, on && !isKernels && !app.report);
    rank.setAttribute("aria-pressed", String(state.rank > 0));
    view.draw(state.show);
  }
  return { element, draw };
}

// Title and toolbar: the layer's name; what is shown, how, and what it is compared with.

/** @typedef {import("../server/answers.js").Role} Role */
/** @typedef {import("../model/state.js").Palette} Palette */
/** @typedef {import("../model/state.js").Sort} Sort */
/** @typedef {import("../model/state.js").State} State */

const ROLES = Object.entries(ROLE_NAMES).map(
  ([role, text]) =>
    /** @type {[Role, string, string]} */ ([role, text, GLOSSARY[text.toLowerCase()]?.[1] ?? text]),
);

/** @type {[Role|"attribution", string, string]} */
const ATTRIBUTION = ["attribution", "Attribution", GLOSSARY.attribution[1]];

/** @param {App} app */
export function createHead(app) {
  const name = h("h1");
  const facts = h("p", { class: "facts" });
  const roles = segments("What is drawn", [...ROLES, ATTRIBUTION], (role) =>
    app.update(role === "attribution" ? { view: role } : { view: "maps", role }),
  );
  const sample = choice("Sample", (value) => app.update({ sample: Number(value) }));
  const sort = choice("Sort", (/** @type {Sort} */ value) =>
    app.update({ sort: value, sort_step: app.shownStep() }),
  );
  const again = h("button", {
    type: "button",
    class: "again",
    text: "Re-sort",
    on: { click: () => app.update({ sort_step: app.shownStep() }) },
  });
  const colours = choice("Colours", (/** @type {Palette} */ value) =>
    app.update(selected(app.state, value)),
  );
  const scale = segments(
    "Scale",
    [
      ["channel", "Channel", "each channel between its own extremes (s)"],
      ["layer", "Layer", "one scale for all channels of the layer (s)"],
    ],
    (scale) => app.update({ scale }),
  );
  const lock = h("button", {
    type: "button",
    class: "toggle",
    text: "Lock",
    "aria-label": "Lock the scale over steps",
    on: { click: () => app.update({ locked: !app.state.locked }) },
  });
  explain(lock, "locked", "Lock the scale over steps (l)");
  const size = choice("Tile", (value) => app.update({ tile: Number(value) }));
  explain(sample.select, "sample");
  explain(sort.select, "sort strength similarity change");
  explain(colours.select, "colours");
  explain(size.select, "tile");
  const compare = createCompare(app);
  const what = createGroup("Data", "What is shown", roles.element, sample.element);
  const ofMaps = [
    labelled("scale", "scale", scale.element, lock),
    labelled("colours", "colours", colours.element),
    labelled("sort", "sort", sort.element, again),
  ];
  const tiles = labelled("tiles", "tile", size.element);
  const how = createGroup("Display", "How it is drawn", ...ofMaps, tiles);
  const against = createGroup("Compare", "What it is compared with", compare.element);
  const toolbar = createToolbar([what, how, against], [how, against, what]);
  const element = h("header", { class: "head" }, h("div", { class: "title" }, name, facts));

  /** @param {Model} model */
  function draw(model) {
    const { state, layer, scene } = model;
    say(name, layer ? callName(layer) : "");
    const asked = model.steps[indexOf(model.steps, state.step)];
    say(facts, layer ? described(layer, scene, asked, model.stepWords) : "");
    if (scene?.kind === "maps" && scene.picture.block > 1) explain(facts, "block");
    else facts.removeAttribute("title");
    const { attribution } = model;
    const isAttribution = Boolean(attribution && state.view === "attribution");
    roles.draw(isAttribution ? "attribution" : state.role, (id) =>
      id === "attribution"
        ? Boolean(attribution)
        : id === state.role || Boolean(layer?.roles.includes(id)),
    );
    show(roles.element, (layer?.roles.length ?? 0) + Number(Boolean(attribution)) > 1);
    const kernels = state.role === "kernels" && !isAttribution; // the same for all samples
    const samples = isAttribution ? (attribution?.samples ?? 1) : (layer?.samples ?? 1);
    show(sample.element, samples > 1 && !kernels);
    for (const group of [how, against]) show(group.element, !isAttribution);
    for (const each of ofMaps) show(each, !kernels);
    show(what.element, !roles.element.hidden || !sample.element.hidden);
    sample.fill(
      Array.from(
        { length: samples },
        (_, k) => /** @type {[string, string]} */ ([String(k), `Sample ${k}`]),
      ),
      String(isAttribution ? attribution?.sample : state.sample),
    );
    scale.draw(state.scale);
    lock.setAttribute("aria-pressed", String(state.locked));
    colours.fill(
      [
        ["grey", "Grey"],
        ["viridis", "Viridis"],
        ["magma", "Magma"],
        ["signed", "Signed"],
      ],
      state.colours,
    );
    sort.fill(
      [
        ["index", "by index"],
        ["strength", "by strength"],
        ["change", "by change"],
        ["similarity", "by similarity"],
      ],
      state.sort,
    );
    const moved =
      ["strength", "similarity"].includes(state.sort) &&
      state.sort_step !== null &&
      state.sort_step !== app.shownStep();
    show(again, moved && !kernels);
    again.title = `The order is that of step ${state.sort_step}, and stays while steps change; take it from this step`;
    size.fill(
      TILES.map((side) => [String(side), sizeText(side, Boolean(scene?.rows))]),
      String(state.tile),
    );
    compare.draw(model);
  }
  return { element, toolbar: toolbar.element, draw };
}

/** @param {number} side CSS px, 0 for automatic @param {boolean} rows */
function sizeText(side, rows) {
  if (!side) return "auto";
  return `${rows ? side / ROW_SHARE : side} px`;
}

/**
 * Facts about the layer and its picture, in words.
 * @param {import("../server/answers.js").Layer} layer
 * @param {import("../model/scene.js").Scene|null} scene @param {number|undefined} asked step
 * @param {Record<string, string>} words for steps
 */
function described(layer, scene, asked, words) {
  const kernel = layer.kernel_shape ? ` ${layer.kernel_shape.join("×")}` : "";
  const said = [`${layer.type}${kernel}`];
  if (scene?.kind === "maps") {
    const { picture } = scene;
    said.push(
      picture.drawn < picture.channels
        ? `${picture.drawn} of ${picture.channels} channels drawn`
        : counted(picture.channels, "channel"),
    );
    const [height, width] = picture.tile;
    const size = scene.rows ? counted(width, "column") : `${height}×${width} px`;
    const block = scene.rows ? `${picture.block} positions` : `${picture.block}×${picture.block}`;
    said.push(`${size}${picture.block > 1 ? `, each the mean of ${block}` : ""}`);
    if (picture.view) said.push(picture.view);
    if (picture.scale === "locked") {
      said.push("stored scale locked to the first step: later values may be cut off");
    }
  }
  if (scene) {
    const { step } = scene.question;
    const text = wordOf(words, step);
    said.push(
      asked !== undefined && asked !== step
        ? `${text}, the last before ${stepText(asked)} that was kept`
        : text,
    );
  }
  return said.join(" · ");
}
