// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { middle, parted, search } from "../../src/fmapboard/plugin/static/model/compare.js";
import { byStart } from "../../src/fmapboard/plugin/static/picture/canvas.js";

test("runs are found by words in any order and case", () => {
  const runs = ["resnet/lr=0.1/seed=1", "resnet/lr=0.1/seed=2", "VIT/lr=0.1/seed=1"];
  assert.deepEqual(search(runs, "SEED=1 resnet"), [runs[0]]);
  assert.deepEqual(search(runs, "vit"), [runs[2]]);
  assert.deepEqual(search(runs, "  "), runs);
  assert.deepEqual(search(runs, "none"), []);
});

test("a long name is cut in the middle, so that its end can be read", () => {
  assert.equal(middle("short", 10), "short");
  const name = `${"x".repeat(60)}_seed7`;
  assert.equal(middle(name, 20).length, 20);
  assert.ok(middle(name, 20).endsWith("_seed7"));
  assert.deepEqual(parted("short", 10), ["", "short"]);
  assert.equal(parted(name, 10).join(""), name);
  assert.equal(parted(name, 10)[1], "xxxx_seed7");
});

test("colours are handed out by start, then by name, as TensorBoard does", () => {
  const of = (/** @type {string} */ run, /** @type {number|null} */ started) => ({
    ...{ run, started },
    layers: 1,
  });
  const runs = [of("a", null), of("b", 5), of("c", 1), of("d", 5)];
  assert.deepEqual(
    byStart(runs).map(({ run }) => run),
    ["c", "b", "d", "a"],
  );
});
