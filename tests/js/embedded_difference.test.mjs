// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { byMaps } from "../../src/fmapboard/plugin/static/server/embedded.js";

/** Maps of one channel with two pixels, at `lo` and `hi`. @param {number} lo @param {number} hi */
function side(lo, hi) {
  const planes = { channels: 1, height: 1, width: 2, levels: Uint8Array.from([0, 255]) };
  return /** @type {import("../../src/fmapboard/plugin/static/model/value_scale.js").Side} */ (
    /** @type {unknown} */ ({ planes: { ...planes, marks: null, coarse: 1 }, lo: [lo], hi: [hi] })
  );
}

test("in a report, the ratio of the magnitudes of maps is that of the other side to the first", () => {
  assert.equal(byMaps(side(-1, 2), side(-50, 100))?.ratio, 50);
  assert.equal(byMaps(side(-50, 100), side(-1, 2))?.ratio, 1 / 50);
  assert.equal(byMaps(side(0, 0), side(-1, 2))?.ratio, Infinity);
  assert.equal(byMaps(side(0, 0), side(0, 0))?.ratio, null);
});
