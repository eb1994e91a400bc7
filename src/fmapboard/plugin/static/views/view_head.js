// @ts-check
/** Title and settings: the layer's name, role, order, colours, scale and comparison. */

import { ROLE_NAMES } from "../state/compare.js";
import { choice, h, say, segments, show } from "./dom.js";
import { stepText } from "../draw/number_text.js";
import { ROW_SHARE } from "../draw/tile_layout.js";
import { selected } from "../state/palette.js";
import { indexOf } from "../state/steps.js";
import { TILES } from "../state/state.js";
import { createCompare } from "./view_compare.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("../state/state.js").Palette} Palette */
/** @typedef {import("../state/state.js").Sort} Sort */
/** @typedef {import("../state/state.js").State} State */

const ROLES = /** @type {[Role, string][]} */ (Object.entries(ROLE_NAMES));

/** @param {App} app */
export function createHead(app) {
  const name = h("h1");
  const facts = h("p", { class: "facts" });
  const roles = segments("What is drawn", ROLES, (role) => app.update({ role }));
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
  const colours = choice("Colours; Signed has zero in the middle", (/** @type {Palette} */ value) =>
    app.update(selected(app.state, value)),
  );
  const scale = segments(
    "Scale",
    [
      ["channel", "Channel", "each channel between its own extremes"],
      ["layer", "Layer", "one scale for all channels of the layer"],
    ],
    (scale) => app.update({ scale }),
  );
  const lock = h("button", {
    type: "button",
    class: "toggle",
    text: "Lock over steps",
    title: "One scale for all kept steps, so that steps compare (l)",
    on: { click: () => app.update({ locked: !app.state.locked }) },
  });
  const size = choice("Tile", (value) => app.update({ tile: Number(value) }));
  const compare = createCompare(app);
  const ofMaps = h(
    "div",
    { class: "controls" },
    sample.element,
    h("div", { class: "group" }, h("span", { class: "label", text: "Scale" }), scale.element, lock),
    colours.element,
    sort.element,
    again,
    size.element,
    compare.element,
  );
  const element = h(
    "header",
    { class: "head" },
    h("div", { class: "title" }, name, facts),
    h("div", { class: "controls" }, roles.element, ofMaps),
  );

  /** @param {Model} model */
  function draw(model) {
    const { state, layer, scene } = model;
    say(name, layer ? (layer.name ? `${layer.name} · ${layer.label}` : layer.label) : "");
    say(facts, layer ? described(layer, scene, model.steps[indexOf(model.steps, state.step)]) : "");
    roles.draw(state.role, (id) => id === state.role || Boolean(layer?.roles.includes(id)));
    show(roles.element, (layer?.roles.length ?? 0) > 1);
    const kernels = state.role === "kernels"; // one scale, signed, the same for all samples
    const samples = layer?.samples ?? 1;
    show(sample.element, samples > 1 && !kernels);
    for (const each of [scale.element.parentElement, colours.element, sort.element]) {
      if (each) show(each, !kernels);
    }
    sample.fill(
      Array.from(
        { length: samples },
        (_, k) => /** @type {[string, string]} */ ([String(k), `Sample ${k}`]),
      ),
      String(state.sample),
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
        ["index", "Sort by index"],
        ["strength", "Sort by strength"],
        ["change", "Sort by change"],
        ["similarity", "Sort by similarity"],
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
  return { element, draw };
}

/** @param {number} side CSS px, 0 for automatic @param {boolean} rows */
function sizeText(side, rows) {
  if (!side) return rows ? "Rows auto" : "Tiles auto";
  return rows ? `Rows ${side / ROW_SHARE} px` : `Tiles ${side} px`;
}

/**
 * Facts about the layer and its picture, in words.
 * @param {import("../data/answers.js").Layer} layer
 * @param {import("../draw/scene.js").Scene|null} scene @param {number|undefined} asked step
 */
function described(layer, scene, asked) {
  const kernel = layer.kernel_shape ? ` ${layer.kernel_shape.join("×")}` : "";
  const said = [`${layer.type}${kernel}`];
  if (scene?.kind === "maps") {
    const { picture } = scene;
    said.push(
      picture.drawn < picture.channels
        ? `${picture.drawn} of ${picture.channels} channels drawn`
        : `${picture.channels} channels`,
    );
    const [height, width] = picture.tile;
    const size = scene.rows ? `${width} columns` : `${height}×${width} px`;
    const block = scene.rows ? `${picture.block} positions` : `${picture.block}×${picture.block}`;
    said.push(`${size}${picture.block > 1 ? `, each the mean of ${block}` : ""}`);
    if (picture.view) said.push(picture.view);
    if (picture.scale === "locked") {
      said.push("stored scale locked to the first step: later values may be cut off");
    }
  }
  if (scene) {
    const { step } = scene.question;
    said.push(
      asked !== undefined && asked !== step
        ? `step ${stepText(step)}, the last before ${stepText(asked)} that was kept`
        : `step ${stepText(step)}`,
    );
  }
  return said.join(" · ");
}
