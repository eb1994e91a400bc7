// @ts-check
/** How often the tab looks at a log that TensorBoard has not read to its end. */

import assert from "node:assert/strict";
import test from "node:test";

import { Renewal } from "../../src/fmapboard/plugin/static/model/renewal.js";

test("a log of which nothing more is read is looked at less often", () => {
  const model = { state: { run: "a" }, steps: [0], front: null };
  const renewal = new Renewal(/** @type {any} */ ({ model }));
  assert.equal(renewal.unreadEvery(0), 2000);
  assert.equal(renewal.unreadEvery(59_000), 2000);
  assert.equal(renewal.unreadEvery(61_000), 10_000);
  model.steps = [0, 5];
  assert.equal(renewal.unreadEvery(62_000), 2000);
});
