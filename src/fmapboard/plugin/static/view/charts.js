// @ts-check
/** The values of a chart at the current step, each with the colour of its line. */

import {
  drawBand,
  drawHeat,
  drawLine,
  drawNonfinite,
  drawNow,
  drawZeros,
  frame,
  pickSteps,
} from "../chart/plot.js";
import { axisOf, extent, heat, line, rangeLines, shareOf, tagsOf } from "../chart/series.js";
import { ROLE_NAMES, layerText, middle } from "../model/compare.js";
import { ofLayers, spanOf } from "../model/look.js";
import { CHOICES } from "../model/state.js";
import { deadWord, kindOf, short, stepText } from "../model/words.js";
import { runColour, theme } from "../picture/canvas.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";
import { explain, h, say, segments, show } from "./dom.js";
import { mount } from "./mount.js";
import { RunName } from "./runs.js";

// The values of a chart at the current step, each with the colour of its line.

/** What is shown, per element. @type {WeakMap<HTMLElement, string>} */
const drawn = new WeakMap();

/**
 * Fills the heading of a chart, if that changes it.
 * @param {HTMLElement} element @param {{text: string, colour: string}[]} lines colour "" for none
 * @param {boolean} nonfinite the chart marks steps with values that are not finite
 */
export function keyed(element, lines, nonfinite = false) {
  const all = nonfinite
    ? [...lines, { text: "non-finite", colour: FAULT_COLOURS.nonfinite }]
    : lines;
  const now = JSON.stringify(all.map(({ text, colour }) => [text, colour]));
  if (drawn.get(element) === now && element.childElementCount) return;
  drawn.set(element, now);
  element.replaceChildren(
    ...all.flatMap(({ text, colour }, i) => {
      const swatch = colour ? h("i", { class: "swatch" }) : "";
      if (swatch) swatch.style.background = colour;
      return [i > 0 ? " · " : "", swatch, text];
    }),
  );
  element.title = all.map(({ text }) => text).join(" · ");
}

// A chart over steps with a heading and the values at the current step; a click chooses a step.

/** @typedef {ReturnType<typeof createChart>} Chart */

/** @param {string} title @param {import("../app.js").App} app @param {Node|null} more below the heading */
export function createChart(title, app, more = null) {
  const canvas = h("canvas", { role: "img", class: "chart" });
  const value = h("span", { class: "value" });
  const heading = h("span", { text: title });
  const element = h("section", {}, h("h3", {}, heading, value), more, canvas);
  /** @type {number[]} */
  let steps = [];
  pickSteps(
    canvas,
    () => steps,
    (step) => app.update({ step }),
  );
  return {
    element,
    canvas,
    value,
    heading,
    setSteps: (/** @type {number[]} */ now) => {
      steps = now;
    },
  };
}

// Colours and dashes of the curves of several columns, and their key above a chart.

/** @typedef {import("../server/routes.js").RunEntry} RunEntry */
/** @typedef {import("../model/look.js").Series} Series */

/** Dashes of further series of one run, px. @type {readonly number[][]} */
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

/**
 * Colour of a series: the run's if there are several series, otherwise the theme's.
 * @param {readonly Series[]} all @param {Series} series @param {readonly RunEntry[]} runs
 */
export function coloursOf(all, series, runs) {
  if (all.length < 2) return { line: theme().accent, band: theme().band };
  const line = runColour(series.run, runs);
  return { line, band: `color-mix(in srgb, ${line} 20%, transparent)` };
}

/**
 * Dashes of a series: another one for each series of the same run.
 * @param {readonly Series[]} all @param {Series} series
 */
export function dashOf(all, series) {
  const ofRun = all.filter(({ run }) => run === series.run);
  return DASHES[Math.max(0, ofRun.indexOf(series)) % DASHES.length];
}

/**
 * Colour of each column of a scene.
 * @param {import("../model/scene.js").MapsScene} scene @param {readonly RunEntry[]} runs
 */
export function ofColumns({ columns }, runs) {
  if (columns.length < 2) return [theme().accent];
  const plain = [theme().accent, theme().second, theme().text, theme().muted];
  const names = columns.map(({ question }) => question?.run);
  const distinct = new Set(names).size === columns.length;
  return columns.map(({ question }, i) =>
    distinct && question ? runColour(question.run, runs) : plain[i],
  );
}

