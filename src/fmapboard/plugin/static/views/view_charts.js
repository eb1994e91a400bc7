// @ts-check
/** Charts of a layer over steps: histogram, gradient norm, shares of faulty channels, range. */

import { h, say, segments, show } from "./dom.js";
import { drawBand, drawHeat, drawLine, drawNonfinite, drawNow, frame } from "../draw/plot.js";
import { extent, heat, line, rangeLines, shareOf, tagsOf } from "../draw/chart_series.js";
import { short } from "../draw/number_text.js";
import { CHOICES } from "../state/state.js";
import { indexOf } from "../state/steps.js";
import { ofLayers, spanOf } from "../state/series.js";
import { theme } from "../draw/theme.js";
import { FAULT_COLOURS } from "../draw/palettes.js";
import { middle } from "../state/run_search.js";
import { keyed } from "./chart_key.js";
import { explain } from "./glossary.js";
import { createChart } from "./chart.js";
import { coloursOf, createKey, dashOf } from "./series_key.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").HistogramSeries} HistogramSeries */
/** @typedef {import("../data/answers.js").NumbersAnswer} NumbersAnswer */
/** @typedef {import("../data/answers.js").RunEntry} RunEntry */
/** @typedef {import("../state/series.js").Series} Series */
/** @typedef {import("../state/state.js").HistogramGroup} HistogramGroup */

const HEIGHT = 96;
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
  const share = createChart("Faulty channels", app);
  const range = createChart("Range of the layer", app);
  explain(histogram.heading, "histogram");
  explain(norm.heading, "norm");
  explain(share.heading, "dead constant nonfinite");
  explain(range.heading, "range batch");
  const nothing = h("p", {
    class: "note",
    text: "No histograms or norms of this layer were logged.",
  });
  const key = createKey();
  const element = h(
    "div",
    { class: "charts" },
    h("h2", { text: "Layer over steps" }),
    key.element,
    histogram.element,
    norm.element,
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
    if (!model.steps.length || width < 60) return;
    const span = (several && spanOf(all)) || own;
    const pinned = (model.scene?.columns ?? []).flatMap(({ question }) => question?.step ?? []);
    const at = { width, step, span, steps: model.steps, pinned, all, runs: model.runs };
    const drawn = [
      histograms(histogram, which, numbers, state.histogram, { ...at, span: own }),
      norms(norm, at),
      shares(share, at),
      ranges(range, at),
    ];
    show(nothing, Boolean(numbers) && !drawn.some(Boolean));
  }
  return { element, draw };
}

/**
 * What all charts share.
 * @typedef {object} At
 * @property {number} width CSS px
 * @property {number} step of the slider
 * @property {[number, number]} span first and last step
 * @property {number[]} steps of the main run
 * @property {number[]} pinned steps of the columns
 * @property {Series[]} all the main column's series first
 * @property {readonly RunEntry[]} runs
 *
 * @typedef {import("./chart.js").Chart} Chart
 */

/** Lines at the steps of the slider and of the columns. @param {import("../draw/plot.js").Frame} plot @param {At} at */
function drawSteps(plot, { step, pinned }) {
  for (const each of new Set([step, ...pinned])) drawNow(plot, each, theme().text);
}

/** @param {ArrayLike<number>} values @param {number[]} steps @param {number} step */
function valueAtStep(values, steps, step) {
  const i = indexOf(steps, step);
  return i < 0 ? NaN : values[i];
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
  say(of.value, made ? whose + middle(tag.slice(tag.indexOf("/") + 1), LONGEST) : "nothing finite");
  of.value.title = tag;
  if (!made) return true;
  of.setSteps(at.steps);
  const plot = frame(of.canvas, at.width, HEIGHT + 24, at.span, [made.lo, made.hi]);
  drawHeat(plot, made, "magma");
  drawNow(plot, at.step, theme().accent);
  of.canvas.setAttribute("aria-label", `${tag} over steps, ${short(made.lo)} to ${short(made.hi)}`);
  return true;
}

