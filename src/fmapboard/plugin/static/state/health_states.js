// @ts-check
/** The states that a layer can be in at a step, and the brightness of its cell of the map. */

import { UNKNOWN_LEVEL, isDotted } from "../draw/health_colours.js";

/** @typedef {import("../data/health.js").Health} Health */
/** @typedef {"range"|"change"} Shade what the brightness of a cell shows */

/**
 * Codes of the states, ascending in severity: the worst of several is the largest. The server finds
 * them (`health/states.py`).
 */
export const CODE = Object.freeze({
  UNKNOWN: 0,
  FINE: 1,
  UNCHANGED: 2,
  CONSTANT: 3,
  DEAD: 4,
  MOSTLY_CONSTANT: 5,
  MOSTLY_DEAD: 6,
  LARGE: 7,
  NONFINITE: 8,
});

/**
 * The kind of fault of each code, also the keys of `since`; null for those that are none.
 * @type {readonly (import("../data/answers.js").FaultName|null)[]}
 */
export const KINDS = Object.freeze([
  null,
  null,
  "unchanged",
  "constant",
  "dead",
  "constant",
  "dead",
  "large",
  "nonfinite",
]);

/** From this code on a state is severe. */
export const SEVERE = CODE.MOSTLY_CONSTANT;

/**
 * Word and meaning of each state, by code.
 * @type {readonly {word: string, what: string}[]}
 */
export const STATES = Object.freeze([
  { word: "not recorded", what: "no number of the layer is known at this step" },
  { word: "fine", what: "none of the other states" },
  { word: "unchanged", what: "no weight has changed since the logged step before" },
  { word: "constant", what: "10 % of the channels or more hold one single value" },
  { word: "dead", what: "10 % of the channels or more are 0 everywhere after the activation" },
  { word: "mostly constant", what: "half of the channels or more hold one single value" },
  {
    word: "mostly dead",
    what: "half of the channels or more are 0 everywhere after the activation",
  },
  { word: "large", what: "magnitudes of 10 000 or more" },
  { word: "non-finite", what: "NaN or infinity" },
]);

/**
 * Brightness of the cells.
 * @typedef {object} Shading
 * @property {Uint8Array} levels [steps, layers], see `health_colours.js`
 * @property {number} lo value of level 0: smaller ones have it too; NaN if none is known
 * @property {number} hi value of the highest level: larger ones have it too
 * @property {string} text what it shows
 * @property {boolean} hasGaps the level of some cells of minor states is not known
 */

/** What a scale is of, in words. */
const TEXTS = Object.freeze({
  range: "range of values (maximum − minimum)",
  maps: "change of the maps since the logged step before, in std",
  weights: "change of the weights since the logged step before, relative to their norm",
});

/** @param {Health} of @param {Shade} shade @returns {Shading} */
function shadingOf({ cells, scales }, shade) {
  const { of, lo, hi } = scales[shade];
  const levels = cells[shade];
  const { codes } = cells;
  let hasGaps = false;
  for (let i = 0; i < levels.length && !hasGaps; i += 1) {
    hasGaps = levels[i] === UNKNOWN_LEVEL && isDotted(codes[i]);
  }
  return { levels, lo: lo ?? NaN, hi: hi ?? NaN, text: TEXTS[of], hasGaps };
}

/**
 * @typedef {object} Table
 * @property {Uint8Array} codes [steps, layers]
 * @property {Uint8Array} worst [layers], the largest code of each
 * @property {ReadonlySet<number>} present codes of any cell
 * @property {(shade: Shade) => Shading} shading
 */

/** @type {WeakMap<Health, Table>} */
const tables = new WeakMap();

/** States and brightness of a run's cells, computed once per answer. @param {Health} of @returns {Table} */
export function tableOf(of) {
  const held = tables.get(of);
  if (held) return held;
  const { codes } = of.cells;
  const count = of.layers.length;
  const worst = new Uint8Array(count);
  const counts = new Uint32Array(256);
  for (let start = 0; start < codes.length; start += count) {
    for (let layer = 0; layer < count; layer += 1) {
      const code = codes[start + layer];
      counts[code] += 1;
      if (code > worst[layer]) worst[layer] = code;
    }
  }
  /** @type {Partial<Record<Shade, Shading>>} */
  const shadings = {};
  const table = {
    codes,
    worst,
    present: new Set(Object.values(CODE).filter((code) => counts[code] > 0)),
    shading: (/** @type {Shade} */ shade) => (shadings[shade] ??= shadingOf(of, shade)),
  };
  tables.set(of, table);
  return table;
}

/**
 * The most severe fault of the network at one step.
 * @typedef {object} Fault
 * @property {number} step it may be a step without pictures
 * @property {import("../data/answers.js").FaultName} kind
 * @property {import("../data/health.js").HealthLayer[]} layers that have it, at least one
 */

/** @type {WeakMap<Health, Fault[]>} */
const faults = new WeakMap();

/**
 * The steps with a fault, ascending: kept ones, and others at which a state has begun that lasts.
 * @param {Health} of @returns {Fault[]}
 */
export function faultsOf(of) {
  const held = faults.get(of);
  if (held) return held;
  /** @type {Map<number, {code: number, rows: number[]}>} */
  const worst = new Map();
  const add = (
    /** @type {number} */ step,
    /** @type {number} */ code,
    /** @type {number} */ row,
  ) => {
    const known = worst.get(step);
    if (known && KINDS[known.code] === KINDS[code]) known.rows.push(row);
    else if (!known || code > known.code) worst.set(step, { code, rows: [row] });
  };
  const { codes } = of.cells;
  const count = of.layers.length;
  of.steps.forEach((step, at) => {
    const own = codes.subarray(at * count, (at + 1) * count);
    const most = own.reduce((a, b) => Math.max(a, b), 0);
    if (KINDS[most])
      own.forEach((code, row) => KINDS[code] === KINDS[most] && add(step, most, row));
  });
  const kept = new Set(of.steps);
  for (const [kind, rows] of Object.entries(of.since)) {
    const code = KINDS.findIndex((each) => each === kind);
    // Weights that are unchanged since a step had still changed at it.
    for (const [row, step] of code > CODE.UNCHANGED ? Object.entries(rows) : []) {
      if (!kept.has(step)) add(step, code, Number(row));
    }
  }
  const found = [...worst]
    .sort(([a], [b]) => a - b)
    .map(([step, { code, rows }]) => ({
      step,
      kind: /** @type {import("../data/answers.js").FaultName} */ (KINDS[code]),
      layers: rows.map((row) => of.layers[row]),
    }));
  faults.set(of, found);
  return found;
}

/**
 * The kind of fault of one layer at each step that has one.
 * @param {Health} of @param {string} key of the layer
 * @returns {Map<number, import("../data/answers.js").FaultName>}
 */
export function faultsOfLayer(of, key) {
  const row = of.layers.findIndex((each) => each.key === key);
  /** @type {Map<number, import("../data/answers.js").FaultName>} */
  const found = new Map();
  of.steps.forEach((step, at) => {
    const kind = row < 0 ? null : KINDS[of.cells.codes[at * of.layers.length + row]];
    if (kind) found.set(step, kind);
  });
  return found;
}
