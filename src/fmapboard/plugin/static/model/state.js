// @ts-check
/** What the user is looking at, in values, and its form in the address bar. */

import { indexOf, within } from "../server/steps.js";

/** @import {Layer, Role} from "../server/server.js" */
/** @import {Column, FilmScale, Findings, FrontKind, HistogramGroup, Kind} from "./model.js" */
/** @import {Palette, Point, Scale, SheetScale, ShownTiles, Sort, State} from "./model.js" */
/** @import {View} from "./model.js" */

/** Names of the main column and of the one beside it. */
export const LETTERS = Object.freeze(["A", "B"]);

/** @type {Readonly<Column>} */
export const SAME = Object.freeze({ run: "", step: null, sample: null, role: "" });

const ROLES = ["feature_maps", "inputs", "gradients_of_maps", "kernels"];
/** What follows the last "@": a step, a sample and a role, each of which may be missing. */
const PLACE = /^(-?\d{1,15})?(?::(\d{1,6})?(?::([a-z_]+)?)?)?$/;

/**
 * A column as an address has it: `RUN@STEP`, `RUN@STEP:SAMPLE` or `RUN@STEP:SAMPLE:ROLE`. What is
 * left out is that of the main column, so `RUN@` follows the slider. The last "@" separates.
 * @param {Column} column
 */
export function columnText({ run, step, sample, role }) {
  const place = [step ?? "", sample ?? "", role].map(String);
  return `${run}@${place.join(":").replace(/:+$/, "")}`;
}

/**
 * The column of an address; without a valid place after an "@", a run.
 * @param {string} text
 * @returns {Column}
 */
export function parseColumn(text) {
  const cut = text.lastIndexOf("@");
  const found = cut < 0 ? null : PLACE.exec(text.slice(cut + 1));
  const [, step, sample, role = ""] = found ?? [];
  if (!found || (role && !ROLES.includes(role))) return { ...SAME, run: text };
  return {
    run: text.slice(0, cut),
    step: step === undefined ? null : Number(step),
    sample: sample === undefined ? null : Number(sample),
    role: /** @type {Role|""} */ (role),
  };
}

/**
 * A column that differs from the picture in one thing; null if there is nothing else.
 * @param {Kind} kind @param {State} state @param {Layer|undefined} layer @param {string[]} runs
 */
export function newColumn(kind, state, layer, runs) {
  if (!layer) return null;
  const now = layer.steps[indexOf(layer.steps, state.step)];
  const all = {
    step: layer.steps.filter((step) => step !== now),
    run: runs.filter((run) => run !== state.run),
    sample: [...Array(layer.samples).keys()].filter((sample) => sample !== state.sample),
    role: layer.roles.filter((role) => role !== "kernels" && role !== state.role),
  };
  const [value] = all[kind];
  return value === undefined ? null : { ...SAME, [kind]: value };
}

/**
 * The column after a change, swapped with the main one.
 * @param {State} state @param {State} before
 */
export function swapped(state, before) {
  const { compare } = state;
  if (!compare || compare !== before.compare) return compare;
  const fields = /** @type {const} */ (["run", "sample", "role"]);
  const same = fields.filter((of) => compare[of] === state[of] && before[of] !== state[of]);
  return { ...compare, ...Object.fromEntries(same.map((of) => [of, before[of]])) };
}

/** True if kernels can differ: they are the same for all samples. @param {Column} column */
export function comparesKernels({ run, step, role }) {
  return (run !== "" || step !== null) && (role === "" || role === "kernels");
}

// The channels of the film strip: as typed by the user, and in the address.

/** Channels in one film strip, at most. */
export const MOST_CHANNELS = 12;

/**
 * The channels of the film strip, in their chosen order.
 * @param {State} state @param {number} drawn channels with pictures
 * @param {number|null} [shown] the channel that stands for the layer
 */
export function filmChannels(state, drawn, shown) {
  const chosen = state.channels.filter((channel) => channel < drawn);
  if (chosen.length) return chosen.slice(0, MOST_CHANNELS);
  const open = state.channel ?? shown ?? 0;
  return drawn > 0 ? [open < drawn ? open : 0] : [];
}

/**
 * Channels as typed; `refused` says what was left out.
 * @param {string} text @param {number} drawn channels with pictures
 */
export function readChannels(text, drawn) {
  /** @type {Set<number>} */
  const channels = new Set();
  const refused = [];
  for (const word of text.split(/[\s,;]+/).filter(Boolean)) {
    const found = /^(\d{1,6})(?:[-–](\d{1,6}))?$/.exec(word);
    if (!found) {
      refused.push(`“${word}” is no channel number`);
      continue;
    }
    const from = Number(found[1]);
    const to = found[2] === undefined ? from : Number(found[2]);
    if (to < from) refused.push(`“${word}” ends before it begins`);
    for (let channel = from; channel <= Math.min(to, drawn - 1); channel += 1) {
      channels.add(channel);
    }
    if (to >= drawn) refused.push(`channel ${to}: only 0 to ${drawn - 1} are drawn`);
  }
  const kept = [...channels].slice(0, MOST_CHANNELS);
  if (channels.size > kept.length) {
    refused.push(`${channels.size} channels: the first ${MOST_CHANNELS} are shown`);
  }
  return { channels: kept, refused };
}

