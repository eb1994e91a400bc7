// @ts-check
/** Names of layer calls in the overview. */

import assert from "node:assert/strict";
import test from "node:test";

import { withFeeders } from "../../src/fmapboard/plugin/static/server/api.js";
import { counted, elided } from "../../src/fmapboard/plugin/static/model/words.js";
import { callInGroup, callName } from "../../src/fmapboard/plugin/static/model/words.js";

test(
  "a later call of an activation says which layer it follows, if it follows one " + "directly",
  () => {
    const layer = (/** @type {string} */ label, /** @type {string|null} */ activation = null) =>
      /** @type {any} */ ({ name: "", label, activation });
    const layers = withFeeders([
      layer("conv1", "act"),
      layer("act"),
      layer("conv2", "act.call2"),
      layer("act.call2"),
      layer("act.call3"),
    ]);
    assert.deepEqual(layers.map(callName), [
      "conv1",
      "act",
      "conv2",
      "act (call 2, behind conv2)",
      "act (call 3)",
    ]);
    assert.equal(callName({ name: "gen", label: "up.call2" }), "gen: up (call 2)");
  },
);

test("in a group of the list, the group is not named again", () => {
  const of = { label: "layer1.0.relu.call2", call: 2, behind: "layer1.0.conv2" };
  assert.equal(callInGroup("relu.call2", of), "relu (call 2, behind conv2)");
  assert.equal(callInGroup("0.relu.call2", of), "0.relu (call 2, behind 0.conv2)");
  assert.equal(
    callInGroup("act.call3", { label: "act.call3", call: 3, behind: "a.conv" }),
    "act (call 3, behind a.conv)",
  );
  assert.equal(callInGroup("a.call2", { label: "a.call2", call: 1 }), "a.call2");
});

test("layers of different models feed only their own", () => {
  const layers = withFeeders([
    /** @type {any} */ ({ name: "a", label: "conv", activation: "act.call2" }),
    /** @type {any} */ ({ name: "b", label: "act.call2", activation: null }),
  ]);
  assert.equal(callName(layers[1]), "b: act (call 2)");
});

test("one thing has no plural", () => {
  assert.deepEqual(
    [0, 1, 2, 12000].map((n) => counted(n, "step")),
    ["0 steps", "1 step", "2 steps", "12,000 steps"],
  );
});

test("long names are elided where they are equal, and stay different", () => {
  const names = [1, 2].flatMap((block) =>
    [1, 12].map((layer) => `features.denseblock${block}.denselayer${layer}.conv1`),
  );
  assert.deepEqual(elided(names, 50), names);
  const short = elided(names, 24);
  assert.equal(short[0], "dens…1.denselayer1.conv1");
  assert.equal(new Set(short).size, 4);
  assert.ok(short.every((name) => name.length <= 24));
  const alike = ["stem.convolution_of_a.x", "stem.convolution_of_b.x"];
  assert.deepEqual(elided(alike, 12), alike); // rather long than the same
});
