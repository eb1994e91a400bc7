// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  FILM_CAPTION as CAPTION,
  bandsFrom,
  corner,
  filmHit,
  filmLayout,
  loadingOrder,
  rowAt,
  rowTopOf,
  visibleSteps,
} from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { BELOW } from "../../src/fmapboard/plugin/static/picture/painter.js";
import {
  colours,
  curvePixels,
  drawZero,
  isCurve,
  mapPixels,
} from "../../src/fmapboard/plugin/static/picture/pixels.js";
import { MARK, MARK_TABLE } from "../../src/fmapboard/plugin/static/server/palettes.js";
import {
  faultAt,
  isBeyond,
  kernelStep,
  lockedRanges,
  onsets,
  scaleWords,
} from "../../src/fmapboard/plugin/static/model/film_scale.js";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import {
  filmChannels,
  moved,
  readChannels,
  toggled,
} from "../../src/fmapboard/plugin/static/model/state.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").History} History */

const CHANNEL = /** @type {const} */ ({ scale: "channel", zeroCentred: false });

/** Two channels at three steps. @type {History} */
const HISTORY = {
  steps: [0, 10, 20],
  kernels: [
    { step: 0, peak: 0.5 },
    { step: 20, peak: 2 },
  ],
  arrays: {
    "feature_maps.lo": { shape: [3, 2], values: Float32Array.of(-1, 0, -3, NaN, -2, 0) },
    "feature_maps.hi": { shape: [3, 2], values: Float32Array.of(1, 4, 2, NaN, 5, 8) },
    "feature_maps.minimum": { shape: [3, 2], values: Float32Array.of(-1, 0, -9, NaN, -2, 0) },
    "feature_maps.maximum": { shape: [3, 2], values: Float32Array.of(1, 4, 2, NaN, 5, 2e4) },
    "feature_maps.code": { shape: [3, 2], values: Float32Array.of(1, 1, 7, 10, 7, 8) },
  },
};

test("typed channels are numbers and ranges; what is left out is said", () => {
  assert.deepEqual(readChannels("3, 17 5-7", 20), { channels: [3, 17, 5, 6, 7], refused: [] });
  assert.deepEqual(readChannels("x 1 19-25", 20), {
    channels: [1, 19],
    refused: ["“x” is no channel number", "channel 25: only 0 to 19 are drawn"],
  });
  assert.deepEqual(readChannels("0-99", 100).channels.length, 12);
});

test("the film has the chosen channels, else the open one, else that of the sheet", () => {
  assert.deepEqual(filmChannels({ ...START, channels: [3, 17, 99] }, 20), [3, 17]);
  assert.deepEqual(filmChannels({ ...START, channel: 4 }, 20, 7), [4]);
  assert.deepEqual(filmChannels(START, 20, 7), [7]);
  assert.deepEqual(filmChannels(START, 20), [0]);
  assert.deepEqual(filmChannels(START, 0), []);
});

test("a channel is added to the open one, and removed by choosing it again", () => {
  assert.deepEqual(toggled({ ...START, channel: 3 }, 17), [3, 17]);
  assert.deepEqual(toggled({ ...START, channels: [3, 17] }, 3), [17]);
});

test("channels move together, and none beyond the layer", () => {
  assert.deepEqual(moved([3, 17], 1, 20), [4, 18]);
  assert.deepEqual(moved([3, 19], 1, 20), [3, 19]);
});

test(
  "the locked scale of a channel is that of its drawn maps over all steps, not of the " + "batch",
  () => {
    const { "feature_maps.code": _, ...arrays } = HISTORY.arrays;
    const found = lockedRanges([{ ...HISTORY, arrays }], "feature_maps", CHANNEL);
    assert.deepEqual([...(found?.ranges.lo ?? [])], [-3, 0]);
    assert.deepEqual([...(found?.ranges.hi ?? [])], [5, 8]);
    assert.equal(lockedRanges([HISTORY], "inputs", CHANNEL), null);
  },
);

