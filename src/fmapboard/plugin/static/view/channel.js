// @ts-check
/** The parts of images that excite the open channel most, with their values. */

import { drawBand, drawLine, drawNonfinite, drawNow, frame, pickSteps } from "../chart/plot.js";
import { column, extent } from "../chart/series.js";
import { origin, sideName } from "../model/compare.js";
import { spanOf } from "../model/look.js";
import { cropsOf, isUnexcited } from "../model/patches.js";
import { flags, leftToRight } from "../model/scene.js";
import { drawnOf } from "../model/value_scale.js";
import { deadWord, kindOf, short, whole } from "../model/words.js";
import { theme } from "../picture/canvas.js";
import { drawnRange } from "../picture/captions.js";
import { valueAt } from "../server/decode.js";
import { createPicture } from "./channel_picture.js";
import { LINEAR, coloursOf, createKey, dashOf, ofColumns } from "./charts.js";
import { button, explain, h, say, show } from "./dom.js";
import { channelChange } from "./layer_rows.js";
import { Bar } from "./legend.js";
import { mount } from "./mount.js";
import { putPoint } from "./point.js";

// The parts of images that excite the open channel most, with their values.

/** @typedef {import("../model/patches.js").Crop} Crop */
/** @typedef {import("../model/patches.js").LayerPatches} LayerPatches */
/** @typedef {import("../model/patches.js").Shown} Shown */

/** Longer side of a crop, CSS px. */
const SIDE = 76;

const EXCITED = "Excited most by";

export function createPatches() {
  const about = h("span", { class: "value" });
  const heading = h("span", { text: EXCITED });
  const title = h("h3", {}, explain(heading, "patches"), about);
  const list = h("div", { class: "patches" });
  const note = h("p", { class: "note" });
  const element = h("div", { "data-part": "patches" }, title, list, note);
  /** What the crops are of. @type {LayerPatches|null} */
  let drawn = null;
  let channel = -1;

  /** @param {Shown|null} patches */
  function draw(patches) {
    show(element, patches !== null);
    if (!patches) return;
    const { found, problem } = patches;
    list.classList.toggle("old", !found);
    say(note, found ? noteText(found, patches.channel) : problem);
    show(note, Boolean(note.textContent));
    if (!found) return;
    say(about, aboutText(found, patches.step));
    if (found === drawn && channel === patches.channel) return;
    [drawn, channel] = [found, patches.channel];
    const crops = cropsOf(found, channel);
    say(heading, isUnexcited(crops) ? "Largest values, none above 0" : EXCITED);
    list.replaceChildren(...crops.map((crop, i) => figure(found, crop, i)));
  }
  return { element, draw };
}

/** @param {LayerPatches} found @param {number} step */
function aboutText({ header }, step) {
  const each = header.one_per_image ? ", one crop per image" : "";
  return `${header.images} images${each}, step ${step}`;
}

/** What is not shown, and why; "" for nothing. @param {LayerPatches} found @param {number} channel */
function noteText({ header, arrays, picture }, channel) {
  const { searched, channels } = header;
  if (channel >= searched) {
    return `Only channels 0…${searched - 1} of ${channels} were searched (--channels).`;
  }
  if (!picture) return "TensorBoard does not keep the picture of these patches.";
  const nan = arrays.nan?.values[channel] ?? 0;
  const lines = [];
  if (nan) lines.push(`${nan} NaN values were left out.`);
  if (header.lost_at) lines.push(`The field is given as the whole image: ${header.lost_at}.`);
  return lines.join(" ");
}

/** @param {LayerPatches} found @param {Crop} crop @param {number} rank from 0 */
function figure({ header, picture }, crop, rank) {
  const [height, width] = header.picture.cell;
  const canvas = h("canvas", { role: "img", "aria-label": cropText(crop, rank) });
  [canvas.width, canvas.height] = [width, height];
  const scale = SIDE / Math.max(width, height);
  canvas.style.width = `${Math.round(width * scale)}px`;
  canvas.style.height = `${Math.round(height * scale)}px`;
  const [left, top] = crop.corner;
  if (picture) {
    canvas.getContext("2d")?.drawImage(picture, left, top, width, height, 0, 0, width, height);
  }
  const caption = h("figcaption", { text: short(crop.value) });
  const made = h("figure", { title: cropText(crop, rank) }, canvas, caption);
  made.style.width = canvas.style.width;
  return made;
}

