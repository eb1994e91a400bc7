/** Pictures that show a finding. */

import assert from "node:assert/strict";
import test from "node:test";

import { MARK } from "../../src/fmapboard/plugin/static/server/palettes.js";
import { marked } from "../../src/fmapboard/plugin/static/model/front.js";

/** @param {number[]|null} marks of two channels of 2 × 1 px */
function drawn(marks) {
  const planes = { width: 2, height: 1, marks: marks && Uint8Array.from(marks) };
  return /** @type {any} */ ({ planes: new Map([["feature_maps/0", planes]]) });
}

test("a picture shows a non-finite value if a pixel of one of its channels is marked so", () => {
  assert.equal(marked(drawn([0, 0, 0, MARK.NAN]), [0, 1]), true);
  assert.equal(marked(drawn([0, 0, 0, MARK.NAN]), [0]), false);
  assert.equal(marked(drawn([0, 0, MARK.CONSTANT, MARK.CONSTANT]), [0, 1]), false);
  assert.equal(marked(drawn(null), [0, 1]), false);
});

test("without a decoded picture it is not said that the value is elsewhere", () => {
  assert.equal(marked(/** @type {any} */ ({ planes: new Map() }), [0]), true);
});
