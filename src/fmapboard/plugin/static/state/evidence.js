// @ts-check
/** The pictures that show a finding: of which layer and step they are, and which channels. */

import { MARK } from "../draw/palettes.js";
import { buildScene, flags } from "../draw/scene.js";
import { whole } from "../draw/number_text.js";
import { callName } from "./call_names.js";
import { mainSide } from "./compare.js";
import { START } from "./state.js";
import { wordOf } from "./step_words.js";
import { keptFrom } from "../views/view_first_fault.js";

/** @typedef {import("../data/answers.js").Layer} Layer */
/** @typedef {import("../data/decoded_maps.js").Maps} Maps */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */
/** @typedef {import("./chosen_runs.js").Line} Line */

/** Maximum number of tiles per finding. */
export const TILES = 6;
/** Number of tiles where no channel is known to be affected. */
const OTHERS = 4;

/**
 * @typedef {object} Evidence
 * @property {string} run
 * @property {Layer|null} layer whose pictures they are; null if there are none
 * @property {number} step of the pictures
 * @property {MapsScene|null} scene null while loading, or without pictures
 * @property {number[]} channels
 * @property {string} text where the pictures stem from, or why there are none
 * @property {boolean} loading
 */

/**
 * @param {import("../data/tab_data.js").Source} source @param {Line} line
 * @param {import("./state.js").State} state @returns {Evidence}
 */
export function evidenceOf(source, { run, finding }, state) {
  /** @type {Evidence} */
  const none = {
    run,
    layer: null,
    step: finding.since,
    scene: null,
    channels: [],
    text: "",
    loading: false,
  };
  if (finding.shown_at === null)
    return { ...none, text: finding.label ? "no pictures of this run are logged" : "" };
  const listed = source.layers(run);
  if (!listed.value) return { ...none, loading: listed.loading };
  const layer = listed.value.layers.find((each) => each.key === finding.shown_at);
  if (!layer || layer.error || !layer.steps.length)
    return { ...none, text: layer?.error ?? "its pictures are no longer kept" };
  const step = keptFrom(layer.steps, finding.since);
  const question = mainSide({ ...START, run, step }, layer);
  const entry = question && source.maps(question);
  const found = { ...none, layer, step };
  if (!question || !entry?.value) {
    return { ...found, text: entry?.error?.message ?? "", loading: !entry?.error };
  }
  const scene = sceneOf(entry.value, question, state);
  if (scene.kind !== "maps") return { ...found, text: scene.why };
  const hit = affected(entry.value, finding.kind, scene.channels);
  const channels = hit.length ? hit.slice(0, TILES) : scene.order.slice(0, OTHERS);
  const elsewhere =
    finding.kind === "nonfinite" && hit.length && !marked(entry.value, channels)
      ? " (in another image of the batch, not in the drawn one)"
      : "";
  const word = wordOf(listed.value.step_words, step);
  const text = described(finding, layer, step, word, channels, hit.length, scene.channels);
  return { ...found, scene, channels, text: text + elsewhere };
}

/** True if the drawn maps show a non-finite value in one of the channels. @param {Maps} maps @param {number[]} channels */
export function marked(maps, channels) {
  const planes = maps.planes.get("feature_maps/0");
  if (!planes) return true; // not known
  const { marks } = planes;
  const size = planes.width * planes.height;
  return channels.some(
    (c) =>
      marks?.subarray(c * size, (c + 1) * size).some((mark) => mark > 0 && mark < MARK.CONSTANT) ??
      false,
  );
}

/** @type {WeakMap<Maps, {key: string, scene: import("../draw/scene.js").Scene}>} */
const scenes = new WeakMap();

/**
 * @param {Maps} maps @param {import("./compare.js").Question} question
 * @param {import("./state.js").State} state
 */
function sceneOf(maps, question, { colours }) {
  const held = scenes.get(maps);
  if (held && held.key === colours) return held.scene;
  const scene = buildScene({
    state: { ...START, colours },
    question,
    maps,
    others: [],
    history: null,
    sortMaps: null,
  });
  scenes.set(maps, { key: colours, scene });
  return scene;
}

/**
 * Drawn channels that have a fault, the largest magnitudes first for large values.
 * @param {Maps} maps @param {string} kind of the finding @param {number} channels drawn
 */
export function affected(maps, kind, channels) {
  const role = "feature_maps";
  const all = Array.from({ length: channels }, (_, c) => c);
  const has = all.filter((c) => {
    const of = flags(maps, role, c);
    if (kind === "nonfinite") return of.nan + of.positive + of.negative > 0;
    if (kind === "large") return of.large;
    if (kind === "dead") return of.dead;
    return kind === "constant" && of.constant;
  });
  if (kind !== "large") return has;
  const size = (/** @type {number} */ c) =>
    Math.max(
      Math.abs(maps.arrays[`${role}.minimum`]?.values[c] ?? 0),
      Math.abs(maps.arrays[`${role}.maximum`]?.values[c] ?? 0),
    );
  return has.sort((a, b) => size(b) - size(a));
}

/** Kinds that single channels have. */
const OF_CHANNELS = new Set(["nonfinite", "large", "dead", "constant"]);

/**
 * Where the tiles stem from: layer, step and channels.
 * @param {import("../data/health.js").Finding} finding @param {Layer} layer @param {number} step
 * @param {string} word for the step
 * @param {number[]} channels drawn as tiles @param {number} hit affected ones @param {number} all drawn
 */
function described(finding, layer, step, word, channels, hit, all) {
  const own = finding.key === layer.key;
  const of = own ? "maps" : `maps of ${callName(layer)}, the nearest drawn layer,`;
  const when =
    step === finding.since
      ? `at ${word}`
      : step > finding.since
        ? `at ${word}, the next kept one`
        : `at ${word}, the last kept one`;
  const past = finding.until !== null && step > finding.until ? " (after it had ended)" : "";
  const which = `channel${channels.length === 1 ? "" : "s"} ${channels.join(", ")}`;
  const more = hit > channels.length ? ` and ${whole(hit - channels.length)} more` : "";
  const missing =
    !hit && OF_CHANNELS.has(finding.kind) ? ` (none of the ${all} drawn is affected)` : "";
  const sample = layer.samples > 1 ? ", sample 0" : "";
  return `${of} ${when}${past}${sample} · ${which}${more}${missing}`;
}
