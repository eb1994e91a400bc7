// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { filmColumns } from "../../src/fmapboard/plugin/static/model/film_strips.js";
import { lockedRanges } from "../../src/fmapboard/plugin/static/model/film_scale.js";
import { SAME } from "../../src/fmapboard/plugin/static/model/state.js";
import { placed } from "../../src/fmapboard/plugin/static/model/compare.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";
import { LAYER as NEW } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Model} Model */

const LAYER = { ...NEW, steps: [0, 10], wall_times: [1, 2] };

/** @param {Partial<import("../../src/fmapboard/plugin/static/model/model.js").Column>|null} own */
function of(own) {
  const compare = own && { ...SAME, ...own };
  const state = { ...START, run: "a", layer: LAYER.key, compare };
  const layersOf = (/** @type {string} */ run) => (run === "gone" ? undefined : [LAYER]);
  const why = (/** @type {string} */ run) => (run === "gone" ? "no run gone" : "");
  return filmColumns(
    /** @type {Model} */ (
      /** @type {unknown} */ ({
        state,
        layer: LAYER,
        history: null,
        filmHistories: [],
        columns: compare ? [placed(compare, state, LAYER, layersOf, why)] : [],
      })
    ),
  );
}

test("one column has a strip without a letter", () => {
  const { columns, notes } = of(null);
  assert.deepEqual([columns.map(({ letter }) => letter), notes], [[""], []]);
});

test("a column of other maps has a strip, one of the same maps or a missing one a note", () => {
  const { columns } = of({ run: "b", sample: 1 });
  assert.deepEqual(
    columns.map(({ letter, text, isOther }) => [letter, text, isOther]),
    [
      ["A", "a · sample 0", false],
      ["B", "b · sample 1", true],
    ],
  );
  assert.deepEqual(of({ step: LAYER.steps[0] }).notes, ["B is a step of the strip of A."]);
  assert.deepEqual(of({ run: "gone" }).notes, ["B: no run gone."]);
});

test("strips share one scale, whatever number of channels each has", () => {
  const history = (/** @type {number} */ width, /** @type {number[]} */ ...hi) => {
    const array = (/** @type {number[]} */ values) => ({
      shape: [values.length / width, width],
      values: Float32Array.from(values),
    });
    const arrays = { "inputs.lo": array(hi.map(() => 0)), "inputs.hi": array(hi) };
    return { steps: [], arrays };
  };
  const how = /** @type {const} */ ({ scale: "channel", zeroCentred: false });
  const both = [history(2, 1, 2, 3, 1), history(3, 1, 5, 9), null];
  assert.deepEqual([...(lockedRanges(both, "inputs", how)?.ranges.hi ?? [])], [3, 5, 9]);
});
