// @ts-check
/**
 * The contact sheet: which steps have columns, how large cells are, and what they are painted with.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { pageOf } from "../../src/fmapboard/plugin/static/server/health.js";
import { MARK } from "../../src/fmapboard/plugin/static/server/palettes.js";
import {
  SHEET_GAP as GAP,
  SHEET_LEAST as LEAST,
  fits,
  sheetLayout,
  thinned,
} from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { wholeMark } from "../../src/fmapboard/plugin/static/picture/sheet_tiles.js";

const range = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => i * 10);
const page = { width: 1300, height: 700, onsets: [] };

test("few layers fill the page, many stay recognizable, and all columns fit", () => {
  const few = sheetLayout({ ...page, layers: 3, steps: range(5) });
  assert.ok(few.side >= 150 && few.rows === 3);
  const usual = sheetLayout({ ...page, layers: 12, steps: range(10) });
  assert.equal(usual.steps.length, 10);
  assert.ok(usual.side >= 80);
  const many = sheetLayout({ ...page, layers: 120, steps: range(50) });
  assert.ok(many.side === 80);
  assert.ok(many.steps.length > 10 && many.steps.length < 50);
  for (const { names, side, steps } of [few, usual, many]) {
    assert.ok(names + steps.length * (side + GAP) <= 1300);
  }
});

test(
  "a narrow page has four columns of at least the least size, a narrower one shows " + "states",
  () => {
    const narrow = sheetLayout({ ...page, width: 260, layers: 12, steps: range(10) });
    assert.ok(fits(260));
    assert.ok(narrow.side >= LEAST && narrow.steps.length >= 4);
    assert.ok(!fits(200));
  },
);

test("steps are thinned evenly, with the first and the last", () => {
  assert.deepEqual(thinned(range(5), 9, []), range(5));
  assert.deepEqual(thinned(range(9), 3, []), [0, 40, 80]);
  assert.deepEqual(thinned(range(9), 1, []), [80]);
});

test("an onset takes the place of the nearest step, another onset's is kept", () => {
  assert.deepEqual(thinned(range(9), 3, [30]), [0, 30, 80]);
  assert.deepEqual(thinned(range(9), 3, [30, 40]), [30, 40, 80]);
  assert.deepEqual(thinned(range(9), 3, [35]), [0, 40, 80]); // not a kept step
});

test("a map that is one mark everywhere has no picture, one with a single value does", () => {
  const values = (/** @type {number[]} */ ...numbers) => ({
    shape: [1, 3],
    values: Float32Array.from(numbers),
  });
  const pixels = new Uint8Array(16).fill(MARK.NAN);
  pixels[12] = 17;
  const row = { key: "a", channel: 0, palette: "grey" };
  const of = pageOf([row], pixels, { height: values(0, 2, 2), width: values(0, 4, 4) }, 4, 3);
  assert.deepEqual(
    [0, 1, 2].map((column) => wholeMark(of, column)),
    [MARK.PADDING, MARK.NAN, 0],
  );
});
