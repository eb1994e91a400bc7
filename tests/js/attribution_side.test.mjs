// @ts-check
/** How large the pictures of the attribution view are. */

import assert from "node:assert/strict";
import test from "node:test";

import { sideFor } from "../../src/fmapboard/plugin/static/views/view_attribution.js";

/** @param {number} count @param {boolean} isPaired */
function rows(count, isPaired = true) {
  const row = { first: isPaired ? {} : null };
  return /** @type {import("../../src/fmapboard/plugin/static/state/attribution.js").Row[]} */ (
    /** @type {unknown} */ (Array(count).fill(row))
  );
}

test("pictures are as large as all layers of a run fit the window", () => {
  assert.equal(sideFor(rows(5), 2536, 1000), 400); // 3 and 2 layers
  assert.equal(sideFor(rows(5, false), 2536, 1000), 480); // 5 layers
  assert.equal(sideFor(rows(5), 1376, 560), 200);
});

test("pictures that do not fit keep their least size and scroll", () => {
  assert.equal(sideFor(rows(40), 1376, 560), 200);
  assert.equal(sideFor(rows(1), 100, 100), 200);
});