test("the locked scale is without the steps that the server leaves out, which are counted", () => {
  const array = (/** @type {number[]} */ ...values) => ({
    shape: [values.length / 2, 2],
    values: Float32Array.from(values),
  });
  const arrays = {
    "inputs.lo": array(-1, 0, -80, 0, -1, 0, -1, 0),
    "inputs.hi": array(1, 30, 2, 2, 1, 20, 3, 10),
    "inputs.left_out": array(0, 1, 4, 0, 0, 2, 0, 0),
    "inputs.left_out_of_layer": array(0, 0, 0, 0, 0, 0, 1, 1),
  };
  const history = { steps: [0, 1, 2, 3], arrays };
  const found = lockedRanges([history], "inputs", CHANNEL);
  assert.deepEqual([...(found?.ranges.lo ?? [])], [-1, 0]);
  assert.deepEqual([...(found?.ranges.hi ?? [])], [3, 10]);
  assert.deepEqual(found?.leftOut, [[3, 2], [, 1], [, 1], [], [1]]);
  const film = { locked: found?.ranges ?? null, history, role: "inputs", how: CHANNEL };
  const strip = /** @type {any} */ ({ ...film, steps: [0, 1, 3] });
  const marked = [0, 1, 2].map((i) => [0, 1].map((c) => isBeyond(strip, i, c)));
  assert.deepEqual(marked, [
    [false, false],
    [true, false],
    [false, false],
  ]);
  const layer = lockedRanges([history], "inputs", { ...CHANNEL, scale: "layer" });
  assert.deepEqual([layer?.ranges.lo[0], layer?.ranges.hi[0]], [-80, 30]);
});

test("the colour bar of a channel says how many steps its scale is of", () => {
  const film = {
    locked: { lo: [-1, 0, 0], hi: [3, 30, 1] },
    isLocked: true,
    steps: [0, 1, 2, 3, 4],
    sharing: "",
    leftOut: [[3, 4, 5], [1, 1], [], [], [1]],
    how: CHANNEL,
    unit: "step",
  };
  const of = (/** @type {number} */ channel, more = {}) =>
    scaleWords(/** @type {any} */ ({ ...film, ...more }), channel);
  assert.deepEqual(of(0), ["−1 … 3", "3 of 5 steps"]);
  assert.deepEqual(of(1), ["0 … 30", "4 of 5 steps"]);
  assert.deepEqual(of(2), ["0 … 1", "all 5 steps"]);
  assert.deepEqual(of(2, { sharing: "A, B" }), ["0 … 1", "steps of A, B"]);
  assert.deepEqual(of(2, { locked: null, isLocked: false }), ["each step its own"]);
});

test("strips of other sizes are scrolled to the same channel", () => {
  const [small, large] = [
    { top: 40, cellHeight: 100 },
    { top: 80, cellHeight: 300 },
  ].map((of) => /** @type {any} */ (of));
  const other = (/** @type {number} */ top) => rowTopOf(large, rowAt(small, top));
  assert.deepEqual([0, 20, 40, 90, 240].map(other), [0, 40, 80, 230, 680]);
  assert.equal(rowTopOf(small, rowAt(small, 33)), 33);
});

test("a frame's fault is known before it is loaded, the most severe first", () => {
  const kind = (/** @type {number} */ step, /** @type {number} */ channel) =>
    faultAt(HISTORY, "feature_maps", step, channel)?.kind;
  assert.deepEqual(
    [kind(0, 0), kind(10, 0), kind(10, 1), kind(20, 1)],
    [undefined, "dead", "nonfinite", "large"],
  );
  assert.equal(faultAt(HISTORY, "feature_maps", 15, 0), null);
  const codes = { shape: [1, 1], values: Float32Array.of(CODE.LARGE_AND_DEAD) };
  const both = { ...HISTORY, steps: [0], arrays: { "feature_maps.code": codes } };
  const { kind: worst, word } = faultAt(both, "feature_maps", 0, 0) ?? {};
  assert.deepEqual([worst, word], ["dead", "large, dead"]);
});

test("the first bad step of each channel and kind is found", () => {
  assert.deepEqual(
    onsets(HISTORY, "feature_maps", [0, 1]).map((o) => [
      o.channel,
      o.kind,
      o.step,
      o.after,
      o.count,
    ]),
    [
      [1, "nonfinite", 10, 0, 1],
      [1, "large", 20, 10, 1],
      [0, "dead", 10, 0, 2],
    ],
  );
});

test("a step shows the kernel drawn last before it, never a later one", () => {
  assert.deepEqual(
    [0, 19, 20].map((step) => kernelStep(HISTORY, step, [0, 10, 20])),
    [0, 0, 20],
  );
  assert.equal(kernelStep({ ...HISTORY, kernels: [{ step: 20, peak: 1 }] }, 10, [10, 20]), null);
  assert.equal(kernelStep(HISTORY, 20, [0, 10]), 0, "a report does not have all steps");
});

const REQUEST = {
  count: 200,
  rows: 4,
  mapHeight: 32,
  mapWidth: 32,
  isSequence: false,
  tile: 96,
  windowWidth: 1000,
  windowHeight: 600,
  ratio: 1,
  hasInput: true,
  hasMaps: true,
  hasKernels: false,
};

/** 20 steps of a small network, in a window of usual size. */
const HEALTHY = {
  ...REQUEST,
  ...{ wraps: true, rows: 1, tile: 0, count: 20, mapHeight: 48, mapWidth: 48 },
  ...{ windowWidth: 950, windowHeight: 640 },
};

