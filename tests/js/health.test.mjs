// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { numbersOf } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { HealthSource } from "../../src/fmapboard/plugin/static/server/health.js";
import { Cache } from "../../src/fmapboard/plugin/static/server/cache.js";
import { UNKNOWN_LEVEL } from "../../src/fmapboard/plugin/static/model/health_states.js";
import {
  binOf,
  binned,
  firstOf,
  mapLayout,
} from "../../src/fmapboard/plugin/static/picture/health_map.js";
import { cellLines } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { scope, targetOf } from "../../src/fmapboard/plugin/static/model/front.js";
import {
  CODE,
  HATCHES,
  faultsOf,
  faultsOfLayer,
  largeText,
  tableOf,
} from "../../src/fmapboard/plugin/static/model/health_states.js";
import { corner, hit } from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { LAYER, STATES } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Health} Health */
/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/server.js").HealthLayer} HealthLayer
 */

/** @type {HealthLayer} */
const CONV = {
  name: "",
  label: "conv",
  layer: "conv",
  type: "Conv2d",
  kernel_shape: [3, 3],
  call: 1,
  position: 0,
  channels: 8,
  values: 1000,
  drawn: 8,
  samples: 1,
  roles: ["feature_maps"],
  transposed_stride: null,
  shape: "",
  unit: "channel",
  followed_by: [],
  activation: "relu",
  key: "fmapboard/conv",
  shown_at: "fmapboard/conv",
};
/** @type {HealthLayer} */
const RELU = {
  ...CONV,
  label: "relu",
  layer: "relu",
  type: "ReLU",
  drawn: 0,
  activation: null,
  key: null,
};

/**
 * A table of one step per row.
 * @param {number[][]} codes @param {Record<string, number[][]>} columns numbers by name
 * @param {HealthLayer[]} layers @returns {Health}
 */
function health(codes, columns = {}, layers = [CONV, RELU]) {
  /** @type {import("../../src/fmapboard/plugin/static/server/server.js").NamedArrays} */
  const arrays = {};
  for (const [name, rows] of Object.entries(columns)) {
    arrays[name] = { shape: [rows.length, layers.length], values: Float32Array.from(rows.flat()) };
  }
  const levels = Uint8Array.from(codes.flat(), () => 3);
  return {
    run: "a",
    steps: codes.map((_, i) => 10 * i),
    wall_times: codes.map((_, i) => 1000 + i),
    written: codes.length,
    layers,
    since: {},
    step_words: {},
    first_nonfinite: null,
    zero_rows: [],
    is_of_probe: false,
    input_is_stretched: false,
    states: STATES,
    severe: {},
    errors: {},
    arrays,
    cells: { codes: Uint8Array.from(codes.flat()), levels },
    scale: { lo: 1, hi: 100 },
  };
}

test("the worst state of a layer is that of any step, and a table knows which there are", () => {
  const { FINE, NONFINITE, DEAD } = CODE;
  const table = tableOf(
    health([
      [FINE, FINE],
      [DEAD, NONFINITE],
      [FINE, FINE],
    ]),
  );
  assert.deepEqual([...table.worst], [DEAD, NONFINITE]);
  assert.deepEqual([...table.present], [FINE, DEAD, NONFINITE]);
});

test("a step has the most severe fault of its layers, and all layers that have it", () => {
  const { FINE, DEAD, MOSTLY_DEAD, LARGE, UNCHANGED } = CODE;
  const of = health([
    [FINE, FINE],
    [DEAD, MOSTLY_DEAD],
    [LARGE, DEAD],
  ]);
  of.since = { dead: { 1: 5 }, nonfinite: { 0: 5 }, unchanged: { 1: 7 }, large: { 0: 20 } };
  const said = faultsOf(of).map(({ step, kind, layers }) => [
    step,
    kind,
    layers.map((l) => l.label),
  ]);
  assert.deepEqual(said, [
    [5, "nonfinite", ["conv"]],
    [10, "dead", ["conv", "relu"]],
    [20, "large", ["conv"]],
  ]);
  assert.deepEqual(
    [...faultsOfLayer(of, "fmapboard/conv")],
    [
      [10, "dead"],
      [20, "large"],
    ],
  );
  assert.equal(faultsOfLayer(of, "fmapboard/other").size, 0);
  assert.equal(faultsOf(health([[UNCHANGED, FINE]]))[0].kind, "unchanged");
});