/** The key of a chart: per series its line, columns and run, and its layer if that has another name. */
export function createKey() {
  const element = h("ul", { class: "key", "aria-label": "Key of the curves" });
  let before = "";

  /** @param {readonly Series[]} all @param {readonly RunEntry[]} runs */
  function draw(all, runs) {
    show(element, all.length > 1);
    if (all.length < 2) return;
    const main = all[0];
    const facts = all.map((each) => ({
      ...{ run: each.run, letters: each.letters, waits: !each.history },
      ...{ colour: coloursOf(all, each, runs).line, dash: dashOf(all, each) },
      layer: each.layer.key === main.layer.key ? "" : layerText(each.layer.key),
      role: each.role === main.role ? "" : (ROLE_NAMES[each.role] ?? each.role),
    }));
    const now = JSON.stringify(facts);
    if (now === before) return;
    before = now;
    element.replaceChildren(
      ...facts.map(({ run, letters, colour, dash, layer, role, waits }) => {
        const name = mount(RunName);
        name.draw({ run, colour });
        const stroke = h("i", { class: dash.length ? "stroke dashed" : "stroke" });
        stroke.style.borderColor = colour;
        const more = [layer, role, waits ? "loading" : ""].filter(Boolean).join(" · ");
        return h(
          "li",
          {},
          stroke,
          h("b", { text: letters }),
          name.element,
          more ? h("span", { text: more }) : null,
        );
      }),
    );
  }
  return { element, draw };
}

// Charts with curves of all columns: numbers per parameter, shares of faulty channels, range.

export const HEIGHT = 96;

/**
 * What all charts share.
 * @typedef {object} At
 * @property {number} width CSS px
 * @property {number} step of the slider
 * @property {[number, number]} span first and last step
 * @property {number[]} steps of the main run
 * @property {number[]} pinned steps of the columns
 * @property {import("../model/words.js").Words} words names of the main run's steps
 * @property {Series[]} all the main column's series first
 * @property {readonly RunEntry[]} runs
 *
 */

/** Lines at the steps of the slider and of the columns. @param {import("../chart/plot.js").Frame} plot @param {At} at */
function drawSteps(plot, { step, pinned }) {
  for (const each of new Set([step, ...pinned])) drawNow(plot, each, theme().text);
}

/** @param {ArrayLike<number>} values @param {number[]} steps @param {number} step */
function valueAtStep(values, steps, step) {
  const i = indexOf(steps, step);
  return i < 0 ? NaN : values[i];
}

/** @param {Chart} of @param {At} at */
export const norms = (of, at) => perParameter(of, at, "gradient_norm", "gradient norm");

/** With the band that docs/checks.md gives as healthy. @param {Chart} of @param {At} at */
export const ratios = (of, at) => perParameter(of, at, "update_ratio", "update ratio", HEALTHY);

/** Update ratios of healthy training. */
const HEALTHY = /** @type {[number, number]} */ ([1e-4, 4e-2]);

/**
 * One line per parameter of the layer.
 * @param {Chart} of @param {At} at
 * @param {string} group of the scalars @param {string} word what they are
 * @param {[number, number]|null} usual a range that is always in sight, as a band
 */
function perParameter(of, at, group, word, usual = null) {
  const lines = at.all.flatMap((series) => parameterLines(series, at, group));
  show(of.element, lines.length > 0);
  if (!lines.length) return false;
  of.setSteps(at.steps);
  const axis = axisOf(
    lines.map((each) => each.values),
    usual,
  );
  const plot = frame(of.canvas, at.width, HEIGHT, at.span, axis.values, axis.log, at.words);
  if (usual) drawBand(plot, at.span, [usual[0], usual[0]], [usual[1], usual[1]], theme().band);
  for (const { steps, values: drawn, colour, dash } of lines) {
    drawLine(plot, steps, drawn, colour, dash);
    drawNonfinite(plot, steps, drawn);
    if (axis.log) drawZeros(plot, steps, drawn, colour);
  }
  drawSteps(plot, at);
  const texts = lines.map(({ name, steps, values: drawn, colour }) => {
    const value = valueAtStep(drawn, steps, at.step);
    const of = steps[indexOf(steps, at.step)];
    const other = of === undefined || of === at.step ? "" : ` (step ${stepText(of)})`;
    return {
      text: `${name} ${Number.isNaN(value) ? "NaN" : short(value, usual ? 2 : 3)}${other}`,
      colour,
    };
  });
  texts.push({ text: axis.log ? "logarithmic axis" : LINEAR, colour: "" });
  const bad = lines.some((each) => !Array.from(each.values).every(Number.isFinite));
  if (axis.log && lines.some((each) => Array.from(each.values).includes(0)))
    texts.push({ text: "▾ at the lower edge: 0", colour: "" });
  if (usual)
    texts.push({ text: `healthy ${usual.map((v) => short(v)).join(" … ")}`, colour: theme().band });
  keyed(of.value, texts, bad);
  of.canvas.setAttribute(
    "aria-label",
    `${word} over ${kindOf(at.words)}s: ${of.value.textContent}`,
  );
  return true;
}

/**
 * The numbers of a series, one line per parameter.
 * @param {Series} series @param {At} at @param {string} group
 */
