// @ts-check
/** What the overview shows of a run: its states, its findings and the pictures that show them. */

import { mainSide } from "./compare.js";
import { isOfDifferences, noteVerdict } from "./run_states.js";
import { buildScene, flags } from "./scene.js";
import { START } from "./state.js";
import { callName, counted, stepText, tileText, wordOf } from "./words.js";
import { badMark } from "../server/palettes.js";
import { keptFrom } from "../server/steps.js";

/** @import {HealthSource, SheetSource} from "../server/health.js" */
/** @import {FindingsAnswer, Line, ModelDifference, RunEntry} from "../server/routes.js" */
/** @import {Layer, Maps} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {MapsScene, Question, RunVerdict, Scene, State} from "./model.js" */

// The pictures that show a finding: of which layer and step they are, and which channels.

/** Maximum number of tiles per finding. */
export const TILES = 6;
/** Number of tiles where no channel is known to be affected. */
const OTHERS = 4;

/** @param {Source} source @param {Line} finding @param {State} state */
export function evidenceOf(source, finding, state) {
  const { run } = state;
  const none = {
    ...{ step: finding.since, loading: false },
    layer: /** @type {Layer|null} */ (null), // whose pictures they are
    scene: /** @type {MapsScene|null} */ (null),
    channels: /** @type {number[]} */ ([]),
    text: "", // where the pictures stem from, or why there are none
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

/**
 * True if the drawn maps show a non-finite value in one of the channels.
 * @param {Maps} maps @param {number[]} channels
 */
export function marked(maps, channels) {
  const planes = maps.planes.get("feature_maps/0");
  if (!planes) return true; // not known
  const size = planes.width * planes.height;
  const ofChannel = (/** @type {number} */ c) => planes.marks?.subarray(c * size, (c + 1) * size);
  return channels.some((c) => ofChannel(c)?.some((_, i, marks) => badMark(marks, i)));
}

/** @type {WeakMap<Maps, {key: string, scene: Scene}>} */
const scenes = new WeakMap();

/** @param {Maps} maps @param {Question} question @param {State} state */
function sceneOf(maps, question, { colours }) {
  const held = scenes.get(maps);
  if (held && held.key === colours) return held.scene;
  const of = { question, maps, others: [], history: null, sortMaps: null };
  const scene = buildScene({ state: { ...START, colours }, ...of });
  scenes.set(maps, { key: colours, scene });
  return scene;
}

/** Kinds that single channels have. */
const OF_CHANNELS = new Set(["nonfinite", "dead"]);

/**
 * Drawn channels with a fault.
 * @param {Maps} maps @param {string} kind @param {number} channels drawn
 */
export function affected(maps, kind, channels) {
  if (!OF_CHANNELS.has(kind)) return [];
  return [...Array(channels).keys()].filter((c) => flags(maps, "feature_maps", c).kind === kind);
}

/**
 * Where the tiles stem from: layer, step and channels.
 * @param {Line} finding @param {Layer} layer @param {number} step @param {string} word for the step
 * @param {number[]} channels drawn as tiles @param {number} hit affected ones
 * @param {number} all drawn
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
  const which = `${tileText(layer)}${channels.length === 1 ? "" : "s"} ${channels.join(", ")}`;
  const more = hit > channels.length ? ` and ${stepText(hit - channels.length)} more` : "";
  const missing =
    !hit && OF_CHANNELS.has(finding.kind) ? ` (none of the ${all} drawn is affected)` : "";
  const sample = layer.samples > 1 ? ", sample 0" : "";
  return `${of} ${when}${sample} · ${which}${more}${missing}`;
}

// What the overview page shows: the map and the findings of a run, and how the other runs are.

/** Findings shown before all are asked for, so that the map stays in sight. */
export const LINES = 6;

/**
 * `all`: show all lines of an open list.
 * @param {Source} source
 * @param {{source: HealthSource, sheet: SheetSource, all: boolean, isOpen: boolean, verdicts:
 *   Map<string, RunVerdict>}} overview
 * @param {State} state @param {RunEntry[]} runs
 */
export function front(source, { source: asked, sheet, all, isOpen, verdicts }, state, runs) {
  const { table, own } = answersOf(source, asked, state.run);
  const ready = Boolean((table.value ?? table.error) && (own.value ?? own.error));
  const {
    findings = [],
    line = null,
    unread = null,
    steps = 0,
    difference = null,
  } = own.value ?? {};
  noteVerdict(verdicts, state.run, line, own.error?.message ?? "");
  const said = runs.flatMap(({ run }) => verdicts.get(run) ?? []);
  return {
    run: state.run,
    health: (ready && table.value) || null, // the findings above it move it: painted once
    problem: table.error?.message ?? "",
    findings,
    shown: findings
      .slice(0, !isOpen ? 0 : all ? findings.length : LINES)
      .map((finding) => ({ finding, ...evidenceOf(source, finding, state) })),
    ready, // the map and the findings of its run are there
    unread,
    read: steps, // how many have been read
    verdicts: said,
    difference: isOfDifferences(state.run)
      ? differenceOf(source, asked, state.run, difference)
      : null,
    awaited: runs.length - said.length, // runs that are still to be looked through
    sheet,
  };
}

/** Changes when a run has new steps. @param {Source} source @param {string} run */
function versionOf(source, run) {
  const listed = source.layers(run).value;
  if (!listed) return "";
  const { steps, unread } = listed;
  const reading = unread !== null ? `/reading ${source.epoch}` : "";
  return `${steps.length}/${steps[steps.length - 1]}${reading}`;
}

/**
 * The states of a run; null until they are there.
 * @param {Source} source @param {HealthSource} asked @param {string} run
 */
export function tableFor(source, asked, run) {
  return asked.health(run, versionOf(source, run)).value ?? null;
}

/**
 * Map and findings, not older than the list of steps.
 * @param {Source} source @param {HealthSource} asked @param {string} run
 */
function answersOf(source, asked, run) {
  const steps = source.layers(run).value?.steps ?? [];
  const version = versionOf(source, run);
  const get = () => ({ table: asked.health(run, version), own: asked.findings(run, version) });
  const found = get();
  const known = [found.table.value?.steps.length, found.own.value?.steps];
  const isBehind = known.some((count) => count !== undefined && count < steps.length);
  return isBehind && asked.again(run, version) ? get() : found;
}

/**
 * @param {Layer[]} layers of the run @param {Pick<Line, "name"|"label"|"key"|"shown_at"> &
 *   {run: string, step: number, message?: string}} asked @param {string} keeper of the pictures
 */
export function targetOf(layers, { message = "", ...asked }, keeper) {
  const { run, name, label, key, shown_at, step } = asked;
  const layer = layers.find((each) => each.key === shown_at);
  if (!layer?.steps.length) return null;
  const kept = keptFrom(layer.steps, step);
  const notes = [];
  if (layer.key !== key && label) {
    notes.push(
      `${callName({ name, label })} has no pictures: these are of ${callName(layer)}, the ` +
        `nearest drawn layer.`,
    );
  }
  if (kept !== step) {
    notes.push(
      `Step ${stepText(step)} was not kept by ${keeper}: this is step ${stepText(kept)}, the ` +
        `${kept > step ? "next" : "last"} kept one.`,
    );
  }
  return {
    run,
    layer: layer.key,
    step: kept,
    message: message.replaceAll("`", ""),
    note: notes.join(" "),
  };
}

/**
 * What a run was looked through for.
 * @param {Pick<FindingsAnswer, "layers"|"steps"|"written">} of @param {string} kind
 */
export function scope({ layers, steps, written }, kind = "step") {
  const kept = written > steps ? ` (kept of ${stepText(written)} logged)` : "";
  return `${counted(layers, "layer")} × ${counted(steps, kind)}${kept}`;
}

/**
 * That a run has not been read to its end; "" if it has.
 * @param {number|null} unread newest logged step
 */
export function unreadText(unread) {
  if (unread === null) return "";
  return `The log has not been read to its end yet, which is step ${stepText(unread)}`;
}

// A run of `diff` that holds differences: it opens at the first layer that differs, in a signed
// palette.

/**
 * Where the models begin to differ, and what `diff` printed, if it is stored.
 * @param {Source} source @param {HealthSource} asked @param {string} run
 * @param {ModelDifference|null} printed
 */
function differenceOf(source, asked, run, printed) {
  const layers = source.layers(run).value?.layers ?? [];
  const { isKnown, layer } = firstDifferent(source, { source: asked }, run, layers);
  const before = layer ? layers.indexOf(layer) : 0;
  const equal = before ? `; none in ${counted(before, "drawn layer")} before it` : "";
  const known = layer
    ? `First difference: \`${callName(layer)}\`${equal}`
    : "No difference in any drawn layer";
  const text = isKnown ? known : "Looking for the first difference…";
  return { text: printed?.text ?? text, layer, table: printed?.table ?? null };
}

/**
 * The first layer whose values are not all 0, if there is one. @param {Source} source
 * @param {{source: HealthSource}} overview @param {string} run @param {readonly Layer[]} layers
 */
export function firstDifferent(source, overview, run, layers) {
  const table = tableFor(source, overview.source, run);
  if (!table) return { isKnown: false, layer: undefined };
  const zeros = new Set(table.zero_rows);
  const first = table.layers.find(({ key }, row) => key !== null && !zeros.has(row));
  return { isKnown: true, layer: layers.find(({ key }) => key === first?.key) };
}
