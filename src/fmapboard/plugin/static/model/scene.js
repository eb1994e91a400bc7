// @ts-check
/** The columns of a scene: the maps of each, and its difference from the main column. */

import { sorting } from "./channel_order.js";
import { mainSide, origin, placed } from "./compare.js";
import { KINDS, isLarge } from "./health_states.js";
import { areAlike, cellsOf, kernelMeaning } from "./kernel_cells.js";
import { LETTERS, comparesKernels } from "./state.js";
import { columnRanges, difference, ranges as rangesOf } from "./value_scale.js";
import { deadWord, runText } from "./words.js";
import { pictureOf, sampleAt, sideOf } from "../server/decode.js";
import { decodedKernels, outputChannels } from "../server/kernels.js";
import { FAULT_COLOURS, MARK, MARK_COLOURS, css } from "../server/palettes.js";
import { indexOf } from "../server/steps.js";

/** @import {Kernels, Layer, Maps} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {ColumnSource, Difference, Flags, History, KernelsScene, Part} from "./model.js" */
/** @import {Placed, Question, Ranges, Scale, Scene, SceneBase, SceneColumn} from "./model.js" */
/** @import {ShownTiles, Side, Sorting, State, StateMark} from "./model.js" */

/** The maps of a column, 0 for the main one. @param {number} column @returns {Part} */
export const mapsOf = (column) => ({ column, isDifference: false });

export const MAIN = mapsOf(0);
/** @type {Part} */
export const BETWEEN = Object.freeze({ column: 1, isDifference: true });

/** @param {Part} part */
export const isDifference = (part) => part.isDifference;

/** Name of a part, with the letters of its columns. @param {Part} part */
export function partName(part) {
  return part.isDifference ? "A − B" : LETTERS[part.column];
}

/** @param {ColumnSource} of @param {Side} a the main column's maps, or kernels */
export function otherColumn({ question, maps, why, history = null }, a) {
  const side = maps && question ? sideIn(maps, question, a) : null;
  const between = side ? difference(a, side) : null;
  return {
    ...{ letter: LETTERS[1], question, maps, side, difference: between, history },
    why: why || (side || !maps || !question ? "" : whyNot(maps, question)),
    note: side ? noteOf(a, side, between) : "",
  };
}

/**
 * The maps of a question, or kernels, if they can be compared with those of the main column.
 * @param {Maps} maps @param {Question} question @param {Side|null} a the main column
 */
function sideIn(maps, { role, sample, depth }, a = null) {
  if (role !== "kernels") return sideOf(maps, role, sampleAt(maps, role, sample, depth ?? null));
  const found = decodedKernels(maps);
  return found && a && !areAlike(/** @type {Kernels} */ (a), found) ? null : found;
}

/**
 * What is not compared, in words.
 * @param {Side} a @param {Side} b @param {Difference|null} between
 */
function noteOf(a, b, between) {
  if (!between) {
    const size = (/** @type {Side} */ { planes }) => `${planes.height}×${planes.width} px`;
    return `maps of ${size(b)}, not ${size(a)}: stretched to the same size, no difference`;
  }
  const [mine, theirs] = [a.planes.channels, b.planes.channels];
  if (mine === theirs) return "";
  return (
    `${mine} and ${theirs} channels drawn: only the first ${Math.min(mine, theirs)} are ` +
    `compared`
  );
}

/** Why a picture cannot be drawn, in words. @param {Maps} maps @param {Question} question */
export function whyNot(maps, question) {
  if (maps.missing.includes(question.role)) {
    return "This picture is not kept; fmapboard serve --standalone keeps all.";
  }
  if (!pictureOf(maps, question.role)) return "not logged for this layer at this step";
  if (question.role !== "kernels") return `no picture of sample ${question.sample}`;
  return decodedKernels(maps)
    ? "kernels of another shape, or drawn in other colours"
    : "The kernels' picture does not fit its record.";
}

/**
 * The tiles of a cell; a column without a picture keeps its place.
 * @param {ShownTiles} show @param {SceneColumn[]} columns
 */
export function parts(show, columns) {
  const maps = columns.map((_, i) => mapsOf(i));
  if (show === "both" || !columns[1]?.difference) return maps;
  return show === "difference" ? [BETWEEN] : [...maps, BETWEEN];
}