function parameterLines(series, { all, runs }, group) {
  const scalars = series.numbers?.scalars ?? {};
  const tags = tagsOf(scalars, group).filter((tag) => !tag.endsWith(`${group}/total`));
  const several = all.length > 1;
  const plain = [theme().accent, theme().second];
  return tags.map((tag, i) => ({
    ...line(scalars[tag]),
    name: `${several ? `${series.letters}: ` : ""}${tag.split(".").pop()}`,
    colour: several ? coloursOf(all, series, runs).line : plain[Math.min(i, 1)],
    dash: several && i ? [2, 3] : dashOf(all, series),
  }));
}

/** What is said of an axis without decades. */
export const LINEAR = "linear axis";

const FAULTS = /** @type {[string, string, number[]][]} */ ([
  ["dead", FAULT_COLOURS.dead, []],
  ["constant", FAULT_COLOURS.constant, [6, 3]],
  ["nonfinite", FAULT_COLOURS.nonfinite, [2, 3]],
]);

/** Shares of dead, constant and non-finite channels. @param {Chart} of @param {At} at */
export function shares(of, at) {
  const role = "feature_maps";
  const several = at.all.length > 1;
  const found = at.all.flatMap((series) =>
    FAULTS.flatMap(([name, colour, dash]) => {
      const { history, letters, layer } = series;
      const values = history ? shareOf(history, `${role}.${name}`) : [];
      if (!history || !values.length) return [];
      const own = several
        ? { colour: coloursOf(at.all, series, at.runs).line, dash }
        : { colour, dash: [] };
      const drawn = history.arrays[`${role}.mean`]?.shape[1] ?? layer.channels;
      const among = drawn < layer.channels ? ` of ${drawn} drawn` : "";
      const fault = name === "nonfinite" ? "non-finite" : name === "dead" ? deadWord() : name;
      const now = Math.round(100 * valueAtStep(values, history.steps, at.step));
      const any = values.some((value) => value > 0);
      const text = `${several ? `${letters}: ` : ""}${fault} ${now} %${among}`;
      return [{ steps: history.steps, values, any, text, ...own }];
    }),
  );
  const shown = several ? found.filter((each) => each.any) : found;
  const any = found.some((each) => each.any);
  show(of.element, found.length > 0);
  if (!found.length) return false;
  of.setSteps(at.steps);
  show(of.canvas, any);
  if (any) keyed(of.value, [...shown, { text: LINEAR, colour: "" }]);
  else say(of.value, `none at any ${kindOf(at.words)}`);
  if (several) of.value.title = `solid: ${deadWord()}; dashed: constant; dotted: non-finite`;
  if (!any) return true;
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, [0, 1], false, at.words);
  for (const { steps, values, colour, dash } of shown) drawLine(plot, steps, values, colour, dash);
  drawSteps(plot, at);
  of.canvas.setAttribute(
    "aria-label",
    `share of faulty channels over ${kindOf(at.words)}s: ${of.value.textContent}`,
  );
  return true;
}

/** @param {Chart} of @param {At} at */
export function ranges(of, at) {
  const found = at.all.flatMap((series) => {
    const ends = series.history && rangeLines(series.history);
    return ends ? [{ series, ...ends }] : [];
  });
  show(of.element, found.length > 0);
  if (!found.length) return false;
  const values = extent(found.flatMap(({ least, most }) => [least, most]));
  of.setSteps(at.steps);
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, values ?? [0, 1], false, at.words);
  for (const { series, steps, least, most, finite } of found) {
    const { line: colour, band } = coloursOf(at.all, series, at.runs);
    const dash = dashOf(at.all, series);
    drawBand(plot, steps, least, most, band);
    drawLine(plot, steps, least, colour, dash);
    drawLine(plot, steps, most, colour, dash);
    drawNonfinite(plot, steps, finite);
  }
  drawSteps(plot, at);
  const texts = found.map(({ series, steps, least, most, isOfAll }) => {
    const [low, high] = [least, most].map((ends) => short(valueAtStep(ends, steps, at.step)));
    const { drawn, channels } = series.layer;
    const among = !isOfAll && drawn < channels ? ` of ${drawn} drawn channels` : "";
    const text = `${found.length > 1 ? `${series.letters}: ` : ""}${low} … ${high}${among}`;
    return { text, colour: coloursOf(at.all, series, at.runs).line };
  });
  texts.push({ text: LINEAR, colour: "" });
  const bad = found.some(({ finite }) => finite.some(Number.isNaN));
  keyed(of.value, texts, bad);
  of.canvas.setAttribute("aria-label", `range over ${kindOf(at.words)}s: ${of.value.textContent}`);
  return true;
}

