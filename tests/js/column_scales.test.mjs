// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { columnRanges, scaleNote } from "../../src/fmapboard/plugin/static/model/value_scale.js";
import { sceneRanges } from "../../src/fmapboard/plugin/static/model/value_scale.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").SceneColumn} SceneColumn */

const HOW = /** @type {const} */ ({ scale: "channel", colours: "viridis", own_scale: false });

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

/** @param {SceneColumn[]} columns @param {number} channels */
function note(columns, channels, ownScale = false) {
  const ranges = sceneRanges(HOW, columns, channels);
  return scaleNote({ columns, ranges, channels, ownScale });
}

const ONE = "Both columns are on one scale.";
const A = column("A", [-1, -2], [1, 0.5]);
const B = column("B", [-100, 0], [200, 3e4], [CODE.FINE, CODE.LARGE]);
const NONE = /** @type {SceneColumn} */ (/** @type {unknown} */ ({ letter: "C", side: null }));

test(
  "a column that has few colours of the shared scale is said to look flat, and beside " + "what",
  () => {
    assert.equal(
      note([A, B], 2),
      "Both columns are on one scale, on which A looks flat: values from −2 to 1 in A, " +
        "but from −100 to 30000 (large) in B.",
    );
  },
);

test(
  "that two columns have one scale is said; nothing of one that is alone or has no " + "picture",
  () => {
    assert.equal(note([A, column("B", [-9, -9], [9, 9])], 2), ONE);
    assert.equal(note([A], 2), "");
    assert.equal(note([A, NONE], 2), "");
    assert.equal(note([A, NONE], 2, true), "");
    const lost = column("B", [NaN, NaN], [NaN, NaN]);
    assert.equal(note([A, lost], 2), ONE);
    const nonfinite = column("B", [0, 0], [0, 0], [CODE.NONFINITE, CODE.NONFINITE]);
    assert.equal(note([A, nonfinite], 2), ONE);
  },
);

test("most channels decide whether a column looks flat", () => {
  const one = column("B", [0, 0, 0], [1e3, 1, 1]);
  assert.equal(note([column("A", [0, 0, 0], [1, 1, 1]), one], 3), ONE);
});

test("columns share one scale, or each has its own, which is said", () => {
  const shared = sceneRanges(HOW, [A, B], 2);
  assert.deepEqual(columnRanges(HOW, [A, B], 2, shared), [shared, shared]);
  const [a, b] = columnRanges({ ...HOW, own_scale: true }, [A, B], 2, shared);
  assert.deepEqual([...a.lo, ...a.hi], [-1, -2, 1, 0.5]);
  assert.deepEqual([...b.lo, ...b.hi], [-100, 0, 200, 3e4]);
  assert.match(note([A, B], 2, true), /equal colours are not equal values/);
});
