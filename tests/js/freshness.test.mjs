// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { isFresh } from "../../src/fmapboard/plugin/static/model/renewal.js";
import { along } from "../../src/fmapboard/plugin/static/view/bar.js";
import { destination, nearestLayer } from "../../src/fmapboard/plugin/static/view/notices.js";
import { keptFrom } from "../../src/fmapboard/plugin/static/server/steps.js";
import { LAYER } from "./fixtures.mjs";

test("a run is fresh for ten minutes, and longer if it logs rarely", () => {
  const layers = [{ ...LAYER, steps: [0, 1], wall_times: [1000, 1060], steps_written: 2 }];
  assert.equal(isFresh(layers, 1060 + 599), true);
  assert.equal(isFresh(layers, 1060 + 601), false);
  const rarely = [{ ...LAYER, steps: [0, 1], wall_times: [0, 3600], steps_written: 2 }];
  assert.equal(isFresh(rarely, 3600 + 3 * 3600 - 1), true);
  assert.equal(isFresh(rarely, 3600 + 3 * 3600 + 1), false);
  assert.equal(isFresh([], 0), false);
});

test("a step that is not kept lies between its kept neighbours", () => {
  assert.equal(along([0, 10, 20], 10), 0.5);
  assert.equal(along([0, 10, 20], 15), 0.75);
  assert.equal(along([0, 10, 20], 30), 1);
  assert.equal(along([5, 10], 0), 0);
  assert.equal(keptFrom([0, 10, 20], 12), 20);
  assert.equal(keptFrom([0, 10], 12), 10);
});

test("a layer without pictures leads to the one before it, or the last of its block", () => {
  const named = (/** @type {string} */ label, /** @type {string|null} */ activation = null) => ({
    ...LAYER,
    key: label,
    label,
    activation,
  });
  const layers = [named("layer4.0.conv1", "layer4.0.relu"), named("layer4.0.conv2"), named("fc")];
  const first = (/** @type {string|null} */ label, /** @type {string|null} */ shown_at = null) =>
    nearestLayer(layers, { step: 0, text: "", name: "", label, shown_at })?.key;
  assert.equal(first("fc"), "fc");
  assert.equal(first("act.call2", "layer4.0.conv2"), "layer4.0.conv2");
  assert.equal(first("layer4.0.relu", "layer4.0.conv1"), "layer4.0.conv1");
  assert.equal(first("layer4.0.relu.call2"), "layer4.0.conv2");
  assert.equal(first("other"), undefined);
  assert.equal(first(null), undefined);
});

test("the way to the first bad value names what changes: step, layer or both", () => {
  const layer = /** @type {any} */ ({ key: "fmapboard/conv", label: "conv" });
  const first = { step: 7, text: "", name: "", label: "conv", shown_at: null };
  const to = (/** @type {any} */ of, /** @type {boolean} */ step, /** @type {boolean} */ there) =>
    destination(first, of, layer, { step, layer: there });
  assert.equal(to(7, false, true), "step 7");
  assert.equal(to(7, true, false), "conv");
  assert.equal(to(8, false, false), "step 8, the next kept one, conv");
  const near = destination({ ...first, label: "relu" }, 7, layer, { step: true, layer: false });
  assert.equal(near, "conv, the nearest drawn layer");
});
