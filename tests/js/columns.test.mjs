// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  SAME,
  columnText,
  newColumn,
  parseColumn,
  swapped,
} from "../../src/fmapboard/plugin/static/model/state.js";
import { START, fromEntries, toEntries } from "../../src/fmapboard/plugin/static/model/state.js";
import { LAYER as PLAIN } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Column} Column */
/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").Kind} Kind */

const STATE = { ...START, run: "a", layer: "fmapboard/conv" };
/** @type {import("../../src/fmapboard/plugin/static/server/server.js").Layer} */
const LAYER = {
  ...PLAIN,
  samples: 2,
  roles: ["feature_maps", "inputs", "kernels"],
  steps: [0, 10, 20],
  wall_times: [1, 2, 3],
};

/** @type {[Partial<Column>, string][]} */
const WRITTEN = [
  [{ run: "b" }, "b@"],
  [{ run: "b", step: 20 }, "b@20"],
  [{ run: "b", step: -5, sample: 1 }, "b@-5:1"],
  [{ run: "b", sample: 0 }, "b@:0"],
  [{ step: 0 }, "@0"],
  [{ role: "inputs" }, "@::inputs"],
  [{ run: "user@host/lr@0.1", step: 3 }, "user@host/lr@0.1@3"],
  [{ run: "a@5" }, "a@5@"],
  [
    { run: "x:1@2:3", step: 4, sample: 5, role: "gradients_of_maps" },
    "x:1@2:3@4:5:gradients_of_maps",
  ],
];

test("a column is restored from its text, whatever is in the name of its run", () => {
  for (const [own, text] of WRITTEN) {
    const column = { ...SAME, ...own };
    assert.equal(columnText(column), text);
    assert.deepEqual(parseColumn(text), column);
  }
});

test("a text without a step behind an @ is the name of a run", () => {
  for (const run of ["b", "user@host", "b@5x", "b@1:2:wild", "b@1@:x"]) {
    assert.deepEqual(parseColumn(run), { ...SAME, run });
  }
});

test("an address with a column beside the main one is restored exactly", () => {
  const compare = { ...SAME, run: "b", step: -5, sample: 1 };
  const state = { ...STATE, step: 10, compare, rank: true };
  const entries = toEntries(state);
  // TensorBoard keeps one entry per name when it changes the address.
  assert.equal(new Map(entries).size, entries.length);
  assert.deepEqual(fromEntries(entries), state);
});

test("a new column has an existing, different value", () => {
  const text = (/** @type {Kind} */ kind) => {
    const column = newColumn(kind, { ...STATE, step: 0 }, LAYER, ["a", "b"]);
    return column && columnText(column);
  };
  const kinds = /** @type {Kind[]} */ (["step", "run", "sample", "role"]);
  assert.deepEqual(
    kinds.map((kind) => text(kind)),
    ["@10", "b@", "@:1", "@::inputs"],
  );
  assert.equal(newColumn("step", STATE, undefined, []), null);
});

test("a column is swapped with the main one when the main one becomes it", () => {
  const before = { ...STATE, compare: { ...SAME, run: "b", sample: 1 } };
  assert.equal(swapped({ ...before, run: "b" }, before)?.run, "a");
  assert.equal(swapped({ ...before, run: "c" }, before)?.run, "b");
  assert.equal(swapped({ ...before, sample: 1 }, before)?.sample, 0);
  const chosen = { ...SAME, run: "a" };
  assert.equal(swapped({ ...before, compare: chosen }, before), chosen);
});
