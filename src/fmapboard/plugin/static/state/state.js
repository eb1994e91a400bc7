// @ts-check
/** What the user is looking at: one plain object, and its form in the address bar. */

import { columnText, columnsOf } from "./columns.js";

/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("./columns.js").Column} Column */
/** @typedef {"channel"|"layer"} Scale whose extremes the scale has */
/** @typedef {"grey"|"viridis"|"magma"|"signed"} Palette */
/** @typedef {"index"|"strength"|"change"|"similarity"} Sort */
/** @typedef {"both"|"difference"|"all"} Shown tiles of a comparison: of all columns, differences */
/** @typedef {"overview"|"maps"|"film"|"attribution"} View what the page shows */
/** @typedef {import("./health_states.js").Shade} Shade */
/** @typedef {"auto"|"pictures"|"states"} Front "auto" for pictures where they have room */
/** @typedef {"auto"|"open"|"closed"} Findings "auto" for open in a report */
/** @typedef {"locked"|"step"} FilmScale one scale for all steps, or each step's own */
/** @typedef {"channels"|"layers"} PixelList what is ordered by the values at a point */
/** @typedef {"network"|"kernel"} Grouping of the list of layers */
/** @typedef {"activations"|"weights"|"gradients"} HistogramGroup */

/**
 * @typedef {object} State
 * @property {View} view
 * @property {string} run
 * @property {string} chosen runs whose findings are listed, one per line; "" for that of `run`
 * @property {Front} front what the overview shows of the layers over the steps
 * @property {Findings} findings the list of findings
 * @property {Shade} shade what brightness shows in the map of layers × steps
 * @property {string} layer key of the layer, "" for the first one
 * @property {number|null} channel
 * @property {number|null} step null follows the newest step
 * @property {Role} role
 * @property {number} sample
 * @property {Scale} scale
 * @property {boolean} locked one scale for all steps
 * @property {boolean} own_scale each column has a scale of its own
 * @property {Palette} colours
 * @property {Palette} gradient_colours those of gradients (see `state/palette.js`)
 * @property {Sort} sort
 * @property {number|null} sort_step the step that the order is computed from
 * @property {readonly Column[]} columns beside the main one; `compare` in the address
 * @property {Shown} show
 * @property {number} rank column whose differing layers are listed, from 1; 0 for no list
 * @property {number} tile side of a tile in CSS px, 0 to fit the window
 * @property {Grouping} group
 * @property {boolean} flagged list only flagged layers
 * @property {string} filter of the list of layers
 * @property {number} overlay opacity over the input image in percent, 0 for off
 * @property {HistogramGroup} histogram
 * @property {string} channels of the film strip, as `3,17`; "" for the open channel
 * @property {FilmScale} film_scale
 * @property {string} pixel relative place that is pointed at, as `0.43,0.61`; "" for none
 * @property {PixelList} pixel_list
 */

/** @type {Readonly<State>} */
export const START = Object.freeze({
  view: "overview",
  run: "",
  chosen: "",
  front: "auto",
  findings: "auto",
  shade: "range",
  layer: "",
  channel: null,
  step: null,
  role: "feature_maps",
  sample: 0,
  scale: "channel",
  locked: false,
  own_scale: false,
  colours: "viridis",
  gradient_colours: "signed",
  sort: "index",
  sort_step: null,
  columns: /** @type {readonly Column[]} */ (Object.freeze([])),
  show: "both",
  rank: 0,
  tile: 0,
  group: "network",
  flagged: false,
  filter: "",
  overlay: 0,
  histogram: "activations",
  channels: "",
  film_scale: "locked",
  pixel: "",
  pixel_list: "channels",
});

/** @type {readonly Palette[]} */
const PALETTES = ["grey", "viridis", "magma", "signed"];
export const TILES = Object.freeze([0, 24, 32, 48, 64, 96, 128, 192, 256]);

/**
 * @typedef {"view"|"front"|"findings"|"shade"|"role"|"scale"|"colours"|"gradient_colours"|"sort"|"show"|"tile"|"group"|
 *   "histogram"|"film_scale"|"pixel_list"} ChoiceField
 */

/**
 * Allowed values of the fields that have a fixed list of them.
 * @type {{readonly [F in ChoiceField]: readonly State[F][]}}
 */