/** @param {Crop} crop @param {number} rank from 0 */
function cropText({ value, name, field, size, place }, rank) {
  const [top, left, bottom, right] = field;
  const [height, width] = size;
  const at = place.length ? ` at (${place.join(", ")})` : "";
  return (
    `${rank + 1}. ${name}: ${short(value)}${at}; ` +
    `rows ${top}…${bottom - 1}, columns ${left}…${right - 1} of ${height}×${width} px`
  );
}

// Draws a channel of a sequence as a line over positions, one per column.

const HEIGHT = 96;

/**
 * Values of a channel, one per position; NaN where it is not finite.
 * @param {import("../model/value_scale.js").Side} side @param {number} channel @returns {number[]}
 */
export function profile({ planes, lo, hi }, channel) {
  return Array.from(
    { length: planes.width },
    (_, x) => valueAt(planes, channel, 0, x, lo[channel], hi[channel]).value,
  );
}

export function createProfile() {
  const canvas = h("canvas", { class: "profile", role: "img" });
  const element = h("div", {}, h("h3", {}, h("span", { text: "Over positions" })), canvas);

  /**
   * @param {import("../model/scene.js").MapsScene} scene @param {number} channel
   * @param {number} width @param {string[]} colours of the columns
   */
  function draw(scene, channel, width, colours) {
    const lines = (scene.rows ? scene.columns : []).map(({ side }) =>
      side ? profile(side, channel) : [],
    );
    const values = lines.length ? extent(lines) : null;
    show(element, Boolean(values));
    if (!values) return;
    const block = scene.picture.block;
    const last = Math.max(...lines.map((line) => line.length)) - 1;
    const plot = frame(canvas, width, HEIGHT, [0, last * block], values);
    lines.forEach((line, i) =>
      drawLine(
        plot,
        line.map((_, x) => x * block),
        line,
        colours[i],
      ),
    );
    canvas.setAttribute(
      "aria-label",
      `channel ${channel} over positions, ${short(values[0])} to ${short(values[1])}`,
    );
  }
  return { element, draw };
}

// One channel enlarged: its maps, numbers and history.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/decode.js").Maps} Maps */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/compare.js").Question} Question */
/** @typedef {import("../model/scene.js").Part} Part */

const HISTORY = 110;

