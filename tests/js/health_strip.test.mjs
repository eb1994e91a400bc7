// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  channelChange,
  health,
  matches,
  networkRows,
  places,
  severity,
  strip,
  unfolded,
} from "../../src/fmapboard/plugin/static/view/layers.js";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { LAYER } from "./fixtures.mjs";

/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Overview} Overview
 */

/** @typedef {import("../../src/fmapboard/plugin/static/view/view.js").Row} Row */

/** @type {Overview} */
const HEALTHY = {
  key: "k",
  step: 0,
  code: CODE.FINE,
  minimum: -1,
  maximum: 1,
  mean: 0,
  std: 1,
  nan: 0,
  positive_infinity: 0,
  negative_infinity: 0,
  counted: true,
  channels_nonfinite: 0,
  channels_constant: 0,
  channels_dead: 0,
  dead_known: true,
  channels: 64,
  change: 0.1,
  change_of: "maps",
  change_since: 40,
  weights_unchanged_since: null,
};

test("the badge says the state that the server found", () => {
  const badge = (/** @type {number} */ code, /** @type {Partial<Overview>} */ more = {}) =>
    health({ ...HEALTHY, code, ...more }).badge;
  assert.equal(badge(CODE.FINE), "");
  assert.equal(badge(CODE.NONFINITE, { nan: 1 }), "NaN");
  assert.equal(badge(CODE.NONFINITE, { negative_infinity: 2 }), "Inf");
  assert.equal(badge(CODE.MOSTLY_DEAD, { channels_dead: 40 }), "63 % dead");
  assert.equal(badge(CODE.MOSTLY_CONSTANT, { channels_constant: 64 }), "100 % const");
  assert.equal(badge(CODE.LARGE), "large");
  assert.equal(badge(CODE.UNCHANGED), "no change");
  assert.equal(badge(CODE.UNKNOWN), "");
  assert.equal(badge(CODE.NONFINITE, { error: "a record of format 9", nan: 1 }), "unreadable");
});

test("numbers alone are no fault", () => {
  const all = { nan: 1, channels_dead: 64, channels_constant: 64, maximum: 2e5 };
  assert.deepEqual(
    [health({ ...HEALTHY, ...all }).badge, severity({ ...HEALTHY, ...all })],
    ["", 0],
  );
});

test("dead channels of an activation are not in its share of constant ones", () => {
  const many = { ...HEALTHY, code: CODE.CONSTANT, channels_dead: 4, channels_constant: 20 };
  const after = (/** @type {string|null} */ activation) =>
    health(many, { ...LAYER, channels: 64, activation }).badge;
  assert.deepEqual([after("relu"), after(null)], ["31 % const", "25 % const"]);
});

test("a layer without statistics at a step is not said to be finite", () => {
  const unknown = { ...HEALTHY, nan: null, positive_infinity: null, negative_infinity: null };
  assert.deepEqual(health({ ...unknown, channels_constant: null }), {
    severity: 0,
    badge: "",
    kind: "fine",
    text: "no statistics of feature maps were logged at this step",
  });
});

test("a layer without finite values has no range, and dead channels may not be known", () => {
  assert.match(
    health({ ...HEALTHY, minimum: NaN, maximum: NaN, nan: 9 }).text,
    /^no finite value$/m,
  );
  assert.match(health({ ...HEALTHY, dead_known: false }).text, /^dead channels not known: no /m);
});

test("counts that are lower bounds are said to be", () => {
  assert.match(health({ ...HEALTHY, nan: 3 }).text, /^3 NaN/m);
  assert.match(health({ ...HEALTHY, nan: 3, counted: false }).text, /^at least 3 NaN/m);
});

test("a change is said to be of maps or of weights, and since when", () => {
  const last = (/** @type {Partial<Overview>} */ more) =>
    health({ ...HEALTHY, ...more })
      .text.split("\n")
      .at(-1);
  assert.equal(last({}), "change of the maps since step 40: 0.1 std");
  assert.equal(
    last({ change_of: "weights", change: 0.0012 }),
    "change of the weights since step 40: ≈ 0.12 %",
  );
  assert.equal(
    last({ change_of: "weights", change: 0, weights_unchanged_since: 0 }),
    "weights unchanged since step 0",
  );
  assert.equal(
    last({ weights_unchanged_since: 30 }),
    "change of the maps since step 40: 0.1 std; weights unchanged since step 30",
  );
  assert.equal(last({ change: NaN }), "change of the maps since step 40: non-finite");
  assert.equal(last({ change: null, change_of: null, change_since: null }), "change: not recorded");
});

test("the change of a channel is said to be of maps or of weights, and since when", () => {
  const array = (/** @type {number[]} */ values) => ({
    values: Float32Array.from(values),
    shape: [values.length],
  });
  const said = (
    /** @type {Record<string, number>|undefined} */ change_since,
    /** @type {Record<string, number[]>} */ changes,
    role = "feature_maps",
  ) => {
    const arrays = Object.fromEntries(
      Object.entries(changes).map(([name, values]) => [`${name}.change`, array(values)]),
    );
    const header = { format: 1, pictures: [], change_since };
    return channelChange(/** @type {any} */ ({ arrays, header }), role, 1);
  };
  const both = { feature_maps: [0.5, 0.25], weights: [0.01, 0.02] };
  assert.equal(said({ feature_maps: 0, weights: 3 }, both), "0.25 std of the maps since step 0");
  assert.equal(
    said({ weights: 3 }, { weights: both.weights }),
    "≈ 2 % of the weights since step 3",
  );
  assert.equal(
    said({ weights: 3 }, { weights: [0.5] }),
    "≈ 50 % of the layer's weights since step 3",
  );
  assert.equal(said({ weights: 3 }, { weights: [0.5] }, "inputs"), "not recorded");
  assert.equal(said(undefined, {}), "not recorded");
});

