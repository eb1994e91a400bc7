// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { groupOf, rank, ranked } from "../../src/fmapboard/plugin/static/model/compare.js";
import { SAME, START } from "../../src/fmapboard/plugin/static/model/state.js";
import { Source } from "../../src/fmapboard/plugin/static/server/source.js";
import { LAYER } from "./fixtures.mjs";

/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/routes.js").LayerDifference}
 *   LayerDifference
 */

/** @param {string} key @param {Partial<LayerDifference>} more */
function row(key, more) {
  const difference = /** @type {LayerDifference} */ ({
    ...{ key, other_key: key, inputs: "same", step: 0, other_step: 0, measure: "maps" },
    ...{ value: 0, rounding: 0, nonfinite: 0, why: "", group: more.measure ?? "maps" },
    ...more,
  });
  return { key, match: { layer: LAYER, by: /** @type {const} */ ("name") }, difference };
}

test("layers are ranked by difference, and never across measures", () => {
  const rows = [
    row("small", { value: 0.1 }),
    row("statistics", { value: 1.9, measure: "statistics" }),
    { key: "missing", match: null, difference: null },
    row("large", { value: 1.2 }),
    row("some NaN", { value: 0, nonfinite: 0.2, group: "nonfinite" }),
    row("unknown", { measure: null, value: null, group: "none" }),
    row("all NaN", { value: null, nonfinite: 1, group: "nonfinite" }),
  ];
  assert.deepEqual(
    ranked(rows).map(({ key }) => key),
    ["all NaN", "some NaN", "large", "small", "statistics", "missing", "unknown"],
  );
  assert.equal(groupOf(rows[2]), "none");
});

test(
  "layers with far larger values on a side are ranked by how many times larger these " + "are",
  () => {
    const rows = [
      row("10 times smaller", { value: 1.41, ratio: 0.1, group: "size" }),
      row("9 times larger", { value: 1.4, ratio: 9 }),
      row("a million times larger", { value: 1.41, ratio: 1e6, group: "size" }),
      row("zeros beside values", { value: 1.41, ratio: "Infinity", group: "size" }),
      row("values beside zeros", { value: 1.41, ratio: 0, group: "size" }),
      row("zeros", { value: 0, ratio: null }),
      row("statistics", { value: 1.41, ratio: 50, measure: "statistics", group: "size" }),
      row("some NaN", { value: 1.41, ratio: 50, nonfinite: 0.2, group: "nonfinite" }),
    ];
    assert.deepEqual(
      ranked(rows).map((each) => [each.key, groupOf(each)]),
      [
        ["some NaN", "nonfinite"],
        ["zeros beside values", "size"],
        ["values beside zeros", "size"],
        ["a million times larger", "size"],
        ["statistics", "size"],
        ["10 times smaller", "size"],
        ["9 times larger", "maps"],
        ["zeros", "maps"],
      ],
    );
  },
);

/** A cache that keeps what was asked for, and answers nothing. */
function fakeSource() {
  /** @type {Map<string, {value: unknown, error: null}>} */
  const entries = new Map();
  const cache = {
    has: (/** @type {string} */ key) => entries.has(key),
    get: (/** @type {string} */ key) => {
      const entry = entries.get(key) ?? { value: undefined, error: null };
      entries.set(key, entry);
      return entry;
    },
  };
  return { entries, source: new Source(/** @type {any} */ (cache)) };
}

test("differences are asked for a few at a time, and not while the step is changing", () => {
  const layers = Array.from({ length: 60 }, (_, i) => ({
    ...LAYER,
    key: `fmapboard/l${i}`,
    label: `l${i}`,
    position: i,
  }));
  const { entries, source } = fakeSource();
  const state = { ...START, run: "a" };
  const column = { ...SAME, run: "b", step: 5 };
  const asked = (/** @type {boolean} */ calm) =>
    rank(source, state, column, 20, layers, layers, calm);
  assert.deepEqual([asked(false).total, entries.size], [60, 0]);
  asked(true);
  const [first] = [...entries.keys()];
  assert.equal(entries.size, 1);
  const query = JSON.parse(first.slice("difference/".length));
  assert.deepEqual([query.step, query.other_step, query.key.length], [20, 5, 24]);
  const answer = { layers: query.key.map((/** @type {string} */ key) => row(key, {}).difference) };
  entries.set(first, { value: answer, error: null });
  assert.deepEqual([asked(true).done, entries.size], [24, 2]);
});