/** @param {App} app */
export function createChannel(app) {
  const name = h("h2");
  const parts = /** @type {Part[]} */ (["a", "b", "c", "d", "ab", "ac", "ad"]);
  const pictures = parts.map((part) =>
    createPicture(part, (point, isAsked) => {
      if (app.state.pixel || isAsked) putPoint(app, point);
    }),
  );
  const profile = createProfile();
  const patches = createPatches();
  const bar = mount(Bar);
  /** @type {HTMLInputElement} */
  const opacity = h("input", {
    type: "range",
    min: "0",
    max: "100",
    step: "5",
    class: "slider",
    "aria-label": "Opacity over the input image",
    on: { input: () => app.update({ overlay: Number(opacity.value) }) },
  });
  const over = h("button", {
    type: "button",
    class: "toggle",
    text: "Over input",
    title: "Lay the map over the network's input (o)",
    on: { click: () => app.toggleOverlay() },
  });
  const overlay = h("div", { class: "row overlay" }, over, opacity);
  const table = h("table", { class: "numbers" });
  const chart = h("canvas", { class: "chart", role: "img" });
  const overSteps = h("span");
  const chartTitle = h(
    "h3",
    {},
    overSteps,
    explain(
      h("span", { class: "value", text: `range, mean ± std of the whole batch · ${LINEAR}` }),
      "batch std",
    ),
  );
  const key = createKey();
  const hint = h("p", {
    class: "note",
    text: "Click a channel or press ] to enlarge it and read its values.",
  });
  const body = h(
    "div",
    { class: "channel-body" },
    h("div", { class: "pictures" }, ...pictures.map((each) => each.element)),
    profile.element,
    bar.element,
    overlay,
    patches.element,
    table,
    chartTitle,
    key.element,
    chart,
  );
  const element = h(
    "section",
    { class: "channel", "aria-label": "Channel" },
    h(
      "div",
      { class: "row spread" },
      name,
      h(
        "span",
        { class: "row" },
        button({
          text: "Film strip",
          label: "This channel at all steps in a row",
          key: "m",
          press: () => app.toggleFilm(),
        }),
        button({
          icon: "previous",
          label: "Channel before",
          key: "[",
          press: () => app.moveChannel(-1),
        }),
        button({ icon: "next", label: "Channel after", key: "]", press: () => app.moveChannel(1) }),
        button({
          icon: "close",
          label: "Close the channel",
          key: "Esc",
          press: () => app.update({ channel: null }),
        }),
      ),
    ),
    body,
    hint,
  );
  /** @type {number[]} */
  let steps = [];
  pickSteps(
    chart,
    () => steps,
    (step) => app.update({ step }),
  );

  /** @param {Model} model */
  function draw(model) {
    const { state, scene } = model;
    const channel = state.channel;
    const isShown = scene?.kind === "maps" && channel !== null && channel < scene.channels;
    element.classList.toggle("open", Boolean(isShown));
    show(body, Boolean(isShown));
    show(hint, scene?.kind === "maps" && !isShown);
    show(element, scene?.kind === "maps");
    if (!isShown || !scene || channel === null) return;
    say(name, `Channel ${channel}`);
    const width = element.clientWidth - 24;
    for (const each of pictures) each.draw(model, scene, channel, width);
    leftToRight(scene.columns).forEach((i, place) => {
      pictures[i].element.style.order = String(place - parts.length);
    });
    patches.draw(model.patches);
    profile.draw(scene, channel, width, ofColumns(scene, model.runs));
    show(bar.element, !scene.ownScale);
    bar.draw({
      range: drawnRange(scene, channel),
      palette: state.colours,
      title: drawnOf(scene, state),
    });
    show(overlay, model.hasInput && !scene.rows); // a sequence cannot be laid over an image
    over.setAttribute("aria-pressed", String(state.overlay > 0));
    show(opacity, state.overlay > 0);
    if (Number(opacity.value) !== state.overlay) opacity.value = String(state.overlay);
    numbersTable(table, scene, channel);
    steps = model.steps;
    history(model, scene, channel, width);
  }

  /** @param {Model} model @param {MapsScene} scene @param {number} channel @param {number} width */
  function history(model, scene, channel, width) {
    const curves = model.series.flatMap((series) => {
      const of = (/** @type {string} */ stat) => {
        const array = series.history?.arrays[`${series.role}.${stat}`];
        const known = array && channel < array.shape[1];
        return known ? column(array.values, array.shape[1], channel) : null;
      };
      const [low, high, mean, std] = [of("minimum"), of("maximum"), of("mean"), of("std")];
      const at = series.history?.steps ?? [];
      const bad = of("nonfinite")?.map((count) => (count > 0 ? NaN : 0)) ?? low ?? [];
      return low && high ? [{ series, at, low, high, mean, std, bad }] : [];
    });
    const values = extent(curves.flatMap(({ low, high }) => [low, high]));
    const span = spanOf(model.series);
    show(chart, Boolean(values));
    show(chartTitle, Boolean(values));
    key.draw(values ? model.series : [], model.runs);
    if (!values || !span) return;
    const unit = kindOf(model.stepWords);
    say(overSteps, `Over ${unit}s`);
    const plot = frame(chart, width, HISTORY, span, values, false, model.stepWords);
    curves.forEach(({ series, at, low, high, mean, std, bad }, i) => {
      const { line, band } = coloursOf(model.series, series, model.runs);
      if (i === 0) drawBand(plot, at, low, high, band);
      if (mean && std) {
        const edge = (/** @type {number} */ sign) => mean.map((m, k) => m + sign * std[k]);
        drawBand(plot, at, edge(-1), edge(1), band);
      }
      if (mean) drawLine(plot, at, mean, line, dashOf(model.series, series));
      drawNonfinite(plot, at, bad);
    });
    for (const at of new Set(scene.columns.map(({ question }) => question?.step))) {
      if (at !== undefined) drawNow(plot, at, theme().text);
    }
    chart.setAttribute(
      "aria-label",
      `channel ${channel} over ${unit}s, ${short(values[0])} to ${short(values[1])}`,
    );
  }
  return { element, draw };
}