/** `channels` after one was added or removed. @param {State} state @param {number} channel */
export function toggled(state, channel) {
  const open = state.channel === null ? [] : [state.channel];
  const before = state.channels.length ? state.channels : open;
  const after = before.includes(channel)
    ? before.filter((each) => each !== channel)
    : [...before, channel];
  return after.slice(-MOST_CHANNELS);
}

/**
 * All channels moved, unless one would leave the layer.
 * @param {number[]} channels @param {number} by @param {number} drawn
 */
export function moved(channels, by, drawn) {
  const after = channels.map((channel) => channel + by);
  return after.every((channel) => channel >= 0 && channel < drawn) ? after : channels;
}

// The point that is looked at, and its cell in a map.

/**
 * A point within the picture, as exact as an address has it.
 * @param {Point} point
 * @returns {Point}
 */
export function pointWithin({ u, v }) {
  const inside = (/** @type {number} */ x) => Number(Math.min(1, Math.max(0, x)).toFixed(4));
  return { u: inside(u), v: inside(v) };
}

/**
 * The cell of a map that a point is in.
 * @param {Point} point @param {number} height @param {number} width px
 */
export function cellOf({ u, v }, height, width) {
  return { y: within(Math.floor(v * height), height), x: within(Math.floor(u * width), width) };
}

/**
 * The centre of a cell, some cells away from that of a point.
 * @param {Point} point @param {number} height @param {number} width of the map, px
 * @param {number} down @param {number} right cells
 * @returns {Point}
 */
export function movedPoint(point, height, width, down, right) {
  const { y, x } = cellOf(point, height, width);
  const [row, column] = [within(y + down, height), within(x + right, width)];
  return { u: (column + 0.5) / width, v: (row + 0.5) / height };
}

// What the user is looking at: one plain object, and its form in the address bar.

/** The state of an address without entries, and what its fields mean. */
export const START = {
  view: /** @type {View} */ ("overview"),
  run: "",
  front: /** @type {FrontKind} */ ("auto"), // what the overview shows of the layers over the steps
  sheet_scale: /** @type {SheetScale} */ ("picture"), // each picture's own, or one per layer
  findings: /** @type {Findings} */ ("closed"), // the list of findings
  layer: "", // key of the layer, "" for the first one
  channel: /** @type {number|null} */ (null),
  step: /** @type {number|null} */ (null), // follows the newest step
  role: /** @type {Role} */ ("feature_maps"),
  sample: 0,
  // place of the slice of volumes in percent, null for the middle one
  depth: /** @type {number|null} */ (null),
  scale: /** @type {Scale} */ ("channel"),
  locked: false, // one scale for all steps
  own_scale: /** @type {0|1|null} */ (null), // 1: each column's own, 0: A's, null: server's choice
  colours: /** @type {Palette} */ ("viridis"),
  gradient_colours: /** @type {Palette} */ ("signed"), // those of gradients (`palette_choice.js`)
  sort: /** @type {Sort} */ ("index"),
  sort_step: /** @type {number|null} */ (null), // the step that the order is computed from
  compare: /** @type {Column|null} */ (null), // the column beside the main one
  show: /** @type {ShownTiles} */ ("both"),
  rank: false, // list the layers by how much the columns differ
  tile: 0, // side of a tile in CSS px, 0 to fit the window
  flagged: false, // list only flagged layers
  filter: "", // of the list of layers
  // opacity over the input image in percent, 0 for off; null is off but for heads of attention
  overlay: /** @type {number|null} */ (null),
  histogram: /** @type {HistogramGroup} */ ("activations"),
  // of the film strip, or the open one
  channels: /** @type {readonly number[]} */ (Object.freeze([])),
  film_scale: /** @type {FilmScale} */ ("locked"),
  pixel: /** @type {Point|null} */ (null), // that is pointed at
};

/** @type {readonly Palette[]} */
const PALETTES = ["grey", "viridis", "magma", "signed"];
export const TILES = Object.freeze([0, 24, 32, 48, 64, 96, 128, 192, 256]);

/**
 * Allowed values of some fields.
 * @satisfies {{readonly [F in keyof State]?: readonly State[F][]}}
 */
export const CHOICES = Object.freeze({
  view: ["overview", "maps", "film", "attribution"],
  front: ["auto", "pictures", "states"],
  sheet_scale: ["picture", "row"],
  findings: ["closed", "open"],
  role: ["feature_maps", "inputs", "gradients_of_maps", "kernels"],
  scale: ["channel", "layer"],
  colours: PALETTES,
  gradient_colours: PALETTES,
  sort: ["index", "strength", "change", "similarity"],
  show: ["both", "difference", "all"],
  tile: TILES,
  histogram: ["activations", "weights", "gradients"],
  film_scale: ["locked", "step"],
});

/** Fields of the maps: an address with one of them but without a view shows the maps. */
const OF_MAPS = Object.freeze(["layer", "channel", "step", "compare"]);

