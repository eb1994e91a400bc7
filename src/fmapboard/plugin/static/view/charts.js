// @ts-check
/** Charts of a layer over steps: histogram, norms, shares of faulty channels, range. */

import * as plots from "../chart/plot.js";
import { ROLE_NAMES, layerText, middle } from "../model/compare.js";
import { ofLayers, spanOf } from "../model/look.js";
import { CHOICES } from "../model/state.js";
import { explanation } from "../model/terms.js";
import { endsText, faultColour, inWordsOf, kindOf, short, stepText } from "../model/words.js";
import { theme } from "../picture/canvas.js";
import { once } from "../server/cache.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";
import { Segments } from "./controls.js";
import { Painted } from "./hooks.js";
import { RunName } from "./runs.js";

/** @import {App} from "../app.js" */
/** @import {Frame} from "../chart/chart.js" */
/** @import {Model, Series} from "../model/model.js" */
/** @import {HistogramChart} from "../server/routes.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {At, Facts} from "./view.js" */

const HEIGHT = 96;
/** Narrower than this nothing is drawn, CSS px. */
const LEAST = 60;
/** Dashes of further lines in one colour, px. */
const [DASHED, DOTTED] = [
  [6, 3],
  [2, 3],
];
/** Longest name of a layer in a heading, characters. */
const LONGEST = 36;

/**
 * A chart over steps with a heading and the values at the current step; a click chooses a step.
 * @param {Facts & {app: App, steps: number[], children?: Child}} props
 */
export function Chart({ app, steps, title, terms, tip, label, paint, children, ...of }) {
  /** @type {Facts["texts"][number]} */
  const bad = { text: "non-finite", colour: FAULT_COLOURS.nonfinite };
  const texts = of.nonfinite ? [...of.texts, bad] : of.texts;
  const groups = [...new Set(texts.map(({ whose = "" }) => whose))].sort().map((whose) => {
    const own = texts.filter((each) => (each.whose ?? "") === whose);
    return {
      whose,
      own,
      said: `${whose && `${whose}: `}${own.map(({ text }) => text).join(" · ")}`,
    };
  });
  const said = inWordsOf(groups.map((each) => each.said).join(" · "));
  const draw = (/** @type {HTMLCanvasElement} */ canvas) => {
    const width = canvas.parentElement?.clientWidth ?? 0;
    if (width >= LEAST) paint?.(canvas, width);
  };
  return html`
    <section>
      <h3>
        <span ...${explanation(terms)}>${inWordsOf(title)}</span>
        ${groups.map(
          ({ whose, own }) => html`
            <span class=${whose ? "value of-column" : "value"} title=${tip ?? said}>
              ${whose && html`<b>${whose}</b>`}${own.map((each) => html`<${Entry} ...${each} />`)}
            </span>
          `,
        )}
      </h3>
      ${children}
      ${
        paint &&
        html`<${Painted} role="img" class="chart" paint=${draw}
          aria-label=${`${inWordsOf(label)}: ${said}`}
          ...${plots.picking(steps, (step) => app.update({ step }))} />`
      }
    </section>
  `;
}

/** A line's text or, without a dash, an area's. @param {Facts["texts"][number]} props */
function Entry({ text, colour, dash }) {
  const borderTopStyle = dash?.length ? (dash === DASHED ? "dashed" : "dotted") : "solid";
  const style = dash ? { borderColor: colour, borderTopStyle } : { background: colour };
  return html`
    <span class="entry">
      ${colour && html`<i class=${dash ? "stroke" : "swatch"} style=${style} />`}${inWordsOf(text)}
    </span>
  `;
}

/**
 * Colours of a column's line and band, the same for each run.
 * @param {readonly Series[]} all @param {Series} series
 */
export function coloursOf(all, series) {
  const { accent, second, band, secondBand } = theme();
  return all.indexOf(series) > 0 ? { line: second, band: secondBand } : { line: accent, band };
}

/** Colour of each column. */
export const ofColumns = () => [theme().accent, theme().second];

/** The key of charts: per series its line, columns and run. @param {{all: Series[]}} props */
export function Key({ all }) {
  if (all.length < 2) return null;
  return html`
    <ul class="key" aria-label="Key of the curves">
      ${all.map((each) => {
        const layer = each.layer.key === all[0].layer.key ? "" : layerText(each.layer.key);
        const role = each.role === all[0].role ? "" : (ROLE_NAMES[each.role] ?? each.role);
        const more = [layer, role, each.history ? "" : "loading"].filter(Boolean).join(" · ");
        return html`
          <li>
            <i class="stroke" style=${{ borderColor: coloursOf(all, each).line }} />
            <b>${each.letters}</b><${RunName} run=${each.run} />
            ${more && html`<span>${more}</span>`}
          </li>
        `;
      })}
    </ul>
  `;
}

