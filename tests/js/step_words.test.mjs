// @ts-check
/** What steps are called in runs of `visualize`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { scope } from "../../src/fmapboard/plugin/static/model/front.js";
import { kindOf, labelOf, wordOf } from "../../src/fmapboard/plugin/static/model/words.js";

test("a step is called what it shows", () => {
  assert.equal(wordOf({ 3: "image 3 (a.jpg)" }, 3), "image 3 (a.jpg)");
  assert.equal(wordOf({ 3: "image 3 (a.jpg)" }, 4), "step 4");
  assert.equal(wordOf(undefined, 12345), "step 12,345");
});

test("a narrow column has the number of its step, and the name of its file", () => {
  assert.deepEqual(labelOf({ 3: "image 3 (a (1).jpg)" }, 3), ["3", "a (1).jpg"]);
  assert.deepEqual(labelOf({ 20: "step 20 (b.pt)" }, 20), ["20", "b.pt"]);
  assert.deepEqual(labelOf({ 3: "image 3" }, 3), ["3", ""]);
  assert.deepEqual(labelOf(undefined, 12345), ["12,345", ""]);
});

test("columns are images only if each step is another one", () => {
  assert.equal(kindOf({ 0: "image 0 (a.jpg)", 1: "image 1 (b.jpg)" }), "image");
  assert.equal(kindOf({ 0: "image 0 (a.jpg)", 1: "step 1 (b.pt)" }), "step");
  assert.equal(kindOf({}), "step");
  assert.equal(kindOf(undefined), "step");
  assert.equal(scope({ layers: 2, steps: 3, written: 3 }, "image"), "2 layers × 3 images");
});
