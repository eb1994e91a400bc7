// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { drawnOf, rangesIn } from "../../src/fmapboard/plugin/static/model/value_scale.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").History} History */
/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").SceneColumn} SceneColumn */

const HOW = /** @type {const} */ ({ scale: "channel", colours: "viridis" });

/**
 * @param {number} channels @param {number[]} lo @param {number[]} hi of all steps
 * @returns {History}
 */
function history(channels, lo, hi) {
  const array = (/** @type {number[]} */ values) => ({
    shape: [values.length / channels, channels],
    values: Float32Array.from(values),
  });
  return {
    steps: lo.map((_, i) => i),
    arrays: { "feature_maps.lo": array(lo), "feature_maps.hi": array(hi) },
  };
}

/** @param {string} letter @param {number[]} lo @param {number[]} hi @param {History|null} of */
function column(letter, lo, hi, of) {
  const question = { run: letter, key: "k", step: 0, ts: 0, role: "feature_maps", sample: 0 };
  return /** @type {SceneColumn} */ (
    /** @type {unknown} */ ({ letter, question, side: { planes: null, lo, hi }, history: of })
  );
}

test("a locked scale covers all kept steps of a column, whatever number of channels it has", () => {
  const a = column("A", [0, 0], [1, 1], history(2, [0, -1, -5, 0], [1, 2, 3, 4]));
  const found = rangesIn(HOW, a, 2);
  assert.deepEqual([...found.lo, ...found.hi], [-5, -1, 3, 4]);
  const lo = [0, 0, 0, -7, 0, 0];
  const b = column("B", [0, 0, 0], [1, 1, 9], history(3, lo, [1, 8, 99, 1, 1, 99]));
  const ofTwo = rangesIn(HOW, b, 2);
  assert.deepEqual([...ofTwo.lo, ...ofTwo.hi], [-7, 0, 1, 8]);
});

test("a column whose kept steps are not known counts with its step, and that is said", () => {
  const a = column("A", [0], [1], history(1, [-1, -2], [1, 2]));
  const b = column("B", [0], [9], null);
  assert.deepEqual([...rangesIn(HOW, b, 1).hi], [9]);
  const said = (/** @type {SceneColumn[]} */ ...columns) =>
    drawnOf({ columns }, { locked: true, sample: 0 });
  assert.equal(said(a, b), "A's map, over 2 logged steps");
  assert.equal(said(b, a), "A's map, only this step (the others are not known)");
  const once = column("B", [0], [1], history(1, [0], [1]));
  assert.equal(said(once), "sample 0, over 1 logged step");
  assert.equal(said(b), "sample 0, only this step (the others are not known)");
  assert.equal(drawnOf({ columns: [a, b] }, { locked: false, sample: 0 }), "A's map");
});