const ROWS = /** @type {[string, string][]} */ ([
  ["minimum", "Minimum"],
  ["maximum", "Maximum"],
  ["mean", "Mean"],
  ["std", "Std"],
  ["nan", "NaN"],
  ["positive_infinity", "+Inf"],
  ["negative_infinity", "−Inf"],
]);

/** @param {HTMLElement} table @param {MapsScene} scene @param {number} channel */
function numbersTable(table, scene, channel) {
  const all = scene.columns.map((each) => each.question);
  /** @type {{maps: Maps, question: Question, letters: string}[]} */
  const sides = [];
  for (const i of leftToRight(scene.columns)) {
    const { maps, question, letter } = scene.columns[i];
    if (!maps || !question) continue;
    // The numbers are of the whole batch: two samples share them.
    const same = sides.find((each) => each.maps === maps && each.question.role === question.role);
    if (same) same.letters += `, ${letter}`;
    else sides.push({ maps, question, letters: letter });
  }
  const batch = (/** @type {"th"|"td"} */ tag, /** @type {string|null} */ scope) =>
    explain(/** @type {HTMLElement} */ (h(tag, { scope, text: "whole batch" })), "batch");
  const rows = [];
  if (sides.length === 1) {
    rows.push(h("tr", {}, h("td"), batch("th", "col")));
  } else {
    const heading = (/** @type {typeof sides[number]} */ { question, letters }) => {
      const name = sides.length > 2 ? letters : `${letters}: ${sideName(question, all)}`;
      return h("th", { scope: "col", text: name, title: origin(question) });
    };
    rows.push(h("tr", {}, batch("td", null), ...sides.map(heading)));
  }
  for (const [stat, text] of ROWS) {
    const cells = sides.map(({ maps, question }) => {
      const array = maps.arrays[`${question.role}.${stat}`];
      return array ? array.values[channel] : NaN;
    });
    const count = ["nan", "positive_infinity", "negative_infinity"].includes(stat);
    if (count && !cells.some((value) => value > 0)) continue;
    rows.push(
      h(
        "tr",
        {},
        stat === "std"
          ? explain(h("th", { scope: "row", text }), "std")
          : h("th", { scope: "row", text }),
        ...cells.map((value) => h("td", { text: count ? whole(value || 0) : short(value, 4) })),
      ),
    );
  }
  const changes = sides.map(({ maps, question }) => channelChange(maps, question.role, channel));
  const states = sides.map(({ maps, question }) => {
    const of = flags(maps, question.role, channel);
    const bad = of.nan + of.positive + of.negative > 0;
    return (
      [
        bad && "non-finite",
        of.large && "large",
        of.dead && (of.after ? `${deadWord()} after its ${of.after}` : deadWord()),
        of.constant && "constant",
      ]
        .filter(Boolean)
        .join(", ") || "no fault found"
    );
  });
  rows.push(
    h(
      "tr",
      {},
      explain(h("th", { scope: "row", text: "Change" }), "change"),
      ...changes.map((text) => h("td", { text })),
    ),
    h(
      "tr",
      {},
      explain(h("th", { scope: "row", text: "State" }), "nonfinite large dead constant"),
      ...states.map((text) => h("td", { text })),
    ),
  );
  table.replaceChildren(...rows);
  table.title =
    "Over all images of the batch and all positions of the map, as measured in training";
}
