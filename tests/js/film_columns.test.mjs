// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { filmColumns } from "../../src/fmapboard/plugin/static/model/film.js";
import { lockedRanges } from "../../src/fmapboard/plugin/static/model/film_scale.js";
import { SAME } from "../../src/fmapboard/plugin/static/model/state.js";
import { placed } from "../../src/fmapboard/plugin/static/model/compare.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";
import { LAYER as NEW } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/model/look.js").Model} Model */

const LAYER = { ...NEW, steps: [0, 10], wall_times: [1, 2] };

/** @param {Partial<import("../../src/fmapboard/plugin/static/model/state.js").Column>[]} own */
function of(...own) {
  const columns = own.map((each) => ({ ...SAME, ...each }));
  const state = { ...START, run: "a", layer: LAYER.key, columns };
  const layersOf = (/** @type {string} */ run) => (run === "gone" ? undefined : [LAYER]);
  const why = (/** @type {string} */ run) => (run === "gone" ? "no run gone" : "");
  return filmColumns(
    /** @type {Model} */ (
      /** @type {unknown} */ ({
        state,
        layer: LAYER,
        history: null,
        filmHistories: [],
        columns: columns.map((column) => placed(column, state, LAYER, layersOf, why)),
      })
    ),
  );
}

test("one column has a strip without a letter", () => {
  const { columns, notes } = of();
  assert.deepEqual([columns.map(({ letter }) => letter), notes], [[""], []]);
});

test("columns of other maps have strips, those of the same maps and missing ones a note", () => {
  const { columns, notes } = of({ step: LAYER.steps[0] }, { run: "gone" }, { run: "b", sample: 1 });
  assert.deepEqual(
    columns.map(({ letter, text, place }) => [letter, text, place]),
    [
      ["A", "a · sample 0", -1],
      ["D", "b · sample 1", 2],
    ],
  );
  assert.deepEqual(notes, ["B is a step of the strip of A.", "C: no run gone."]);
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
  assert.deepEqual([...(lockedRanges(both, "inputs", [0], how)?.ranges.hi ?? [])], [3, 5, 9]);
});
