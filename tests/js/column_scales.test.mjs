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

const A = column("A", [-1.5, -2], [1, 0.5]);
const B = column("B", [-100, 0], [200, 3e4], [CODE.FINE, CODE.LARGE]);
const NONE = /** @type {SceneColumn} */ (/** @type {unknown} */ ({ letter: "C", side: null }));

test("what two columns' colours mean is said, with the values of both", () => {
  const values = "A\u00a0−2…\u20601, B\u00a0−100…\u206030,000 (large).";
  assert.equal(scaleNote({ columns: [A, B], ownScale: false }), `Both on A's scale: ${values}`);
  assert.equal(scaleNote({ columns: [A, B], ownScale: true }), `Each on its own scale: ${values}`);
});

test("nothing is said of a column that is alone; and of none without a finite value", () => {
  const note = (/** @type {SceneColumn[]} */ columns) => scaleNote({ columns, ownScale: false });
  assert.equal(note([A]), "");
  assert.equal(note([A, NONE]), "");
  const lost = column("B", [NaN, NaN], [NaN, NaN]);
  assert.equal(note([A, lost]), "Both on A's scale: A\u00a0−2…\u20601, B no finite value.");
});

test("the values of maps that are stored around 0 are those that they have", () => {
  const planes = { height: 1, width: 2, levels: [128, 255], marks: null };
  const signed = { ...B, side: { planes, lo: [-3], hi: [3] } };
  const columns = [A, /** @type {SceneColumn} */ (/** @type {unknown} */ (signed))];
  assert.match(scaleNote({ columns, ownScale: true }), /B\u00a00…\u20603 /);
});

test("both columns have the scale of A, whatever the values of B, or each has its own", () => {
  const [first, second] = columnRanges(HOW, [A, B], 2, false);
  assert.deepEqual([...first.lo, ...first.hi], [-1.5, -2, 1, 0.5]);
  assert.deepEqual(second, first);
  const [a, b] = columnRanges(HOW, [A, B], 2, true);
  assert.deepEqual([...a.lo, ...a.hi], [-1.5, -2, 1, 0.5]);
  assert.deepEqual([...b.lo, ...b.hi], [-100, 0, 200, 3e4]);
});
