// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { differenceRange } from "../../src/fmapboard/plugin/static/picture/captions.js";
import { stretched } from "../../src/fmapboard/plugin/static/picture/pixels.js";
import {
  BETWEEN,
  mapsOf,
  otherColumn,
  partName,
  parts,
} from "../../src/fmapboard/plugin/static/model/scene.js";
import { ofLayers, seriesOf, spanOf } from "../../src/fmapboard/plugin/static/model/look.js";
import { SAME } from "../../src/fmapboard/plugin/static/model/state.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";
import { LAYER } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").SceneColumn} SceneColumn */

const [A, B] = [mapsOf(0), mapsOf(1)];

/** @param {number[]|null} peak of the difference @returns {SceneColumn} */
function column(peak) {
  const difference = peak && /** @type {any} */ ({ peak: Float64Array.from(peak) });
  const base = {
    letter: "",
    question: null,
    maps: null,
    side: null,
    why: "",
    note: "",
    history: null,
  };
  return { ...base, difference };
}

test("a column without a picture keeps its tile, and has no difference", () => {
  const [a, b] = [column(null), column([1, 5])];
  assert.deepEqual(parts("both", [a, b]), [A, B]);
  assert.deepEqual(parts("difference", [a, b]), [BETWEEN]);
  assert.deepEqual(parts("all", [a, b]), [A, B, BETWEEN]);
  assert.deepEqual(parts("difference", [a, column(null)]), [A, B]);
  assert.deepEqual(parts("all", [a]), [A]);
});

test("a bar of differences without a finite value has no ends", () => {
  const columns = [column(null), column([NaN, 0, 2])];
  const ends = { lo: Float64Array.of(0, 0, -2), hi: Float64Array.of(0, 0, 2) };
  const scene = /** @type {any} */ ({ columns, differenceRanges: ends });
  assert.deepEqual(
    [0, 1, 2].map((channel) => differenceRange(scene, channel)),
    [
      [NaN, NaN],
      [0, 0],
      [-2, 2],
    ],
  );
});

test("a part names the columns that it is of", () => {
  assert.deepEqual([A, B, BETWEEN].map(partName), ["A", "B", "A − B"]);
});

/** @param {number} size @param {number} channels */
function side(size, channels) {
  const levels = new Uint8Array(channels * size * size);
  const planes = { channels, height: size, width: size, levels, marks: null, coarse: 1 };
  return { planes, lo: new Float32Array(channels), hi: new Float32Array(channels) };
}

/** @param {number} size @param {number} channels */
function other(size, channels) {
  const { planes, lo, hi } = side(size, channels);
  const array = (/** @type {Float32Array} */ values) => ({ shape: [1, channels], values });
  const maps = /** @type {any} */ ({
    planes: new Map([["feature_maps/0", planes]]),
    arrays: { "feature_maps.lo": array(lo), "feature_maps.hi": array(hi) },
    ...{ missing: [], header: { pictures: [] } },
  });
  const question = { run: "b", key: "k", step: 0, ts: 0, role: "feature_maps", sample: 0 };
  return otherColumn({ question, maps, why: "" }, side(4, 8));
}

test("a column says what of it is not compared", () => {
  assert.equal(other(4, 8).note, "");
  assert.equal(other(4, 6).note, "8 and 6 channels drawn: only the first 6 are compared");
  const small = other(2, 8);
  assert.equal(small.difference, null);
  assert.equal(small.note, "maps of 2×2 px, not 4×4 px: stretched to the same size, no difference");
  assert.equal(otherColumn({ question: null, maps: null, why: "gone" }, side(4, 8)).why, "gone");
});

test("a map of another size is stretched by whole pixels", () => {
  const pixels = Uint32Array.from([1, 2, 3, 4]);
  const size = { height: 2, width: 2 };
  assert.equal(stretched(pixels, size, 2, 2), pixels);
  assert.deepEqual([...stretched(pixels, size, 2, 4)], [1, 1, 2, 2, 3, 3, 4, 4]);
});

test("columns that differ only in step or sample share one curve", () => {
  const asked = [];
  const source = {
    history: (/** @type {string} */ run) => asked.push(run) && null,
    numbers: () => null,
  };
  const place = (/** @type {string} */ run, /** @type {object} */ own) => ({
    ...{ run, column: { ...SAME, ...own }, question: null, why: "" },
    match: { layer: { ...LAYER, steps: [5, 90] }, by: /** @type {const} */ ("name") },
  });
  const layer = { ...LAYER, steps: [0, 20] };
  const of = (/** @type {ReturnType<typeof place>} */ column) =>
    seriesOf(/** @type {any} */ (source), { ...START, run: "a" }, layer, [column]);
  const letters = (/** @type {ReturnType<typeof of>} */ all) =>
    all.map((each) => [each.run, each.letters]);
  assert.deepEqual(letters(of(place("a", { step: 3 }))), [["a", "A, B"]]);
  const two = [
    ["a", "A"],
    ["b", "B"],
  ];
  assert.deepEqual(letters(of(place("b", {}))), two);
  assert.deepEqual(spanOf(of(place("b", {}))), [0, 90]);
  assert.deepEqual(letters(of(/** @type {any} */ ({ ...place("c", {}), match: null }))), [
    ["a", "A"],
  ]);
  const inputs = [
    { ...place("a", {}), column: { ...SAME, role: /** @type {const} */ ("inputs") } },
  ];
  const both = of(inputs[0]);
  assert.equal(both.length, 2);
  assert.deepEqual(
    ofLayers(both).map(({ letters }) => letters),
    ["A, B"],
  );
});