/**
 * What paints lines over steps, with lines at the steps of the slider and of the columns.
 * @param {At} at @param {number} height @param {[number, number]} values @param {boolean} log
 * @param {(plot: Frame) => void} draw @returns {NonNullable<Facts["paint"]>}
 */
function painted(at, height, values, log, draw) {
  return (canvas, width) => {
    const plot = plots.frame(canvas, width, height, at.span, values, log, at.words);
    draw(plot);
    for (const each of new Set([at.step, ...at.pinned])) plots.drawNow(plot, each, theme().text);
  };
}

/** @param {ArrayLike<number>} values @param {number[]} steps @param {number} step */
function valueAtStep(values, steps, step) {
  const i = indexOf(steps, step);
  return i < 0 ? NaN : values[i];
}

/**
 * The columns of a series, if there are several series: what is said of it begins with them.
 * @param {At} at @param {Series} series
 */
const whose = ({ all }, { letters }) => (all.length > 1 ? letters : "");

/**
 * One line per parameter of the layer; `usual` is a range that is always in sight, as a band.
 * @param {At} at @param {string} group of the scalars @param {string} title @param {string} terms
 * @param {[number, number]|null} [usual] @returns {Facts|null}
 */
function perParameter(at, group, title, terms, usual = null) {
  const { all } = at;
  const plain = [theme().accent, theme().second];
  const lines = all.flatMap((series) => {
    const scalars = series.numbers?.scalars ?? {};
    const estimates = series.numbers?.estimates ?? [];
    const tags = plots.tagsOf(scalars, group).filter((tag) => !tag.endsWith(`${group}/total`));
    return tags.map((tag, i) => ({
      ...plots.line(scalars[tag]),
      name: `${tag.split(".").pop()}${estimates.includes(tag) ? " ≈" : ""}`,
      whose: whose(at, series),
      colour: all.length > 1 ? coloursOf(all, series).line : plain[Math.min(i, 1)],
      dash: all.length > 1 && i ? DASHED : [],
    }));
  });
  if (!lines.length) return null;
  const drawn = lines.map(({ values }) => Array.from(values));
  const axis = plots.axisOf(drawn, usual);
  /** @type {Facts["texts"]} */
  const texts = lines.map(({ name, steps, values, ...line }) => {
    const value = valueAtStep(values, steps, at.step);
    const of = steps[indexOf(steps, at.step)];
    const other = of === undefined || of === at.step ? "" : ` (step ${stepText(of)})`;
    const said = Number.isNaN(value) ? "NaN" : short(value, usual ? 2 : 3);
    return { ...line, text: `${name} ${said}`, whose: line.whose + other };
  });
  if (axis.log && drawn.some((values) => values.includes(0))) texts.push({ text: "▾ = 0" });
  if (usual) texts.push({ text: `healthy ${endsText(...usual)}`, colour: theme().band });
  return {
    ...{ title: axis.log ? `${title}, log` : title, terms, texts },
    label: `${title.toLowerCase()} over ${kindOf(at.words)}s`,
    nonfinite: !drawn.flat().every(Number.isFinite),
    paint: painted(at, HEIGHT, axis.values, axis.log, (plot) => {
      if (usual)
        plots.drawBand(plot, at.span, [usual[0], usual[0]], [usual[1], usual[1]], theme().band);
      for (const { steps, values, colour, dash } of lines) {
        plots.drawLine(plot, steps, values, colour, dash);
        plots.drawNonfinite(plot, steps, values);
        if (axis.log) plots.drawZeros(plot, steps, values, colour);
      }
    }),
  };
}

const FAULTS = /** @type {["dead"|"constant"|"nonfinite", number[]][]} */ ([
  ["dead", []],
  ["constant", DASHED],
  ["nonfinite", DOTTED],
]);

const SHARES = "Channels dead, constant or non-finite";

/** @param {At} at @returns {Facts|null} */
function shares(at) {
  const several = at.all.length > 1;
  const found = at.all.flatMap((series) =>
    FAULTS.flatMap(([name, dash]) => {
      const { history, layer } = series;
      const values = history ? plots.shareOf(history, `feature_maps.${name}`) : [];
      if (!history || !values.length) return [];
      const own = several
        ? { colour: coloursOf(at.all, series).line, dash }
        : { colour: faultColour(name), dash: [] };
      const drawn = history.arrays["feature_maps.mean"]?.shape[1] ?? layer.channels;
      const among = drawn < layer.channels ? ` of ${drawn} drawn` : "";
      const fault = name === "nonfinite" ? "non-finite" : inWordsOf(name);
      const now = Math.round(valueAtStep(values, history.steps, at.step));
      const any = values.some((value) => value > 0);
      const said = { text: `${fault} ${now} %${among}`, whose: whose(at, series) };
      return [{ steps: history.steps, values, any, ...said, ...own }];
    }),
  );
  if (!found.length) return null;
  const shown = found.filter((each) => each.any);
  const facts = { title: `${SHARES}, %`, terms: "dead constant nonfinite" };
  const label = `${SHARES} over ${kindOf(at.words)}s`;
  if (!shown.length) return { ...facts, label, texts: [{ text: "none" }], paint: null };
  return {
    ...{ ...facts, label, texts: shown },
    paint: painted(at, HEIGHT - 16, [0, 100], false, (plot) => {
      for (const of of shown) plots.drawLine(plot, of.steps, of.values, of.colour, of.dash);
    }),
  };
}

