// @ts-check
/** Charts of a layer over steps: histogram, gradient norm, shares of faulty channels, range. */

import { h, say, segments, show } from "./dom.js";
import {
  drawBand,
  drawHeat,
  drawLine,
  drawNonfinite,
  drawNow,
  frame,
  pickSteps,
} from "../draw/plot.js";
import { extent, heat, line, shareOf, tagsOf } from "../draw/chart_series.js";
import { short } from "../draw/number_text.js";
import { CHOICES } from "../state/state.js";
import { indexOf } from "../state/steps.js";
import { cutMiddle } from "../draw/name_text.js";
import { FAULT_COLOURS } from "../draw/palettes.js";
import { theme } from "../draw/theme.js";
import { explain } from "./glossary.js";
import { keyed } from "./chart_key.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/answers.js").HistogramSeries} HistogramSeries */
/** @typedef {import("../data/answers.js").NumbersAnswer} NumbersAnswer */
/** @typedef {import("../draw/scene.js").History} History */
/** @typedef {import("../state/state.js").HistogramGroup} HistogramGroup */

const HEIGHT = 96;
const FAULTS = /** @type {const} */ (["dead", "constant", "nonfinite"]);

/** @param {string} title @param {App} app @param {Node|null} more */
function chart(title, app, more = null) {
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
  const histogram = chart("Histogram over steps", app, which.element);
  const norm = chart("Gradient norm", app);
  const share = chart("Faulty channels", app);
  explain(histogram.heading, "histogram");
  explain(norm.heading, "norm");
  explain(share.heading, "dead constant nonfinite");
  const range = chart("Range of the layer", app);
  explain(range.heading, "range batch");
  const nothing = h("p", {
    class: "note",
    text: "No histograms or norms of this layer were logged.",
  });
  const element = h(
    "div",
    { class: "charts" },
    h("h2", { text: "Layer over steps" }),
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
    const span = /** @type {[number, number]} */ ([
      model.steps[0],
      model.steps[model.steps.length - 1],
    ]);
    if (!model.steps.length || width < 60) return;
    const at = { width, step, span, steps: model.steps };
    const drawn = [
      histograms(histogram, which, numbers, state.histogram, at),
      norms(norm, numbers, at),
      shares(share, model.history, layer.channels, at),
      ranges(range, model.history, at),
    ];
    show(nothing, Boolean(numbers) && !drawn.some(Boolean));
  }
  return { element, draw };
}

/**
 * The current step and the extent of all charts.
 * @typedef {{width: number, step: number, span: [number, number], steps: number[]}} At
 * @typedef {ReturnType<typeof chart>} Chart
 */

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
  say(of.value, made ? cutMiddle(tag.slice(tag.indexOf("/") + 1)) : "nothing finite");
  of.value.title = tag;
  if (!made) return true;
  of.setSteps(at.steps);
  const plot = frame(of.canvas, at.width, HEIGHT + 24, at.span, [made.lo, made.hi]);
  drawHeat(plot, made, "magma");
  drawNow(plot, at.step, theme().accent);
  of.canvas.setAttribute("aria-label", `${tag} over steps, ${short(made.lo)} to ${short(made.hi)}`);
  return true;
}

/** @param {Chart} of @param {NumbersAnswer|null} numbers @param {At} at */
function norms(of, numbers, at) {
  const scalars = numbers?.scalars ?? {};
  const tags = tagsOf(scalars, "gradient_norm").filter(
    (tag) => !tag.endsWith("gradient_norm/total"),
  );
  const lines = tags.map((tag) => line(scalars[tag]));
  const values = extent(lines.map((each) => Array.from(each.values).filter((value) => value > 0)));
  show(of.element, lines.length > 0);
  if (!lines.length) return false;
  of.setSteps(at.steps);
  const [lo, hi] = values ?? [0, 1];
  const plot = frame(of.canvas, at.width, HEIGHT, at.span, [lo, hi], hi / lo > 20 && lo > 0);
  const colours = [theme().accent, theme().second];
  lines.forEach((each, i) => drawLine(plot, each.steps, each.values, colours[Math.min(i, 1)]));
  for (const each of lines) drawNonfinite(plot, each.steps, each.values);
  drawNow(plot, at.step, theme().text);
  const now = lines.map((each) => {
    const value = valueAtStep(each.values, each.steps, at.step);
    return Number.isNaN(value) ? "NaN" : short(value);
  });
  keyed(
    of.value,
    tags.map((tag, i) => ({
      text: `${tag.split(".").pop()} ${now[i]}`,
      colour: colours[Math.min(i, 1)],
    })),
    lines.some((each) => Array.from(each.values).some((value) => !Number.isFinite(value))),
  );
  of.canvas.setAttribute("aria-label", `gradient norm over steps: ${of.value.textContent}`);
  return true;
}