const COUNT = /^\d{1,15}$/;
const STEP = /^-?\d{1,15}$/;
/** Forms of numbers in the address. @type {Partial<Record<string, RegExp>>} */
const NUMBERS = {
  channel: COUNT,
  sample: COUNT,
  depth: /^(\d{1,2}|100)$/,
  tile: /^\d{1,3}$/,
  step: STEP,
  sort_step: STEP,
  overlay: /^(\d{1,2}|100)$/,
  own_scale: /^[01]$/,
};

const CHANNELS = /^\d{1,6}(,\d{1,6})*$/;
const POINT = /^(0(?:\.\d+)?|1),(0(?:\.\d+)?|1)$/;
/**
 * Fields that are neither texts, numbers nor truth values: `3,17`, a column, `0.43,0.61`.
 */
const FORMS = {
  channels: {
    read(/** @type {string} */ text) {
      return CHANNELS.test(text) ? [...new Set(text.split(",").map(Number))] : undefined;
    },
    write: (/** @type {State} */ { channels }) => channels.join(),
  },
  compare: {
    read: (/** @type {string} */ text) => (text ? parseColumn(text) : null),
    write: (/** @type {State} */ { compare }) => (compare ? columnText(compare) : ""),
  },
  pixel: {
    read(/** @type {string} */ text) {
      const [, u, v] = POINT.exec(text) ?? [];
      return u === undefined ? undefined : { u: Number(u), v: Number(v) };
    },
    write: (/** @type {State} */ { pixel }) => (pixel ? `${pixel.u},${pixel.v}` : ""),
  },
};

/** @param {string} field @returns {field is keyof typeof FORMS} */
const hasForm = (field) => Object.hasOwn(FORMS, field);

/**
 * A value of an address; undefined if invalid.
 * @param {string} field @param {string} text
 * @returns {unknown}
 */
function parsed(field, text) {
  if (hasForm(field)) return FORMS[field].read(text);
  const start = /** @type {Record<string, unknown>} */ (START)[field];
  if (start === undefined) return undefined;
  if (typeof start === "boolean") return text === "1" ? true : text === "0" ? false : undefined;
  const form = NUMBERS[field];
  if (form && !form.test(text)) return undefined;
  const value = typeof start === "string" ? text : Number(text);
  const among = /** @type {Partial<Record<string, readonly unknown[]>>} */ (CHOICES)[field];
  return among && !among.includes(value) ? undefined : value;
}

/** A field as an address has it; "" for null. @param {State} state @param {string} field */
function written(state, field) {
  if (hasForm(field)) return FORMS[field].write(state);
  const value = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (state))[field];
  return typeof value === "boolean" ? String(Number(value)) : String(value ?? "");
}

/**
 * The state of an address, `START` where it is invalid.
 * @param {Iterable<[string, string]>} entries
 * @returns {State}
 */
export function fromEntries(entries) {
  /** @type {Record<string, unknown>} */
  const state = { ...START };
  /** @type {Set<string>} */
  const given = new Set();
  for (const [field, text] of entries) {
    const value = Object.hasOwn(START, field) ? parsed(field, text) : undefined;
    if (value === undefined) continue;
    state[field] = value;
    given.add(field);
  }
  if (!given.has("view") && OF_MAPS.some((field) => given.has(field))) state["view"] = "maps";
  return /** @type {State} */ (/** @type {unknown} */ (state));
}

/**
 * The fields of a state that differ from `START`.
 * @param {State} state
 * @returns {[string, string][]}
 */
export function toEntries(state) {
  /** @type {[string, string][]} */
  const entries = [];
  const { layer, channel, step, compare } = state;
  const isOfMaps = layer !== "" || channel !== null || step !== null || compare !== null;
  for (const field of Object.keys(START)) {
    const text = written(state, field);
    const isStart = text === written(START, field) && !(field === "view" && isOfMaps);
    if (!isStart) entries.push([field, text]);
  }
  return entries;
}

/**
 * fmapboard's entries in a hash.
 * @param {string} hash @param {string} prefix
 * @returns {[string, string][]}
 */
export function readHash(hash, prefix) {
  /** @type {[string, string][]} */
  const found = [];
  for (const part of hash.replace(/^#/, "").split("&")) {
    const cut = part.indexOf("=");
    if (cut < 0 || !part.startsWith(prefix)) continue;
    try {
      found.push([part.slice(prefix.length, cut), decodeURIComponent(part.slice(cut + 1))]);
    } catch {
      continue; // not percent-encoded correctly, as in an address typed by hand
    }
  }
  return found;
}

/**
 * The hash with other entries.
 * @param {string} hash @param {string} prefix @param {[string, string][]} entries
 */
export function writeHash(hash, prefix, entries) {
  const others = hash
    .replace(/^#/, "")
    .split("&")
    .filter((part) => part && !part.startsWith(prefix));
  const ours = entries.map(([field, value]) => `${prefix}${field}=${encodeURIComponent(value)}`);
  return "#" + [...others, ...ours].join("&");
}