// Computes everything that a picture of one layer needs, before anything is drawn.

/** @type {Ranges} */
const NO_RANGES = { lo: new Float64Array(0), hi: new Float64Array(0) };

/** What a scene has before anything is known to draw. */
export const BLANK = {
  why: "", // nothing, or not all, can be drawn, in words
  a: /** @type {Side|null} */ (null), // the maps of the main column
  columns: /** @type {SceneColumn[]} */ ([]), // the main one first; empty unless maps are drawn
  ranges: NO_RANGES, // of the main column
  columnRanges: /** @type {Ranges[]} */ ([]), // of each column: `ranges`, or its own
  ownScale: false, // each of several columns has a scale of its own
  isScaleAsked: false, // by the user, not by the server
  differenceRanges: NO_RANGES, // of all differences
  channels: 0,
  order: /** @type {number[]} */ ([]), // channels, or planes of kernels, as they are drawn
  sorting: /** @type {Sorting} */ ({ order: [], texts: null, meaning: "", why: "" }),
  parts: [MAIN], // of a cell
};

/**
 * @param {{state: State, question: Question, maps: Maps, others: ColumnSource[], ownScale?:
 * boolean, history: History|null, sortMaps: Maps|null}} from @returns {Scene}
 */
export function buildScene({ state, question, maps, others, ownScale = false, history, sortMaps }) {
  const picture = pictureOf(maps, question.role);
  const pictureOfMaps = picture?.role === "kernels" ? null : picture;
  // Maps of one pixel are always stored with one scale.
  const isOfLayer =
    pictureOfMaps?.scale === "layer" || pictureOfMaps?.tile.every((side) => side === 1);
  /** @type {SceneBase} */
  const scene = {
    ...{ ...BLANK, question, maps, picture },
    zeroCentred: state.colours === "signed",
    rows: picture?.layout === "rows",
    wholeLayer: state.scale === "layer" || Boolean(isOfLayer),
  };
  const a = sideIn(maps, question);
  if (!a) return { ...scene, kind: "none", why: whyNot(maps, question) };
  const own = { question, maps, side: a, difference: null, history: state.locked ? history : null };
  const columns = [
    { letter: LETTERS[0], ...own, why: "", note: "" },
    ...others.map((each) => otherColumn(each, a)),
  ];
  if (!pictureOfMaps) {
    return ofKernels(scene, /** @type {Kernels} */ (a), columns, state.show);
  }
  const channels = columns.reduce(
    (least, { side }) => (side ? Math.min(least, side.planes.channels) : least),
    a.planes.channels,
  );
  const ranges = columnRanges(state, columns, channels, ownScale);
  const sorted = sorting(state, sortMaps, question, history, channels);
  return {
    ...{ ...scene, kind: "maps", picture: pictureOfMaps, a, columns, channels },
    ...{ order: sorted.order, sorting: sorted, why: sorted.why },
    ...{ ranges: ranges[0], columnRanges: ranges, ownScale },
    isScaleAsked: state.own_scale !== null,
    differenceRanges: differenceRanges(state.scale, columns, channels),
    parts: parts(state.show, columns),
  };
}

/**
 * The kernels of all columns that have some, on one scale with 0 in the middle.
 * @param {SceneBase} scene @param {Kernels} a @param {SceneColumn[]} all
 * @param {ShownTiles} show @returns {KernelsScene}
 */
function ofKernels(scene, a, all, show) {
  const columns = all.filter(({ side }) => side);
  const missing = all.filter(({ why }) => why);
  const peaks = columns.map(({ side }) => /** @type {Kernels} */ (side).peak);
  const ends = peaks.map((peak) => ({ lo: [-peak], hi: [peak] }));
  const { channels: planes } = a.planes;
  const ranges = rangesOf(planes, ends, { scale: "layer", zeroCentred: true });
  const { cells: order, ...arranged } = cellsOf(a);
  /** @type {KernelsScene} */
  const found = {
    ...{ ...scene, kind: "kernels", a, columns, arranged, order, ranges },
    channels: a.rowOf === null ? outputChannels(a) : 0,
    columnRanges: columns.map(() => ranges),
    differenceRanges: differenceRanges("layer", columns, planes),
    parts: parts(show, columns),
    why: missing
      .map(({ question, why }) => (question ? `${origin(question)}: ${why}` : why))
      .join("; "),
  };
  return { ...found, sorting: { ...found.sorting, meaning: kernelMeaning(found) } };
}

