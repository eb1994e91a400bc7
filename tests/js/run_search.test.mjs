// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { middle, parted, search } from "../../src/fmapboard/plugin/static/model/compare.js";

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
