// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { choosing, opening } from "../../src/fmapboard/plugin/static/model/front.js";

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