test("200 steps: only the visible columns are loaded, and a few ahead", () => {
  const of = filmLayout(REQUEST);
  assert.equal(of.cellWidth, 104);
  const shown = visibleSteps(of, { top: 0, left: 1040, width: 1000, height: 600 });
  assert.deepEqual(shown, [10, 11, 12, 13, 14, 15, 16, 17, 18]);
  assert.deepEqual(loadingOrder(shown, 200, 2).slice(9), [19, 9, 20, 8]);
  assert.deepEqual(loadingOrder([0, 1], 3, 2), [0, 1, 2]);
});

test("frames fit the window with several steps in view, and labels do not overlap", () => {
  const auto = { ...REQUEST, tile: 0, rows: 1 };
  assert.equal(filmLayout(auto).tileWidth, 96);
  assert.equal(filmLayout({ ...auto, count: 2 }).tileWidth, 265); // a short run fills the window
  assert.equal(filmLayout({ ...auto, windowHeight: 200 }).tileWidth, 65);
  const flat = filmLayout({ ...REQUEST, tile: 24, hasKernels: true });
  assert.ok(flat.cellHeight >= 16 + 50 + 45);
});

test("input, map and kernel of a step have the same width", () => {
  const few = { ...REQUEST, tile: 0, rows: 1, count: 4, wraps: true, hasKernels: true };
  const { bands, tileWidth, inputHeight, kernelHeight } = filmLayout(few);
  assert.deepEqual([bands, tileWidth, inputHeight, kernelHeight], [1, 175, 175, 175]);
});

test("an input of all steps is drawn once, beside the frames, which are larger for it", () => {
  const ten = { ...HEALTHY, count: 10, hasKernels: true };
  const own = filmLayout(ten);
  const one = filmLayout({ ...ten, isOneInput: true });
  assert.deepEqual([own.inputHeight, one.inputHeight], [own.tileHeight, 0]);
  assert.deepEqual([own.tileWidth, one.tileWidth], [82, 123]);
  assert.deepEqual([own.left, one.left], [156, 156 + 123 + 8]);
});

test("a point of the strip is a step, a channel, and a place in its map", () => {
  const of = filmLayout(REQUEST);
  const at = filmHit(of, of.left + 104 * 7 + 48, of.top + of.cellHeight + 24);
  assert.deepEqual(at, { column: 7, row: 1, u: 0.5, v: 0.25 });
  assert.equal(filmHit(of, of.left - 1, of.top), null);
  assert.equal(filmHit(of, of.left, 5)?.row, null);
});

test(
  "a strip alone is wrapped to the window, with frames that let all bands be seen if " + "possible",
  () => {
    const of = filmLayout({ ...REQUEST, wraps: true });
    assert.deepEqual([of.columns, of.bands], [8, 25]);
    const { bandHeight: height, steps } = of;
    const places = (/** @type {number} */ top, /** @type {number} */ high) =>
      visibleSteps(of, { top, width: 1000, height: high });
    assert.deepEqual(
      places(height * 3 + 1, height),
      [...Array(16).keys()].map((i) => 24 + i),
    );
    assert.deepEqual(places(height * 24, 5000), [192, 193, 194, 195, 196, 197, 198, 199]);
    assert.equal(corner(of, 4 * 8).top, height + of.top, "four channels, then the next band");
    assert.deepEqual([of.height, steps], [25 * height, 200]);
    const y = height * 2 + of.top + of.cellHeight + 24;
    const at = filmHit(of, of.left + 104 * 7 + 48, y);
    assert.deepEqual(at, { column: 23, row: 1, u: 0.5, v: 0.25 });
    assert.equal(filmHit(of, of.left + 104 * 8, y), null, "right of the last place");
    const few = { ...REQUEST, wraps: true, rows: 1, tile: 0, count: 12, windowHeight: 700 };
    const { columns, bands, tileWidth, height: whole } = filmLayout(few);
    assert.deepEqual([columns, bands, tileWidth], [6, 2, 131]);
    assert.ok(whole <= 700);
  },
);

test("all steps are in view where frames can be legible, and fill the width", () => {
  const of = filmLayout({ ...HEALTHY, hasKernels: true });
  assert.deepEqual([of.columns, of.bands, of.tileWidth], [10, 2, 70]);
  assert.ok(of.width <= 950 && of.height <= 640);
  const more = filmLayout({ ...HEALTHY, rows: 3, count: 21 });
  assert.deepEqual([more.columns, more.bands, more.tileWidth], [11, 2, 63], "scrolls");
  const low = filmLayout({ ...HEALTHY, hasKernels: true, windowWidth: 690, windowHeight: 520 });
  assert.deepEqual([low.columns, low.bands, low.tileWidth], [7, 3, 62], "two bands in view");
  const large = filmLayout({ ...HEALTHY, mapHeight: 256, mapWidth: 256, count: 8 });
  assert.deepEqual([large.columns, large.bands, large.tileWidth], [4, 2, 125], "shrunk");
});

