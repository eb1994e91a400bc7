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
    "feature_maps.code": { shape: [3, 2], values: Float32Array.of(1, 1, 6, 8, 6, 7) },
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
    assert.equal(found?.inFilm.large.size, 0);
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
    "inputs.left_out": array(0, 1, 3, 0, 0, 2, 0, 0),
    "inputs.left_out_of_layer": array(0, 0, 0, 0, 0, 0, 1, 1),
  };
  const history = { steps: [0, 1, 2, 3], arrays };
  const found = lockedRanges([history], "inputs", CHANNEL);
  assert.deepEqual([...(found?.ranges.lo ?? [])], [-1, 0]);
  assert.deepEqual([...(found?.ranges.hi ?? [])], [3, 10]);
  const { large, faulty, beyond } = found?.inFilm ?? {};
  assert.deepEqual(
    [large, faulty, beyond].map((of) => [...(of ?? [])]),
    [[[1, 1]], [[1, 1]], [[0, 1]]],
  );
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

test("the colour bar of a channel says which steps its scale leaves out", () => {
  const film = {
    locked: { lo: [-1, 0], hi: [3, 30] },
    isLocked: true,
    steps: [0, 1, 2, 3, 4],
    sharing: "",
    inFilm: {
      large: new Map([0, 1].map((c) => [c, 1])),
      beyond: new Map([[0, 1]]),
      faulty: new Map(),
    },
    how: CHANNEL,
    unit: "step",
  };
  const of = (/** @type {number} */ channel) => scaleWords(/** @type {any} */ (film), channel);
  assert.deepEqual(of(0), [
    "−1 … 3",
    "locked over 3 of 5 steps",
    "(no large values, 1 beyond scale)",
  ]);
  assert.deepEqual(of(1), ["0 … 30", "locked over 4 of 5 steps", "(no large values)"]);
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
  assert.equal(filmLayout({ ...auto, count: 2 }).tileWidth, 384); // a short run fills the window
  assert.equal(filmLayout({ ...auto, windowHeight: 200 }).tileWidth, 64);
  const flat = filmLayout({ ...REQUEST, tile: 24, hasKernels: true });
  assert.ok(flat.cellHeight >= 16 + 50 + 45);
});

test("what is left of the window's height is that of kernels, and then of inputs", () => {
  const few = { ...REQUEST, tile: 0, rows: 1, count: 4, wraps: true, hasInput: true };
  const heights = (/** @type {number} */ windowHeight) => {
    const of = filmLayout({ ...few, hasKernels: true, windowHeight });
    assert.ok(of.bands === 1 && of.height <= windowHeight);
    return [of.tileHeight, of.kernelHeight, of.inputHeight];
  };
  const [low, middle, high] = [460, 540, 900].map(heights);
  assert.ok(low[1] < middle[1] && middle[1] < high[1] && high[1] >= high[0]);
  assert.deepEqual([low[2], high[2]], [56, 160]);
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
    assert.deepEqual([columns, bands, tileWidth], [6, 2, 128]);
    assert.ok(whole <= 700);
    assert.equal(filmLayout({ ...few, count: 200 }).tileWidth, 96, "as without wrapping");
  },
);

test("a strip of several bands has frames that fill the width, and bands of equal length", () => {
  const healthy = { ...REQUEST, wraps: true, rows: 1, tile: 0, count: 20, mapHeight: 48 };
  const of = filmLayout({ ...healthy, mapWidth: 48, windowWidth: 950, windowHeight: 640 });
  assert.deepEqual([of.columns, of.bands, of.tileWidth], [10, 2, 70]);
  assert.ok(of.width <= 950 && of.height <= 640);
  const more = filmLayout({ ...healthy, mapWidth: 48, rows: 3, count: 21 });
  assert.deepEqual([more.columns, more.bands], [7, 3]);
  const long = { ...healthy, isSequence: true, mapHeight: 1, mapWidth: 493, hasInput: false };
  const curves = filmLayout({ ...long, count: 10, windowWidth: 950, windowHeight: 640 });
  assert.ok(curves.columns * curves.cellWidth > 0.95 * (950 - curves.left - 8));
});

test("a window scrolls to whole bands, unless the asked one is in sight", () => {
  const of = filmLayout({ ...REQUEST, wraps: true, rows: 1, windowHeight: 500 });
  const { bandHeight } = of;
  const window = { scrollTop: 0, clientHeight: 500 };
  const seen = Math.floor(500 / bandHeight);
  assert.equal(bandsFrom(of, window, bandHeight), 0);
  assert.equal(bandsFrom(of, window, 9 * bandHeight), (10 - seen) * bandHeight);
  assert.equal(bandsFrom(of, { ...window, scrollTop: 999 }, bandHeight), bandHeight);
  assert.equal((of.height - 500) % bandHeight, 0);
});

test("a long sequence is shrunk, a map never", () => {
  const sequence = { ...REQUEST, isSequence: true, mapHeight: 1, mapWidth: 1000 };
  assert.ok(filmLayout(sequence).factor < 1);
  assert.ok(Math.abs(filmLayout(sequence).tileWidth - 224) <= 1);
  assert.equal(filmLayout({ ...REQUEST, mapHeight: 200, mapWidth: 200 }).factor, 1);
});

test("a long signal is a curve that leaves out no value", () => {
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
  const kinds = [128, 127].map((width) => isCurve({ height: 1, width }));
  assert.deepEqual(kinds, [true, false]);
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