test("a brightness says whether it is known of all cells", () => {
  const of = health([[CODE.FINE, CODE.UNKNOWN]]);
  of.cells.levels = Uint8Array.of(3, UNKNOWN_LEVEL);
  const { lo, hi, hasGaps } = tableOf(of).shading;
  assert.deepEqual([lo, hi, hasGaps], [1, 100, false]);
  const unknown = health([[CODE.FINE, CODE.FINE]]);
  unknown.cells.levels = Uint8Array.of(UNKNOWN_LEVEL, UNKNOWN_LEVEL);
  assert.equal(tableOf(unknown).shading.hasGaps, true);
});

test("few layers have rows of a fixed height, many thinner ones, very many are binned", () => {
  const size = { steps: 10, width: 1000, height: 423, names: 100, isSevere: true };
  const few = mapLayout({ ...size, layers: 5 });
  assert.deepEqual([few.lines, few.height], [5, 220]);
  const many = mapLayout({ ...size, layers: 80 });
  assert.deepEqual([many.lines, many.height], [80, 400]);
  const most = mapLayout({ ...size, layers: 3000 });
  assert.deepEqual([most.lines, most.height], [200, 400]);
  assert.ok(most.left + most.width + most.right <= 1000);
  const healthy = mapLayout({ ...size, layers: 5, isSevere: false }); // no words at the right
  assert.ok(healthy.right === 0 && healthy.width > few.width + 100);
});

test("every member is in exactly the bin that it is found in", () => {
  for (const [count, bins] of [
    [3000, 175],
    [7, 7],
    [10, 3],
    [200, 199],
  ]) {
    for (let i = 0; i < count; i += 1) {
      const bin = binOf(i, count, bins);
      assert.ok(firstOf(bin, count, bins) <= i && i < firstOf(bin + 1, count, bins), `${i}`);
    }
  }
});

test("a cell of several layers shows the worst of them and leads to it", () => {
  const size = { steps: 2, width: 500, height: 100, names: 9, isSevere: false };
  const of = { ...mapLayout({ ...size, layers: 4 }), lines: 2 };
  const codes = Uint8Array.of(1, 1, 1, 8, 1, 1, 5, 1);
  const unknown = UNKNOWN_LEVEL;
  const levels = Uint8Array.of(2, 9, 7, unknown, 4, unknown, 0, 7);
  const cells = binned(of, codes, levels);
  assert.deepEqual([...cells.codes], [1, 1, 8, 5]);
  assert.deepEqual([...cells.levels], [9, 4, unknown, 0]);
  assert.deepEqual([...cells.at], [0, 4, 3, 6]);
});

test("the cell under a point is the one whose box has it", () => {
  const of = mapLayout({ layers: 9, steps: 7, width: 900, height: 200, names: 80, isSevere: true });
  for (const [row, column] of [
    [0, 0],
    [8, 6],
    [4, 3],
  ]) {
    const cell = row * of.columns + column;
    const { left, top } = corner(of, cell);
    assert.equal(hit(of, left + of.cellWidth / 2, top + of.cellHeight / 2)?.cell, cell);
  }
  assert.equal(hit(of, of.left - 2, of.top + 2), null);
  assert.equal(hit(of, of.left + 2, of.top + of.height + 2), null);
});

test("a cell is described by layer, step, state and the numbers that say something", () => {
  const columns = { nonfinite: [[0, 0.25]], minimum: [[-1, NaN]], maximum: [[2, NaN]] };
  const of = health([[CODE.FINE, CODE.NONFINITE]], columns);
  const pass = { most: 1, changed: () => {} };
  const numbers = (/** @type {number} */ at) => numbersOf(new Cache(() => {}), pass, of, at);
  assert.deepEqual(cellLines(of, 0, numbers(0)), ["conv · step 0", "fine", "values −1 … 2"]);
  assert.deepEqual(cellLines(of, 1, numbers(1)), [
    "relu · step 0",
    "non-finite: what non-finite means",
    "of 8 channels: 25 % non-finite",
    "no pictures of its own; nearest drawn layer: conv",
  ]);
});

test("a cell of a run of images names the image", () => {
  const of = health([[CODE.FINE], [CODE.FINE]], {}, [CONV]);
  of.step_words = { 10: "image 10 (cat.jpg)" };
  assert.equal(cellLines(of, 0, "")[0], "conv · step 0");
  assert.equal(cellLines(of, 1, "")[0], "conv · image 10 (cat.jpg)");
});