/** @param {Scale} scale @param {SceneColumn[]} columns @param {number} channels */
function differenceRanges(scale, [, b], channels) {
  if (!b?.difference) return NO_RANGES;
  const hi = b.difference.peak.subarray(0, channels);
  return rangesOf(channels, [{ lo: hi.map((peak) => -peak), hi }], { scale, zeroCentred: true });
}

/**
 * What the record and the server say of a channel: counts of values that are not finite, flags, and
 * the kind of its worst fault. @param {Maps} maps @param {string} role @param {number} channel
 */
export function flags(maps, role, channel) {
  const of = (/** @type {string} */ name) => maps.arrays[name]?.values[channel] ?? 0;
  const later = role === "feature_maps" && of("activation.dead") > 0;
  return {
    kind: KINDS[of(`${role}.code`)] ?? null,
    large: isLarge(of(`${role}.code`)),
    nan: of(`${role}.nan`),
    positive: of(`${role}.positive_infinity`),
    negative: of(`${role}.negative_infinity`),
    constant: of(`${role}.constant`) > 0,
    dead: later || of(`${role}.dead`) > 0,
    after: later ? (maps.header.activation?.type ?? "activation") : "",
  };
}

export const LARGE_MARK = Object.freeze({
  ...{ kind: /** @type {const} */ ("large"), word: "large", brief: "large" },
  ...{ colour: FAULT_COLOURS.large, isBoth: false },
});

/** The worst fault; null for none. @param {Flags} of @returns {StateMark|null} */
export function loudest({ kind, ...of }) {
  if (kind === null || kind === "unchanged") return null;
  if (kind === "large") return LARGE_MARK;
  if (kind === "nonfinite") {
    const [word, mark] = of.nan
      ? ["NaN", MARK.NAN]
      : of.positive
        ? ["+Inf", MARK.POSITIVE_INFINITY]
        : ["−Inf", MARK.NEGATIVE_INFINITY];
    return { kind, word, brief: word, colour: css(MARK_COLOURS[mark]) };
  }
  const isDead = kind === "dead";
  const brief = isDead ? deadWord() : "const";
  const isBoth = isDead && of.large;
  const after = isDead && of.after ? ` after ${of.after}` : "";
  const colour = css(MARK_COLOURS[isDead ? MARK.DEAD : MARK.CONSTANT]);
  return { kind, word: `${isBoth ? "large, " : ""}${brief}${after}`, brief, colour, isBoth };
}

// Builds the scene of the state from the answers that have arrived, and keeps the last one.

/** How many kept steps are searched for kernels; the first logged step always has them. */
const KERNELS_WITHIN = 12;

export class Scenes {
  /** @param {Source} source */
  constructor(source) {
    this.source = source;
    /** @type {Scene|null} */
    this.scene = null;
    this.sceneKey = "";
    /** What the scene's columns show. @type {Placed[]} */
    this.columns = [];
  }

  /**
   * The last step with kernels up to the asked one.
   * @param {Question|null} asked @param {Layer|undefined} layer of it
   */
  kernels(asked, layer) {
    if (!asked || !layer) return null;
    const now = indexOf(layer.steps, asked.step);
    const back = [...Array(KERNELS_WITHIN).keys()].map((away) => now - away).filter((i) => i > 0);
    for (const i of [...back, 0]) {
      const question = { ...asked, step: layer.steps[i], ts: layer.wall_times[i] };
      const entry = this.source.maps(question);
      // Stop at the first step that has kernels, or whose answer has not arrived.
      if (!entry.value || entry.value.kernels) return question;
      const drawn = layer.steps.indexOf(entry.value.header.kernels?.step ?? NaN);
      if (drawn >= 0) return { ...asked, step: layer.steps[drawn], ts: layer.wall_times[drawn] };
    }
    return { ...asked, step: layer.steps[0], ts: layer.wall_times[0] };
  }

