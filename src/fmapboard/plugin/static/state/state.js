// @ts-check
/** What the person is looking at: one plain object, and its place in the address bar. */

/**
 * @typedef {object} State
 * @property {string} run
 * @property {string} layer key of the layer, "" for the first one
 * @property {number|null} channel
 * @property {number|null} step null follows the newest step
 * @property {string} role
 * @property {number} sample
 * @property {string} scale "channel" or "layer"
 * @property {boolean} locked one scale for all steps
 * @property {string} colours
 * @property {string} sort
 * @property {number|null} sort_step the step that the order was taken at
 * @property {string} compare "off", "step", "run", "sample" or "role"
 * @property {string} other what it is compared with
 * @property {string} show "both", "difference" or "all"
 * @property {number} tile wanted side of a tile in CSS px, 0 for what fits
 * @property {string} group "network" or "kernel"
 * @property {boolean} sick only layers that need a look
 * @property {string} filter
 * @property {number} overlay opacity over the input image in percent, 0 for off
 * @property {string} histogram which histogram is drawn over time
 */

/** @type {Readonly<State>} */
export const START = Object.freeze({
  run: "", layer: "", channel: null, step: null, role: "feature_maps", sample: 0,
  scale: "channel", locked: false, colours: "viridis", sort: "index", sort_step: null,
  compare: "off", other: "", show: "both", tile: 0, group: "network", sick: false, filter: "",
  overlay: 0, histogram: "activations",
});

export const TILES = Object.freeze([0, 24, 32, 48, 64, 96, 128, 192, 256]);

/** What a field may be, where that is a short list. @type {Readonly<Record<string, readonly unknown[]>>} */
export const CHOICES = Object.freeze({
  role: ["feature_maps", "inputs", "gradients_of_maps", "kernels"],
  scale: ["channel", "layer"],
  colours: ["grey", "viridis", "magma", "signed"],
  sort: ["index", "strength", "change", "similarity"],
  compare: ["off", "step", "run", "sample", "role"],
  show: ["both", "difference", "all"],
  tile: TILES,
  group: ["network", "kernel"],
  histogram: ["activations", "weights", "gradients"],
});

const WHOLE = new Set(["channel", "step", "sort_step", "sample", "tile", "overlay"]);
const MAY_BE_NEGATIVE = new Set(["step", "sort_step"]);

/**
 * One value as it stands in an address, or undefined where it is none of the field's.
 * @param {string} field @param {string} text @returns {unknown}
 */
function parsed(field, text) {
  const start = /** @type {Record<string, unknown>} */ (START)[field];
  if (start === undefined) return undefined;
  if (typeof start === "boolean") return text === "1" ? true : text === "0" ? false : undefined;
  /** @type {unknown} */
  let value = text;
  if (WHOLE.has(field)) {
    if (!/^-?\d{1,15}$/.test(text)) return undefined;
    value = Number(text);
    if (Number(value) < 0 && !MAY_BE_NEGATIVE.has(field)) return undefined;
    if (field === "overlay" && Number(value) > 100) return undefined;
  }
  const among = CHOICES[field];
  return among && !among.includes(value) ? undefined : value;
}

/**
 * The state that address entries ask for; what is missing or makes no sense is the start's.
 * @param {Iterable<[string, string]>} entries @returns {State}
 */
export function fromEntries(entries) {
  /** @type {Record<string, unknown>} */
  const state = { ...START };
  for (const [field, text] of entries) {
    const value = Object.hasOwn(START, field) ? parsed(field, text) : undefined;
    if (value !== undefined) state[field] = value;
  }
  return /** @type {State} */ (/** @type {unknown} */ (state));
}

/**
 * The entries of a state that differ from the start, in a fixed order.
 * @param {State} state @returns {[string, string][]}
 */
export function toEntries(state) {
  /** @type {[string, string][]} */
  const entries = [];
  for (const [field, start] of Object.entries(START)) {
    const value = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (state))[field];
    if (value === start || value === null) continue;
    entries.push([field, typeof value === "boolean" ? (value ? "1" : "0") : String(value)]);
  }
  return entries;
}

/**
 * Entries of ours out of a hash such as `#feature_maps&p.feature_maps.run=a`.
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
      continue; // a stray % in an address typed by hand
    }
  }
  return found;
}

/**
 * The hash with our entries replaced and everything else as it was.
 * @param {string} hash @param {string} prefix @param {[string, string][]} entries
 */
export function writeHash(hash, prefix, entries) {
  const others = hash.replace(/^#/, "").split("&").filter((part) => part && !part.startsWith(prefix));
  const ours = entries.map(([field, value]) => `${prefix}${field}=${encodeURIComponent(value)}`);
  return "#" + [...others, ...ours].join("&");
}