/** Smallest and largest value of the layer. @param {At} at @returns {Facts|null} */
function ranges(at) {
  const found = at.all.flatMap((series) => {
    const ends = series.history && plots.rangeLines(series.history);
    return ends ? [{ series, ...ends, ...coloursOf(at.all, series) }] : [];
  });
  if (!found.length) return null;
  const values = plots.extent(found.flatMap(({ least, most }) => [least, most]));
  return {
    ...{ title: "Range of the layer", terms: "range batch" },
    label: `range over ${kindOf(at.words)}s`,
    texts: found.map(({ series, steps, least, most, isOfAll, line: colour }) => {
      const [low, high] = [least, most].map((ends) => short(valueAtStep(ends, steps, at.step)));
      const { drawn, channels } = series.layer;
      const among = !isOfAll && drawn < channels ? ` of ${drawn} drawn channels` : "";
      return { text: `${low} … ${high}${among}`, whose: whose(at, series), colour, dash: [] };
    }),
    nonfinite: found.some(({ finite }) => finite.some(Number.isNaN)),
    paint: painted(at, HEIGHT - 16, values ?? [0, 1], false, (plot) => {
      for (const { steps, least, most, finite, line: colour, band } of found) {
        plots.drawBand(plot, steps, least, most, band);
        plots.drawLine(plot, steps, least, colour);
        plots.drawLine(plot, steps, most, colour);
        plots.drawNonfinite(plot, steps, finite);
      }
    }),
  };
}

const heatOf = once((/** @type {HistogramChart} */ raw) => plots.heat(raw, 32));

/**
 * @param {string} tag of the histograms @param {HistogramChart} raw @param {At} at
 * @returns {Facts}
 */
function histogram(tag, raw, at) {
  const made = heatOf(raw);
  const letters = whose(at, at.all[0]);
  const name = middle(tag.slice(tag.indexOf("/") + 1), LONGEST);
  const unit = kindOf(at.words);
  return {
    ...{ title: `Histogram over ${unit}s`, terms: "histogram", tip: tag },
    texts: [{ text: made ? `${letters && `${letters}: `}${name}` : "nothing finite" }],
    label: `${tag} over ${unit}s, ${short(made?.lo ?? NaN)} to ${short(made?.hi ?? NaN)}`,
    paint:
      made &&
      ((canvas, width) => {
        const ends = /** @type {[number, number]} */ ([made.lo, made.hi]);
        const plot = plots.frame(canvas, width, HEIGHT + 24, at.span, ends, false, at.words);
        plots.drawHeat(plot, made);
        plots.drawNow(plot, at.step, theme().accent);
      }),
  };
}

/** @param {{app: App, model: Model}} props */
export function Charts({ app, model }) {
  const { numbers, layer, state, steps, scene, stepWords: words } = model;
  if (!layer) return null;
  const all = ofLayers(model.series);
  /** @type {[number, number]} */
  const own = [steps[0], steps[steps.length - 1]];
  const span = (all.length > 1 && spanOf(all)) || own;
  const pinned = (scene?.columns ?? []).flatMap(({ question }) => question?.step ?? []);
  const at = { step: steps[indexOf(steps, state.step)], span, pinned, all, words };
  const tags = (/** @type {string} */ group) => plots.tagsOf(numbers?.histograms ?? {}, group);
  const groups = CHOICES.histogram.filter((group) => tags(group).length);
  const group = groups.includes(state.histogram) ? state.histogram : groups[0];
  const [tag] = group ? tags(group) : [];
  const found = [
    tag && numbers ? histogram(tag, numbers.histograms[tag], { ...at, span: own }) : null,
    perParameter(at, "gradient_norm", "Gradient norm", "norm"),
    perParameter(at, "update_ratio", "Update ratio", "ratio", numbers?.usual_updates),
    shares(at),
    ranges(at),
  ];
  const options = groups.map((each) => [each, each[0].toUpperCase() + each.slice(1)]);
  return html`
    <div class="charts">
      <h2>Layer over ${kindOf(words)}s</h2>
      <${Key} all=${all} />
      ${found.map(
        (each, i) =>
          each &&
          html`<${Chart} key=${i} ...${{ app, steps }} ...${each}>
            ${
              i === 0 &&
              options.length > 1 &&
              html`<${Segments} label="Histogram of" options=${options} value=${group}
                choose=${app.set("histogram")} />`
            }
          <//>`,
      )}
      ${
        numbers &&
        !found.some(Boolean) &&
        html`<p class="note">No histograms or norms of this layer were logged.</p>`
      }
    </div>
  `;
}