test("a strip that does not wrap shows whole columns at each of its steps", () => {
  const of = filmLayout({ ...HEALTHY, wraps: false, windowWidth: 935, windowHeight: 330 });
  const seen = Math.round((935 - of.left) / of.cellWidth);
  assert.ok(seen * of.cellWidth >= 935 - of.left, "nothing of one more");
  assert.ok(of.width - 935 >= (20 - seen) * of.cellWidth, "the last column can be at the right");
});

test("curves fill the width and the height, however flat they are", () => {
  const long = { ...HEALTHY, isSequence: true, mapHeight: 1, mapWidth: 493, hasInput: false };
  const of = filmLayout({ ...long, count: 10, hasKernels: true });
  assert.deepEqual([of.columns, of.bands, of.tileWidth, of.tileHeight], [5, 2, 149, 111]);
  assert.equal(of.kernelHeight, of.tileHeight);
  assert.ok(of.width > 0.95 * 950 && of.height <= 640);
});

test("a window scrolls to whole bands, unless the asked one is in sight", () => {
  const of = filmLayout({ ...REQUEST, wraps: true, rows: 1, windowHeight: 600 });
  const { bandHeight } = of;
  const window = { scrollTop: 0, clientHeight: 600 };
  const seen = Math.floor(600 / bandHeight);
  assert.equal(bandsFrom(of, window, bandHeight), 0);
  assert.equal(bandsFrom(of, window, 9 * bandHeight), (10 - seen) * bandHeight);
  assert.equal(bandsFrom(of, { ...window, scrollTop: 999 }, bandHeight), bandHeight);
  assert.equal((of.height - 600) % bandHeight, 0);
});

test("a long sequence is shrunk, a map of a chosen size never", () => {
  const sequence = { ...REQUEST, isSequence: true, mapHeight: 1, mapWidth: 1000, tile: 200 };
  assert.equal(filmLayout(sequence).factor, 0.2);
  assert.equal(filmLayout({ ...REQUEST, mapHeight: 200, mapWidth: 200 }).factor, 1);
});

test("a signal is a curve that leaves out no value", () => {
  const values = [0, 1, 0, 0.5, 0.5, 0.5];
  const [no, c] = [0, 7];
  const curve = (/** @type {number[]} */ marks) => [
    ...curvePixels(
      values.length,
      (i) => values[i],
      (i) => marks[i] ?? 0,
      { width: 3, height: 3 },
      c,
    ),
  ];
  assert.deepEqual(curve([]), [c, no, no, c, c, c, c, c, no]);
  const bad = MARK_TABLE[MARK.NAN];
  assert.deepEqual(curve([0, 0, 0, MARK.NAN]), [c, bad, no, c, bad, c, c, bad, no]);
  const sizes = [
    { height: 1, width: 2 },
    { height: 1, width: 1 },
    { height: 2, width: 64 },
  ];
  assert.deepEqual(sizes.map(isCurve), [true, false, false]);
});

test("a line below a curve is at 0, where that is inside of its scale", () => {
  const drawn = (/** @type {[number, number]} */ ...range) => {
    const pixels = Uint32Array.of(0, 7, 0, 0, 0, 7, 0, 0, 7, 0);
    drawZero(pixels, 2, range, 5);
    return [...pixels];
  };
  assert.deepEqual(drawn(-1, 1), [0, 7, 0, 0, 5, 7, 0, 0, 7, 0]);
  assert.deepEqual(drawn(-1, 3), [0, 7, 0, 0, 0, 7, 5, 5, 7, 0]);
  assert.deepEqual(drawn(0, 1), drawn(-1, 0));
});

test("frames share one scale: the same value has the same colour at every step", () => {
  const side = (
    /** @type {number} */ lo,
    /** @type {number} */ hi,
    /** @type {number[]} */ of,
  ) => ({
    planes: {
      channels: 1,
      height: 1,
      width: 2,
      levels: Uint8Array.from(of),
      marks: null,
      coarse: 1,
    },
    lo: [lo],
    hi: [hi],
  });
  const early = mapPixels(side(0, 2, [0, 255]), 0, [0, 4], colours("grey"));
  const late = mapPixels(side(2, 4, [0, 255]), 0, [0, 4], colours("grey"));
  assert.equal(early[1], late[0]);
  assert.notEqual(early[0], late[0]);
});

test("captions of frames are clear of the frame of the current step and of the kernel", () => {
  assert.ok(BELOW > 2.5); // `cellLines`
  assert.ok(BELOW + 11 <= CAPTION);
});
