// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { columnRanges, scaleNote } from "../../src/fmapboard/plugin/static/model/value_scale.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").SceneColumn} SceneColumn */

const HOW = /** @type {const} */ ({ scale: "channel", colours: "viridis" });

/**
 * @param {string} letter @param {number[]} lo @param {number[]} hi
 * @param {number[]} codes of the server
 */
function column(letter, lo, hi, codes = lo.map(() => CODE.FINE)) {
  const side = { planes: null, lo, hi };
  const arrays = { "inputs.code": { shape: [codes.length], values: Float32Array.from(codes) } };
  const of = { letter, side, history: null, maps: { arrays }, question: { role: "inputs" } };
  return /** @type {SceneColumn} */ (/** @type {unknown} */ (of));
}

/** @param {SceneColumn[]} columns */
function note(columns, ownScale = false, isScaleAsked = false) {
  return scaleNote({ columns, channels: columns[0].side?.lo.length ?? 0, ownScale, isScaleAsked });
}

const A = column("A", [-1, -2], [1, 0.5]);
const B = column("B", [-100, 0], [200, 3e4], [CODE.FINE, CODE.LARGE]);
const NONE = /** @type {SceneColumn} */ (/** @type {unknown} */ ({ letter: "C", side: null }));

test("what two columns' colours mean is said, with the values of both", () => {
  const values = "−2 to 1 in A, −100 to 30000 (large) in B.";
  assert.equal(note([A, B]), `Both are on A's scale: ${values}`);
  assert.equal(
    note([A, B], true),
    `Each is on its own scale, because most channels of B cannot be read on A's: ${values}`,
  );
  assert.equal(note([A, B], true, true), `Each is on its own scale: ${values}`);
});

test("nothing is said of a column that is alone; and of none without a finite value", () => {
  assert.equal(note([A]), "");
  assert.equal(note([A, NONE]), "");
  assert.equal(note([A, NONE], true), "");
  const lost = column("B", [NaN, NaN], [NaN, NaN]);
  assert.equal(note([A, lost]), "Both are on A's scale: −2 to 1 in A, no finite value in B.");
});

test("both columns have the scale of A, whatever the values of B, or each has its own", () => {
  const [first, second] = columnRanges(HOW, [A, B], 2, false);
  assert.deepEqual([...first.lo, ...first.hi], [-1, -2, 1, 0.5]);
  assert.deepEqual(second, first);
  const [a, b] = columnRanges(HOW, [A, B], 2, true);
  assert.deepEqual([...a.lo, ...a.hi], [-1, -2, 1, 0.5]);
  assert.deepEqual([...b.lo, ...b.hi], [-100, 0, 200, 3e4]);
});
