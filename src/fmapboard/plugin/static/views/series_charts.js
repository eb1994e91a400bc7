// @ts-check
/** Charts with curves of all columns: numbers per parameter, shares of faulty channels, range. */

import { axisOf, extent, line, rangeLines, shareOf, tagsOf } from "../draw/chart_series.js";
import { short, stepText } from "../draw/number_text.js";
import { FAULT_COLOURS } from "../draw/palettes.js";
import { drawBand, drawLine, drawNonfinite, drawNow, drawZeros, frame } from "../draw/plot.js";
import { theme } from "../draw/theme.js";
import { kindOf } from "../state/step_words.js";
import { indexOf } from "../state/steps.js";
import { keyed } from "./chart_key.js";
import { say, show } from "./dom.js";
import { coloursOf, dashOf } from "./series_key.js";
import { deadWord } from "../state/dead_word.js";

/** @typedef {import("../data/routes.js").RunEntry} RunEntry */
/** @typedef {import("../state/series.js").Series} Series */

export const HEIGHT = 96;

/**
 * What all charts share.
 * @typedef {object} At
 * @property {number} width CSS px
 * @property {number} step of the slider
 * @property {[number, number]} span first and last step
 * @property {number[]} steps of the main run
 * @property {number[]} pinned steps of the columns
 * @property {import("../state/step_words.js").Words} words names of the main run's steps
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
