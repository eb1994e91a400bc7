// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FEW_RUNS,
  choosing,
  chosenRuns,
  opening,
} from "../../src/fmapboard/plugin/static/model/front.js";

test("choosing runs keeps the current one among them", () => {
  assert.deepEqual(choosing({ run: "b" }, ["c"]), { run: "c", chosen: ["c"] });
  assert.deepEqual(choosing({ run: "b" }, ["b", "c"]), { run: "b", chosen: ["b", "c"] });
  assert.deepEqual(choosing({ run: "b" }, []), { run: "b", chosen: ["b"] });
  assert.deepEqual(opening({ run: "b", chosen: [] }, "c"), { run: "c", chosen: [] });
  assert.deepEqual(opening({ run: "b", chosen: ["b"] }, "c"), { run: "c", chosen: ["c"] });
  assert.deepEqual(opening({ run: "b", chosen: ["a", "b"] }, "c"), {
    run: "c",
    chosen: ["a", "b", "c"],
  });
});

test("without a choice, findings are those of the worst runs before those of the newest", () => {
  const runs = Array.from({ length: 12 }, (_, i) => ({ run: `r${i}`, started: i }));
  const state = { run: "r0", chosen: [] };
  const newest = ["r0", "r5", "r6", "r7", "r8", "r9", "r10", "r11"];
  assert.deepEqual(chosenRuns(state, runs), newest);
  const verdict = (/** @type {string} */ of) => /** @type {any} */ ({ state: of });
  const known = new Map([
    ["r1", verdict("suspicion")],
    ["r2", verdict("fault")],
    ["r3", verdict("learns")],
  ]);
  const chosen = chosenRuns(state, runs, known);
  assert.deepEqual(chosen, ["r0", "r1", "r2", ...newest.slice(3)]);
  assert.equal(chosen.length, FEW_RUNS);
});