test("an empty bar of the change says whether the change is non-finite or not recorded", () => {
  const state = (/** @type {number|null} */ change) => strip({ ...HEALTHY, change }).changeState;
  assert.deepEqual(
    [state(0.1), state(0), state(NaN), state(null)],
    ["", "", "nonfinite", "unknown"],
  );
});

test("the bar of the change is logarithmic, and empty without a change", () => {
  const bar = (/** @type {number|null} */ change) => strip({ ...HEALTHY, change }).change;
  assert.deepEqual(
    [bar(null), bar(0), bar(NaN), bar(1e-9), bar(0.01), bar(1), bar(50)],
    [0, 0, 0, 0.1, 0.5, 1, 1],
  );
});

test("severity grows with the state", () => {
  const of = (/** @type {number} */ code) => severity({ ...HEALTHY, code });
  assert.deepEqual([CODE.FINE, CODE.DEAD, CODE.MOSTLY_DEAD, CODE.NONFINITE].map(of), [0, 1, 2, 3]);
});

/** @param {string} label @param {number[]|null} shape */
const layer = (label, shape = [8, 3, 3, 3], call = 1, name = "") => ({
  ...LAYER,
  key: `fmapboard/${label}`,
  name,
  layer: label,
  label,
  call,
  kernel_shape: shape,
});
/** @param {Row[]} rows */
const drawn = (rows) =>
  rows.map((row) => `${"  ".repeat(row.depth)}${row.kind === "group" ? "+" : ""}${row.text}`);

test("names form a tree in network order, and a group with one child is one row", () => {
  const rows = networkRows([
    layer("conv1"),
    layer("layer1.0.conv1"),
    layer("layer1.1.conv1"),
    layer("layer2.0.down.0"),
  ]);
  assert.deepEqual(drawn(rows), ["conv1", "+layer1", "  0.conv1", "  1.conv1", "layer2.0.down.0"]);
});

test("a small numbered group has no row", () => {
  const rows = networkRows(
    ["layer1.0.conv1", "layer1.0.conv2", "layer1.1.conv1", "layer1.1.conv2"].map((each) =>
      layer(each),
    ),
  );
  assert.deepEqual(drawn(rows), ["+layer1", "  0.conv1", "  0.conv2", "  1.conv1", "  1.conv2"]);
});

test("a numbered row shows the name of its group", () => {
  const many = Array.from({ length: 9 }, (_, i) => layer(`stages.0.${i}.a`));
  const rows = networkRows([...many, layer("stages.1.0"), layer("block.0"), layer("block.1")]);
  assert.deepEqual(drawn(rows).slice(0, 3), ["+stages", "  +stages.0", "    0.a"]);
  assert.deepEqual(drawn(rows).slice(-4), ["  1.0", "+block", "  block.0", "  block.1"]);
});

test("later calls and second models have rows of their own", () => {
  const rows = networkRows([
    layer("a.conv"),
    layer("a.conv.call2", null, 2),
    layer("conv", null, 1, "gan"),
  ]);
  assert.deepEqual(drawn(rows), ["+a", "  conv", "  conv (call 2)", "gan: conv"]);
  const numbered = networkRows([layer("0", null, 1, "gan"), layer("2", null, 1, "gan")]);
  assert.deepEqual(drawn(numbered), ["+gan", "  gan: 0", "  gan: 2"]);
});

test("a layer that contains other layers has a row of its own", () => {
  assert.deepEqual(drawn(networkRows([layer("block"), layer("block.conv")])), [
    "block",
    "+block",
    "  conv",
  ]);
});

test("a folded group hides only the rows below it", () => {
  const rows = networkRows([layer("a.x.c"), layer("a.x.d"), layer("a.y"), layer("b")]);
  assert.deepEqual(drawn(unfolded(rows, new Set(["a.x"]))), ["+a", "  +x", "  y", "b"]);
  assert.deepEqual(drawn(unfolded(rows, new Set(["a"]))), ["+a", "b"]);
});

test("every word of the filter must match name, type or kernel shape", () => {
  assert.ok(matches(layer("layer1.0.conv1"), "LAYER1 3x3"));
  assert.ok(matches(layer("layer1.0.conv1"), ""));
  assert.ok(!matches(layer("layer1.0.conv1"), "layer1 linear"));
});

test("a row has a place among the rows of the same group", () => {
  const depths = [0, 1, 1, 0, 1, 0];
  const found = places(
    depths.map((depth) => ({ kind: "layer", id: "", text: "", depth, layers: [] })),
  );
  assert.deepEqual(
    found.map(({ at, of }) => `${at}/${of}`),
    ["1/3", "1/2", "2/2", "2/3", "1/1", "3/3"],
  );
});
