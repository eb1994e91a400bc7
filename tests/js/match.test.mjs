// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { match } from "../../src/fmapboard/plugin/static/model/compare.js";
import { LAYER } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Layer} Layer */

/** @param {string} label @param {Partial<Layer>} more @returns {Layer} */
function layer(label, more = {}) {
  const name = more.name ?? "";
  const key = `${name && `${name}.`}fmapboard/${label}`;
  return { ...LAYER, kernel_shape: [8, 3, 3, 3], label, key, ...more };
}

const OWN = [layer("a"), layer("b", { position: 1 })];
const by = (/** @type {Layer[]} */ others, /** @type {Layer} */ of = OWN[0]) => {
  const found = match(of, OWN, others);
  return found && [found.by, found.layer.label];
};

test("a layer is matched by its name, wherever it is called", () => {
  assert.deepEqual(by([layer("x"), layer("a", { position: 5, channels: 4 })]), ["name", "a"]);
});

test("a renamed layer is matched by its place, kernel shape and channels", () => {
  assert.deepEqual(by([layer("x"), layer("y", { position: 1 })]), ["position", "x"]);
  assert.equal(by([layer("x", { position: 2 })]), null);
  assert.equal(by([layer("x", { channels: 4 })]), null);
  assert.equal(by([layer("x", { kernel_shape: [8, 3, 5, 5] })]), null);
  assert.equal(by([]), null);
});

test("a layer whose own name is in this run is not matched by position", () => {
  assert.equal(by([layer("b")]), null);
});

test("layers without kernels are matched by position if they are of one type", () => {
  const relu = { kernel_shape: null, type: "ReLU" };
  assert.deepEqual(by([layer("x", relu)], layer("r", relu)), ["position", "x"]);
  assert.equal(by([layer("x", { ...relu, type: "GELU" })], layer("r", relu)), null);
});

test("models that are alone in their runs correspond, whatever they are called", () => {
  assert.deepEqual(by([layer("a", { name: "net", position: 3 })]), ["name", "a"]);
  assert.deepEqual(by([layer("x", { name: "net" })]), ["position", "x"]);
  // Of several models, those of one name correspond.
  const models = ["gan", "critic"].map((name) => layer("a", { name }));
  assert.equal(match(models[1], models, models)?.layer.name, "critic");
  assert.equal(
    match(models[1], models, [models[0], layer("x", { name: "critic" })])?.by,
    "position",
  );
  const two = [layer("x", { name: "gan" }), layer("x", { name: "critic" })];
  assert.equal(by(two), null);
});