/**
 * Shares of dead, constant and non-finite channels.
 * @param {Chart} of @param {History|null} history @param {number} whole channels of the layer
 * @param {At} at
 */
function shares(of, history, whole, at) {
  const role = "feature_maps";
  const found = FAULTS.flatMap((name) => {
    const values = history ? shareOf(history, `${role}.${name}`) : [];
    return values.length ? [{ name, values }] : [];
  });
  const any = found.some(({ values }) => values.some((value) => value > 0));
  show(of.element, found.length > 0);
  if (!history || !found.length) return false;
  of.setSteps(at.steps);
  show(of.canvas, any);
  const now = (/** @type {number[]} */ values) =>
    Math.round(100 * valueAtStep(values, history.steps, at.step));
  const drawn = history.arrays[`${role}.mean`]?.shape[1] ?? whole;
  const among = drawn < whole ? ` of ${drawn} drawn` : "";
  if (!any) {
    say(of.value, "none at any step");
    return true;
  }
  keyed(
    of.value,
    found.map(({ name, values }) => ({
      text: `${name === "nonfinite" ? "non-finite" : name} ${now(values)} %${among}`,
      colour: FAULT_COLOURS[name],
    })),
  );
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, [0, 1]);
  for (const { name, values } of found) drawLine(plot, history.steps, values, FAULT_COLOURS[name]);
  drawNow(plot, at.step, theme().text);
  of.canvas.setAttribute(
    "aria-label",
    `share of faulty channels over steps: ${of.value.textContent}`,
  );
  return true;
}

/** @param {Chart} of @param {History|null} history @param {At} at */
function ranges(of, history, at) {
  const low = history?.arrays["feature_maps.minimum"];
  const high = history?.arrays["feature_maps.maximum"];
  show(of.element, Boolean(low && high));
  if (!history || !low || !high) return false;
  const channels = low.shape[1];
  const fold = (
    /** @type {Float32Array} */ values,
    /** @type {(a: number, b: number) => number} */ by,
  ) =>
    history.steps.map((_, i) =>
      values
        .subarray(i * channels, (i + 1) * channels)
        .filter(Number.isFinite)
        .reduce(by, NaN),
    );
  const least = fold(low.values, (a, b) => (Number.isNaN(a) ? b : Math.min(a, b)));
  const most = fold(high.values, (a, b) => (Number.isNaN(a) ? b : Math.max(a, b)));
  const values = extent([least, most]);
  of.setSteps(at.steps);
  const plot = frame(of.canvas, at.width, HEIGHT - 16, at.span, values ?? [0, 1]);
  drawBand(plot, history.steps, least, most, theme().band);
  drawLine(plot, history.steps, least, theme().accent);
  drawLine(plot, history.steps, most, theme().accent);
  drawNow(plot, at.step, theme().text);
  const bad = shareOf(history, "feature_maps.nonfinite");
  const finite = least.map((value, i) => (bad[i] > 0 ? NaN : value));
  drawNonfinite(plot, history.steps, finite);
  const [from, to] = [least, most].map((each) => short(valueAtStep(each, history.steps, at.step)));
  keyed(of.value, [{ text: `${from} … ${to}`, colour: theme().accent }], finite.some(Number.isNaN));
  of.canvas.setAttribute("aria-label", `range over steps: ${of.value.textContent}`);
  return true;
}