export const CHOICES = Object.freeze({
  view: ["overview", "maps", "film", "attribution"],
  front: ["auto", "pictures", "states"],
  findings: ["auto", "open", "closed"],
  shade: ["range", "change"],
  role: ["feature_maps", "inputs", "gradients_of_maps", "kernels"],
  scale: ["channel", "layer"],
  colours: PALETTES,
  gradient_colours: PALETTES,
  sort: ["index", "strength", "change", "similarity"],
  show: ["both", "difference", "all"],
  tile: TILES,
  group: ["network", "kernel"],
  histogram: ["activations", "weights", "gradients"],
  film_scale: ["locked", "step"],
  pixel_list: ["channels", "layers"],
});

/** Fields of the maps: an address with one of them but without a view shows the maps. */
const OF_MAPS = Object.freeze(["layer", "channel", "step", "compare"]);

/** TensorBoard drops all but the last of repeated entries, so those that are written are numbered. */
const COMPARED = /^compare[23]?$/;
const WHOLE = new Set(["channel", "step", "sort_step", "sample", "tile", "overlay", "rank"]);
/** @type {Partial<Record<string, RegExp>>} */
const FORMS = { channels: /^\d{1,6}(,\d{1,6})*$/, pixel: /^(0(\.\d+)?|1),(0(\.\d+)?|1)$/ };
const MAY_BE_NEGATIVE = new Set(["step", "sort_step"]);

/**
 * One value of an address, or undefined if it is not valid for the field.
 * @param {string} field @param {string} text @returns {unknown}
 */
function parsed(field, text) {
  const start = /** @type {Record<string, unknown>} */ (START)[field];
  if (start === undefined || field === "columns") return undefined;
  if (typeof start === "boolean") return text === "1" ? true : text === "0" ? false : undefined;
  /** @type {unknown} */
  let value = text;
  if (WHOLE.has(field)) {
    if (!/^-?\d{1,15}$/.test(text)) return undefined;
    value = Number(text);
    if (Number(value) < 0 && !MAY_BE_NEGATIVE.has(field)) return undefined;
    if (field === "overlay" && Number(value) > 100) return undefined;
  }
  if (FORMS[field]?.test(text) === false) return undefined;
  const among = /** @type {Partial<Record<string, readonly unknown[]>>} */ (CHOICES)[field];
  return among && !among.includes(value) ? undefined : value;
}

/**
 * The state of an address; missing and invalid fields have the values of `START`.
 * @param {Iterable<[string, string]>} entries @returns {State}
 */
export function fromEntries(entries) {
  /** @type {Record<string, unknown>} */
  const state = { ...START };
  /** @type {Set<string>} */
  const given = new Set();
  const compared = [];
  for (const [field, text] of entries) {
    if (COMPARED.test(field)) {
      compared.push(text);
      given.add("compare");
    }
    const value = Object.hasOwn(START, field) ? parsed(field, text) : undefined;
    if (value === undefined) continue;
    state[field] = value;
    given.add(field);
  }
  if (!given.has("view") && OF_MAPS.some((field) => given.has(field))) state["view"] = "maps";
  state.columns = columnsOf(compared);
  return /** @type {State} */ (/** @type {unknown} */ (state));
}

/**
 * The fields of a state that differ from `START`, in a fixed order.
 * @param {State} state @returns {[string, string][]}
 */
export function toEntries(state) {
  /** @type {[string, string][]} */
  const entries = [];
  for (const [field, start] of Object.entries(START)) {
    const value = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (state))[field];
    if (field === "columns") {
      state.columns.forEach((column, i) => {
        entries.push([i ? `compare${i + 1}` : "compare", columnText(column)]);
      });
      continue;
    }
    if (value === null || (value === start && !(field === "view" && ofMaps(state)))) continue;
    entries.push([field, typeof value === "boolean" ? (value ? "1" : "0") : String(value)]);
  }
  return entries;
}

/** True if the address of a state has a field of the maps. @param {State} state */
function ofMaps(state) {
  const { layer, channel, step, columns } = state;
  return layer !== "" || channel !== null || step !== null || columns.length > 0;
}

/**
 * fmapboard's entries in a hash such as `#feature_maps&p.feature_maps.run=a`.
 * @param {string} hash @param {string} prefix @returns {[string, string][]}
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
 * The hash with fmapboard's entries replaced; other entries are kept.
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
