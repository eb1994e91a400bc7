// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  START,
  fromEntries,
  readHash,
  toEntries,
  writeHash,
} from "../../src/fmapboard/plugin/static/model/state.js";

const PREFIX = "p.feature_maps.";

test("a state is restored from its address", () => {
  /** @type {import("../../src/fmapboard/plugin/static/model/model.js").State} */
  const state = {
    ...START,
    run: "exp 1/a&b=c",
    layer: "fmapboard/layer1.0.conv1",
    channel: 12,
    step: 400,
    scale: "layer",
    locked: true,
    colours: "signed",
    compare: { run: "100% @x", step: 7, sample: null, role: "" },
    show: "all",
    tile: 96,
    overlay: 60,
  };
  const hash = writeHash("#feature_maps", PREFIX, toEntries(state));
  assert.deepEqual(fromEntries(readHash(hash, PREFIX)), state);
});

test("an address that names a layer, channel, step or comparison opens the maps", () => {
  for (const [field, text] of [
    ["layer", "fmapboard/conv"],
    ["channel", "3"],
    ["step", "40"],
    ["compare", "@0"],
  ]) {
    assert.equal(fromEntries([[field, text]]).view, "maps", field);
    assert.equal(
      fromEntries([
        [field, text],
        ["view", "overview"],
      ]).view,
      "overview",
      field,
    );
  }
  assert.equal(fromEntries([["run", "a"]]).view, "overview");
});

test("the address of the overview keeps the place in the maps", () => {
  /** @type {import("../../src/fmapboard/plugin/static/model/model.js").State} */
  const state = { ...START, layer: "fmapboard/conv", step: 40 };
  assert.deepEqual(fromEntries(toEntries(state)), state);
});

test("the initial state has no entries", () => {
  assert.deepEqual(toEntries({ ...START }), []);
  assert.deepEqual(fromEntries([]), { ...START });
});

test("other entries of the address are kept", () => {
  const before = "#feature_maps&runSelectionState=e30%3D&p.feature_maps.run=old&p.other.run=x";
  assert.equal(
    writeHash(before, PREFIX, [["run", "new one"]]),
    "#feature_maps&runSelectionState=e30%3D&p.other.run=x&p.feature_maps.run=new%20one",
  );
});

test("invalid entries of an address are ignored", () => {
  const asked = fromEntries([
    ["scale", "wild"],
    ["channel", "-1"],
    ["channel", "1e3"],
    ["step", "abc"],
    ["tile", "33"],
    ["locked", "yes"],
    ["overlay", "101"],
    ["__proto__", "x"],
    ["toString", "x"],
    ["nonsense", "1"],
  ]);
  assert.deepEqual(asked, { ...START });
});

test("a step may be negative, a channel may be 0", () => {
  const state = fromEntries([
    ["step", "-5"],
    ["channel", "0"],
  ]);
  assert.deepEqual([state.step, state.channel], [-5, 0]);
});

test("an entry that is not percent-encoded correctly is skipped", () => {
  assert.deepEqual(readHash("#x&p.feature_maps.run=%E0%A4%A&p.feature_maps.layer=a", PREFIX), [
    ["layer", "a"],
  ]);
});