/** @param {Chart} of @param {At} at */
function norms(of, at) {
  const lines = at.all.flatMap((series) => normLines(series, at));
  const values = extent(lines.map((each) => Array.from(each.values).filter((value) => value > 0)));
  show(of.element, lines.length > 0);
  if (!lines.length) return false;
  of.setSteps(at.steps);
  const [lo, hi] = values ?? [0, 1];
  const plot = frame(of.canvas, at.width, HEIGHT, at.span, [lo, hi], lo > 0 && hi / lo > 20);
  for (const { steps, values: drawn, colour, dash } of lines) {
    drawLine(plot, steps, drawn, colour, dash);
    drawNonfinite(plot, steps, drawn);
  }
  drawSteps(plot, at);
  const texts = lines.map(({ name, steps, values: drawn, colour }) => {
    const value = valueAtStep(drawn, steps, at.step);
    return { text: `${name} ${Number.isNaN(value) ? "NaN" : short(value)}`, colour };
  });
  const bad = lines.some((each) => !Array.from(each.values).every(Number.isFinite));
  keyed(of.value, texts, bad);
  of.canvas.setAttribute("aria-label", `gradient norm over steps: ${of.value.textContent}`);
  return true;
}

/**
 * Gradient norms of a series, one line per parameter.
 * @param {Series} series @param {At} at
 */
function normLines(series, { all, runs }) {
  const scalars = series.numbers?.scalars ?? {};
  const tags = tagsOf(scalars, "gradient_norm").filter(
    (tag) => !tag.endsWith("gradient_norm/total"),
  );
  const several = all.length > 1;
  const plain = [theme().accent, theme().second];
  return tags.map((tag, i) => ({
    ...line(scalars[tag]),
    name: `${several ? `${series.letters}: ` : ""}${tag.split(".").pop()}`,
    colour: several ? coloursOf(all, series, runs).line : plain[Math.min(i, 1)],
    dash: several && i ? [2, 3] : dashOf(all, series),
  }));
}

const FAULTS = /** @type {[string, string, number[]][]} */ ([
  ["dead", FAULT_COLOURS.dead, []],
  ["constant", FAULT_COLOURS.constant, [6, 3]],
  ["nonfinite", FAULT_COLOURS.nonfinite, [2, 3]],
]);

/** Shares of dead, constant and non-finite channels. @param {Chart} of @param {At} at */
function shares(of, at) {
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
      const fault = name === "nonfinite" ? "non-finite" : name;
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
  if (any) keyed(of.value, shown);
  else say(of.value, "none at any step");
  if (several) of.value.title = "solid: dead; dashed: constant; dotted: non-finite";
  if (!any) return true;
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, [0, 1]);
  for (const { steps, values, colour, dash } of shown) drawLine(plot, steps, values, colour, dash);
  drawSteps(plot, at);
  of.canvas.setAttribute(
    "aria-label",
    `share of faulty channels over steps: ${of.value.textContent}`,
  );
  return true;
}

/** @param {Chart} of @param {At} at */
function ranges(of, at) {
  const found = at.all.flatMap((series) => {
    const ends = series.history && rangeLines(series.history);
    return ends ? [{ series, ...ends }] : [];
  });
  show(of.element, found.length > 0);
  if (!found.length) return false;
  const values = extent(found.flatMap(({ least, most }) => [least, most]));
  of.setSteps(at.steps);
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, values ?? [0, 1]);
  for (const { series, steps, least, most, finite } of found) {
    const { line: colour, band } = coloursOf(at.all, series, at.runs);
    const dash = dashOf(at.all, series);
    drawBand(plot, steps, least, most, band);
    drawLine(plot, steps, least, colour, dash);
    drawLine(plot, steps, most, colour, dash);
    drawNonfinite(plot, steps, finite);
  }
  drawSteps(plot, at);
  const texts = found.map(({ series, steps, least, most }) => {
    const [low, high] = [least, most].map((ends) => short(valueAtStep(ends, steps, at.step)));
    const text = `${found.length > 1 ? `${series.letters}: ` : ""}${low} … ${high}`;
    return { text, colour: coloursOf(at.all, series, at.runs).line };
  });
  const bad = found.some(({ finite }) => finite.some(Number.isNaN));
  keyed(of.value, texts, bad);
  of.canvas.setAttribute("aria-label", `range over steps: ${of.value.textContent}`);
  return true;
}
