// @ts-check
/** Title and toolbar: the layer's name; what is shown, how, and what it is compared with. */

import { ROLE_NAMES } from "../state/compare.js";
import { choice, h, say, segments, show } from "./dom.js";
import { GLOSSARY, explain } from "./glossary.js";
import { counted, stepText } from "../draw/number_text.js";
import { ROW_SHARE } from "../draw/tile_layout.js";
import { selected } from "../state/palette.js";
import { callName } from "../state/call_names.js";
import { wordOf } from "../state/step_words.js";
import { indexOf } from "../state/steps.js";
import { TILES } from "../state/state.js";
import { createGroup, createToolbar, labelled } from "./toolbar.js";
import { createCompare } from "./view_compare.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("../state/state.js").Palette} Palette */
/** @typedef {import("../state/state.js").Sort} Sort */
/** @typedef {import("../state/state.js").State} State */

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
 * @param {import("../data/answers.js").Layer} layer
 * @param {import("../draw/scene.js").Scene|null} scene @param {number|undefined} asked step
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