// Charts of a layer over steps: histogram, gradient norm, update ratio, shares of faulty channels, range.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/routes.js").HistogramChart} HistogramSeries */
/** @typedef {import("../server/routes.js").NumbersAnswer} NumbersAnswer */
/** @typedef {import("../model/state.js").HistogramGroup} HistogramGroup */

/** Longest name of a layer in a heading, characters. */
const LONGEST = 36;

/** @param {App} app */
export function createCharts(app) {
  /** @type {ReturnType<typeof segments<HistogramGroup>>} */
  const which = segments(
    "Histogram of",
    [
      ["activations", "Activations"],
      ["weights", "Weights"],
      ["gradients", "Gradients"],
    ],
    (histogram) => app.update({ histogram }),
  );
  const histogram = createChart("Histogram over steps", app, which.element);
  const norm = createChart("Gradient norm", app);
  const ratio = createChart("Update ratio", app);
  const share = createChart("Faulty channels", app);
  const range = createChart("Range of the layer", app);
  explain(histogram.heading, "histogram");
  explain(norm.heading, "norm");
  explain(ratio.heading, "ratio");
  explain(share.heading, "dead constant nonfinite");
  explain(range.heading, "range batch");
  const nothing = h("p", {
    class: "note",
    text: "No histograms or norms of this layer were logged.",
  });
  const key = createKey();
  const title = h("h2");
  const element = h(
    "div",
    { class: "charts" },
    title,
    key.element,
    histogram.element,
    norm.element,
    ratio.element,
    share.element,
    range.element,
    nothing,
  );

  /** @param {Model} model */
  function draw(model) {
    const { numbers, layer, state } = model;
    show(element, Boolean(layer));
    if (!layer) return;
    const width = element.clientWidth - 24;
    const step = model.steps[indexOf(model.steps, state.step)];
    const all = ofLayers(model.series);
    const several = all.length > 1;
    /** @type {[number, number]} */
    const own = [model.steps[0], model.steps[model.steps.length - 1]];
    key.draw(all, model.runs);
    const unit = kindOf(model.stepWords);
    say(title, `Layer over ${unit}s`);
    say(histogram.heading, `Histogram over ${unit}s`);
    if (!model.steps.length || width < 60) return;
    const span = (several && spanOf(all)) || own;
    const pinned = (model.scene?.columns ?? []).flatMap(({ question }) => question?.step ?? []);
    const at = {
      width,
      step,
      span,
      steps: model.steps,
      pinned,
      all,
      runs: model.runs,
      words: model.stepWords,
    };
    const drawn = [
      histograms(histogram, which, numbers, state.histogram, { ...at, span: own }),
      norms(norm, at),
      ratios(ratio, at),
      shares(share, at),
      ranges(range, at),
    ];
    show(nothing, Boolean(numbers) && !drawn.some(Boolean));
  }
  return { element, draw };
}

/** @type {WeakMap<HistogramSeries, ReturnType<typeof heat>>} */
const heats = new WeakMap();

/** The heat map of a series, computed once per answer. @param {HistogramSeries} raw */
function heatOf(raw) {
  if (!heats.has(raw)) heats.set(raw, heat(raw, 32));
  return heats.get(raw) ?? null;
}

/**
 * @param {Chart} of @param {ReturnType<typeof segments<HistogramGroup>>} which
 * @param {NumbersAnswer|null} numbers @param {HistogramGroup} chosen @param {At} at
 */
function histograms(of, which, numbers, chosen, at) {
  const all = numbers?.histograms ?? {};
  const tags = (/** @type {string} */ group) => tagsOf(all, group);
  const groups = CHOICES.histogram.filter((group) => tags(group).length);
  const group = groups.includes(chosen) ? chosen : groups[0];
  show(of.element, Boolean(group));
  if (!group) return false;
  which.draw(group, (id) => groups.includes(id));
  show(which.element, groups.length > 1);
  const tag = tags(group)[0];
  const made = heatOf(all[tag]);
  const whose = at.all.length > 1 ? `${at.all[0].letters}: ` : "";
  const name = middle(tag.slice(tag.indexOf("/") + 1), LONGEST);
  say(of.value, made ? `${whose}${name} · ${LINEAR}` : "nothing finite");
  of.value.title = tag;
  if (!made) return true;
  of.setSteps(at.steps);
  const plot = frame(
    of.canvas,
    at.width,
    HEIGHT + 24,
    at.span,
    [made.lo, made.hi],
    false,
    at.words,
  );
  drawHeat(plot, made);
  drawNow(plot, at.step, theme().accent);
  const unit = kindOf(at.words);
  of.canvas.setAttribute(
    "aria-label",
    `${tag} over ${unit}s, ${short(made.lo)} to ${short(made.hi)}`,
  );
  return true;
}