  /**
   * What the columns beside the main one show.
   * @param {State} state @param {Layer|undefined} layer
   */
  placed(state, layer) {
    const { source } = this;
    const isKernels = state.role === "kernels";
    const layersOf = (/** @type {string} */ run) => source.layers(run).value?.layers;
    const runs = source.runs().value?.runs;
    const whyNone = (/** @type {string} */ run) => {
      if (runs && !runs.some((each) => each.run === run)) return `no run ${runText(run)}`;
      const { value, error } = source.layers(run);
      return value ? "" : (error?.message ?? "");
    };
    const { compare } = state;
    const columns = compare && (!isKernels || comparesKernels(compare)) ? [compare] : [];
    const all = columns.map((column) => placed(column, state, layer, layersOf, whyNone));
    if (!isKernels) return all;
    const ofKernels = (/** @type {Placed} */ of) => this.kernels(of.question, of.match?.layer);
    return all.map((each) => ({ ...each, question: ofKernels(each) }));
  }

  /** The layer of a column over all kept steps. @param {Placed} column @returns {History|null} */
  history({ run, match, question }) {
    if (!match || !question) return null;
    return this.source.history(run, match.layer, question.sample);
  }

  /**
   * Whether columns have scales of their own; null while the server's choice is loading.
   * @param {State} state @param {Question|null} main @param {Question|null|undefined} other
   */
  ownScale(state, main, other) {
    if (!main || !other || state.role === "kernels") return false;
    if (state.own_scale !== null) return state.own_scale === 1;
    const { run, step, sample, role, key } = main;
    const { value, error } = this.source.json("difference", {
      ...{ run, step, sample, role, key: [key] },
      ...{ other_run: other.run, other_step: other.step, other_key: [other.key] },
      ...{ other_sample: other.sample, other_role: other.role },
    });
    return value || error ? value?.layers[0]?.scale === "own" : null;
  }

  /**
   * The scene, or the last one while it loads.
   * @param {State} state @param {Layer|undefined} layer @param {History|null} history
   */
  show(state, layer, history) {
    const main = mainSide(state, layer);
    const question = state.role === "kernels" ? this.kernels(main, layer) : main;
    const columns = this.placed(state, layer);
    const entry = question && this.source.maps(question);
    const entries = columns.map(({ question: asked }) => asked && this.source.maps(asked));
    const others = columns.map((column, i) => ({
      question: column.question,
      maps: entries[i]?.value ?? null,
      history: state.locked ? this.history(column) : null,
      why: column.why || (entries[i]?.error?.message ?? ""),
    }));
    const sortQuestion = mainSide({ ...state, step: state.sort_step ?? state.step }, layer);
    const needsSort = state.sort === "strength" || state.sort === "similarity";
    const sortEntry = needsSort && sortQuestion ? this.source.maps(sortQuestion) : null;
    const error = entry?.error ?? null;
    const lost = error ?? entries.find((each) => each?.error)?.error ?? null;
    const more = { error, lost, columns };
    if (!question || error) return { ...more, scene: null, stale: false, drawn: [] };
    const ownScale = this.ownScale(state, question, columns[0]?.question);
    const maps = entry?.value;
    if (!maps || others.some((each) => !each.maps && !each.why) || ownScale === null) {
      return { ...more, scene: this.scene, stale: true, drawn: this.columns };
    }
    this.columns = columns;
    const { scale, locked, own_scale, colours, sort, sort_step, show } = state;
    const sortMaps = sortEntry?.value ?? null;
    const key = JSON.stringify([
      ...[question, scale, locked, own_scale, ownScale, colours === "signed"],
      ...[sort, sort_step, show],
      others.map((each) => [each.question, each.why, Boolean(each.maps), each.history?.steps]),
      Boolean(history && (locked || sort === "change")) && history?.steps,
      Boolean(sortMaps),
    ]);
    if (key !== this.sceneKey) {
      this.sceneKey = key;
      this.scene = buildScene({ state, question, maps, others, ownScale, history, sortMaps });
    }
    return { ...more, scene: this.scene, stale: false, drawn: columns };
  }
}