test("a cell says since when its state has lasted, if it has lasted to the newest step", () => {
  const of = health([[CODE.FINE], [CODE.NONFINITE], [CODE.FINE], [CODE.NONFINITE]], {}, [CONV]);
  of.since = { nonfinite: { 0: 25 } };
  const line = "without interruption since step 25";
  assert.ok(!cellLines(of, 1, "").includes(line));
  assert.ok(cellLines(of, 3, "").includes(line));
  const dying = [CODE.DEAD, CODE.MOSTLY_DEAD, CODE.DEAD, CODE.MOSTLY_DEAD, CODE.MOSTLY_DEAD];
  const more = health(
    dying.map((code) => [code]),
    {},
    [CONV],
  );
  more.since = { dead: { 0: 0 } };
  const sinceOf = (/** @type {number} */ at) =>
    cellLines(more, at, "").filter((each) => each.includes("since"));
  assert.deepEqual(sinceOf(0), ["without interruption since step 0"]); // that it is dead
  assert.deepEqual(sinceOf(1), []);
  assert.deepEqual(sinceOf(4), [`at every kept step since step ${more.steps[3]}`]);
  const still = health([[CODE.FINE], [CODE.UNCHANGED]], {}, [CONV]);
  still.since = { unchanged: { 0: 0 } };
  const said = cellLines(still, 1, "");
  assert.ok(said.includes("the weights are those of step 0"));
});

test("how other runs are is asked for again every minute at most", () => {
  const source = new HealthSource(new Cache(() => {}));
  assert.equal(source.round(1, 0), 1);
  assert.equal(source.round(2, 59000), 1);
  assert.equal(source.round(3, 61000), 3);
});

test("a layer without pictures leads to the nearest drawn one, and says so", () => {
  const layers = [{ ...LAYER, steps: [0, 10, 30] }];
  const asked = { ...RELU, run: "a", step: 20 };
  const target = targetOf(layers, asked, "TensorBoard");
  assert.deepEqual([target?.layer, target?.step], ["fmapboard/conv", 30]);
  assert.match(target?.note ?? "", /^relu has no pictures: these are of conv, the nearest/);
  assert.match(
    target?.note ?? "",
    /Step 20 was not kept by TensorBoard: this is step 30, the next kept one/,
  );
  assert.equal(targetOf(layers, { ...CONV, run: "a", step: 10 }, "")?.note, "");
  const finding = { ...CONV, run: "a", step: 10, message: "`conv` is dead" };
  assert.equal(targetOf(layers, finding, "")?.message, "conv is dead");
  assert.equal(targetOf(layers, { ...RELU, shown_at: null, run: "a", step: 10 }, ""), null);
});

test("a legend says what large is, if a layer is so", () => {
  const states = [...STATES];
  states[CODE.LARGE] = { word: "large", what: "|x| ≥ 10,000" };
  const text = (/** @type {number} */ code) =>
    largeText(
      /** @type {any} */ ({
        ...{ states, layers: [CONV], steps: [0], scale: {} },
        cells: { codes: Uint8Array.of(code), levels: Uint8Array.of(0) },
      }),
    );
  assert.equal(text(CODE.LARGE), "large: |x| ≥ 10,000");
  assert.equal(text(CODE.LARGE_AND_DEAD), "large: |x| ≥ 10,000");
  assert.equal(text(CODE.MOSTLY_DEAD), "");
});

test(
  "what was looked through is said with the number of logged steps, if some are not " + "kept",
  () => {
    assert.equal(scope({ layers: 20, steps: 35, written: 35 }), "20 layers × 35 steps");
    assert.equal(
      scope({ layers: 1, steps: 35, written: 90 }),
      "1 layer × 35 steps (kept of 90 logged)",
    );
  },
);

test("an answer is requested again when the run has new steps, not when they become known", () => {
  const source = new HealthSource(new Cache(() => {}));
  assert.equal(source.epoch("a", ""), 1);
  assert.equal(source.epoch("a", "3/20"), 1);
  assert.equal(source.epoch("a", "3/20"), 1);
  assert.equal(source.epoch("a", "4/30"), 2);
  assert.equal(source.epoch("b", "4/30"), 1);
});

test("every state but fine has a hatching of its own", () => {
  const drawn = HATCHES.map((hatch) =>
    Array.from({ length: 36 * 36 }, (_, i) => Number(hatch?.(i % 36, Math.floor(i / 36)) ?? false)),
  ).map(String);
  assert.equal(new Set(drawn.slice(CODE.FINE)).size, drawn.length - CODE.FINE);
});
