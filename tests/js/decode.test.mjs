// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  arrays,
  bytes,
  corners,
  octets,
  open,
  planesOf,
  valueAt,
} from "../../src/fmapboard/plugin/static/server/decode.js";
import {
  MARK,
  MARK_COLOURS,
  PIXEL_OF_LEVEL,
  packed,
  ramp,
  stored,
} from "../../src/fmapboard/plugin/static/server/palettes.js";

/** @param {readonly (readonly number[])[]} colours */
const rgba = (colours) => Uint8ClampedArray.from(colours.flatMap((rgb) => [...rgb, 255]));
const grey = (/** @type {number} */ level) => [level, level, level];
const ONE = { drawn: 1, tile: [1, 3], columns: 1, padding: 2 };

test("each grey of a picture without marks is its own level", () => {
  const planes = planesOf(rgba([0, 127, 255].map(grey)), 3, { ...ONE, palette: "grey" });
  assert.deepEqual([...planes.levels], [0, 127, 255]);
  assert.equal(planes.marks, null);
  assert.equal(planes.coarse, 1);
});

test("marks are found and have no value", () => {
  const planes = planesOf(rgba([grey(10), MARK_COLOURS[MARK.NAN], MARK_COLOURS[MARK.DEAD]]), 3, {
    ...ONE,
    palette: "grey",
  });
  assert.deepEqual([...(planes.marks ?? [])], [0, 251, 255]);
  assert.ok(Number.isNaN(valueAt({ planes, lo: [-1], hi: [1] }, 0, 0, 1).value));
  assert.deepEqual(valueAt({ planes, lo: [4], hi: [4] }, 0, 0, 2), {
    value: 4,
    unit: 0,
    mark: 255,
  });
});

test("each colour of each palette is decoded to its level", () => {
  for (const name of ["viridis", "magma", "signed"]) {
    const colours = stored(name);
    const planes = planesOf(rgba(colours), 250, { ...ONE, tile: [1, 250], palette: name });
    const back = [...planes.levels].map(
      (level, i) => packed(stored(name)[i]) === packed(stored(name)[PIXEL_OF_LEVEL.indexOf(level)]),
    );
    assert.ok(back.every(Boolean), name);
  }
});

test("a colour that is not in the palette raises an error", () => {
  assert.throws(
    () => planesOf(rgba([grey(0), grey(0), [1, 2, 3]]), 3, { ...ONE, palette: "grey" }),
    /not of the palette grey/,
  );
});

test("a picture too small for its header raises an error", () => {
  assert.throws(
    () => planesOf(rgba([grey(0)]), 1, { ...ONE, drawn: 4, tile: [2, 2], palette: "grey" }),
    /holds no 4 tiles of 2×2/,
  );
});

test("tiles are where make_grid puts them", () => {
  assert.deepEqual(corners(5, 3, 4, 2, 2), [
    { left: 2, top: 2 },
    { left: 8, top: 2 },
    { left: 2, top: 7 },
    { left: 8, top: 7 },
    { left: 2, top: 12 },
  ]);
  assert.deepEqual(corners(1, 3, 4, 1, 2), [{ left: 0, top: 0 }]);
});

test("tiles are separated and their padding is skipped", () => {
  const width = 2 + 2 * 3; // two tiles of 1 × 1, padding 2
  const picture = Array.from({ length: 5 * width }, () => grey(0));
  picture[2 * width + 2] = grey(7);
  picture[2 * width + 5] = grey(9);
  const planes = planesOf(rgba(picture), width, {
    drawn: 2,
    tile: [1, 1],
    columns: 2,
    padding: 2,
    palette: "grey",
  });
  assert.deepEqual([...planes.levels], [7, 9]);
});

test("the uncertainty of a value is one level of its channel's scale", () => {
  const planes = planesOf(rgba([0, 51, 255].map(grey)), 3, { ...ONE, palette: "grey" });
  assert.deepEqual(valueAt({ planes, lo: [-1], hi: [4] }, 0, 0, 1), {
    value: 0,
    unit: 5 / 255,
    mark: 0,
  });
});

test("ramps contain their anchors", () => {
  assert.deepEqual(ramp("viridis", 256)[0], [68, 1, 84]);
  assert.deepEqual(ramp("signed", 251)[125], [247, 247, 247]);
  assert.throws(() => ramp("jet", 9), /no palette jet/);
});

test("an answer is split into its JSON and the arrays and bytes behind it", () => {
  const json = new TextEncoder().encode('{"x":"é"}');
  const whole = new Uint8Array(4 + json.length + 8);
  new DataView(whole.buffer).setUint32(0, json.length, true);
  whole.set(json, 4);
  new DataView(whole.buffer).setFloat32(4 + json.length + 4, 1.5, true);
  const { json: read, body } = open(whole.buffer);
  assert.deepEqual(read, { x: "é" });
  const found = arrays(body, { a: { offset: 4, shape: [1, 1] }, b: { offset: 0, shape: [1] } });
  assert.deepEqual(
    [found.a, found.b].flatMap((each) => [...(each?.values ?? [])]),
    [1.5, 0],
  );
  assert.deepEqual([...octets(body, { offset: 6, shape: [2, 1] })], [0xc0, 0x3f]);
  assert.deepEqual([...new Uint8Array(bytes(body, { offset: 7, length: 1 }))], [0x3f]);
  const beyond = { offset: 4, shape: [3] };
  assert.throws(() => arrays(body, { c: beyond }), /the array c was cut off/);
  assert.throws(() => octets(body, { offset: 6, shape: [3] }), /cut off/);
});

test("a truncated answer raises an error", () => {
  assert.throws(() => open(new ArrayBuffer(2)), /cut off/);
  assert.throws(() => open(Uint8Array.from([255, 0, 0, 0, 123]).buffer), /cut off/);
});
