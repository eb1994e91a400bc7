// @ts-check
/** What the attribution view shows: the chosen step of each layer, beside the first one. */

import { indexOf } from "../server/steps.js";

/** @import {App} from "../app.js" */
/** @import {AttributionSeries} from "../server/routes.js" */
/** @import {Source} from "../server/source.js" */
/** @import {State} from "./model.js" */

/** Keys that do something in this view. */
export const ATTRIBUTION_KEYS = new Set(
  ["ArrowLeft", "ArrowRight", "Home", "End", " ", "Escape"].concat("v", "r", "m", "p", "?"),
);

/** @param {Source} source @param {State} state @param {number|undefined} step of the slider */
export function attributionOf(source, state, step) {
  const isShown = state.view === "attribution";
  if (!isShown && state.view !== "maps") return null;
  const { run } = state;
  const all = listedFor(source, run).value?.series ?? [];
  if (!all.length) return null;
  const numbers = [...new Set(all.map(({ sample }) => sample))].sort((a, b) => a - b);
  const sample = numbers.includes(state.sample) ? state.sample : numbers[0];
  const rows = isShown
    ? all
        .filter((each) => each.sample === sample)
        .map((each) => row(source, run, each, step ?? null))
    : [];
  const tiles = rows.flatMap(({ now, first }) => (first ? [now, first] : [now]));
  const loading = tiles.some(({ picture, problem }) => !picture && !problem);
  const listed = source.layers(run).value;
  const input = listed?.inputs.find(
    ({ sample: of, name, steps }) =>
      of === sample && name === rows[0]?.series.name && steps.includes(rows[0].now.step),
  );
  const shown = rows[0]?.now.step ?? null;
  return {
    ...{ sample, samples: numbers.length, rows, loading },
    words: listed?.step_words,
    input: isShown && input ? (source.input(run, input, shown)?.value ?? null) : null,
  };
}

/** @param {Source} source @param {string} run */
function listedFor(source, run) {
  return source.json("attribution", { run }, { epoch: source.epoch });
}

/** True if a run is known to have none. @param {Source} source @param {string} run */
export function hasNoAttribution(source, run) {
  const { value, loading } = listedFor(source, run);
  return !loading && !value?.series.length;
}

/**
 * @param {Source} source @param {string} run @param {AttributionSeries} series
 * @param {number|null} step
 */
export function row(source, run, series, step) {
  const now = tile(source, run, series, indexOf(series.steps, step));
  return { series, now, first: series.of === "score" ? null : tile(source, run, series, 0) };
}

/**
 * @param {Source} source @param {string} run @param {AttributionSeries} series @param {number} i
 */
export function tile(source, run, series, i) {
  const [step, ts] = [series.steps[i], series.wall_times[i]];
  const query = { run, key: series.key, step, ts };
  const { value, error } = source.picture("attribution_picture", query);
  const problem = error?.message ?? "";
  const [gradient, score] = [series.gradients[i] ?? null, series.scores?.[i] ?? null];
  return { step, gradient, score, dead: series.dead[i] ?? null, picture: value ?? null, problem };
}

/** Shows the kind after the present one. @param {App} app */
export function nextKind(app) {
  const { state, model } = app;
  const kinds = [...(model?.layer?.roles ?? [state.role]), ...(model?.attribution ? [null] : [])];
  const now = state.view === "attribution" ? null : state.role;
  const role = kinds[(kinds.indexOf(now) + 1) % kinds.length];
  app.update(role === null ? { view: "attribution" } : { view: "maps", role });
}
