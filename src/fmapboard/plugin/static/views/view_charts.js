// @ts-check
/** Charts of a layer over steps: histogram, gradient norm, update ratio, shares of faulty channels, range. */

import { h, say, segments, show } from "./dom.js";
import { drawHeat, drawNow, frame } from "../draw/plot.js";
import { heat, tagsOf } from "../draw/chart_series.js";
import { short } from "../draw/number_text.js";
import { CHOICES } from "../state/state.js";
import { kindOf } from "../state/step_words.js";
import { indexOf } from "../state/steps.js";
import { ofLayers, spanOf } from "../state/series.js";
import { theme } from "../draw/theme.js";
import { middle } from "../state/run_search.js";
import { createChart } from "./chart.js";
import { explain } from "./glossary.js";
import { HEIGHT, LINEAR, norms, ranges, ratios, shares } from "./series_charts.js";
import { createKey } from "./series_key.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../data/routes.js").HistogramChart} HistogramSeries */
/** @typedef {import("../data/routes.js").NumbersAnswer} NumbersAnswer */
/** @typedef {import("../state/state.js").HistogramGroup} HistogramGroup */
/** @typedef {import("./series_charts.js").At} At */
/** @typedef {import("./series_charts.js").Chart} Chart */

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
