// @ts-check
/**
 * The contact sheet: which steps have columns, how large cells are, and what they are painted with.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { endsText } from "../../src/fmapboard/plugin/static/model/words.js";
import { pageOf } from "../../src/fmapboard/plugin/static/server/health.js";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { frameOfCode, inputName, sizeText } from "../../src/fmapboard/plugin/static/view/sheet.js";
import { MARK, MARK_TABLE, packed } from "../../src/fmapboard/plugin/static/server/palettes.js";
import {
  SHEET_GAP as GAP,
  SHEET_LEAST as LEAST,
  fits,
  sheetLayout,
  thinned,
} from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { FRAMES, markTile, regionsOf } from "../../src/fmapboard/plugin/static/picture/painter.js";
import { isNan } from "../../src/fmapboard/plugin/static/picture/pixels.js";
import {
  constantTile,
  markOf,
  hasValue,
  onlyValue,
  pixelMarksOf,
  rowRanges,
} from "../../src/fmapboard/plugin/static/picture/sheet_tiles.js";

const range = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => i * 10);
const page = { width: 1300, height: 700, onsets: [] };

test("tiles fill the width up to a size, stay recognizable, and all columns fit", () => {
  const few = sheetLayout({ ...page, layers: 3, steps: range(5) });
  assert.ok(few.side === 212 && few.rows === 3);
  const usual = sheetLayout({ ...page, layers: 12, steps: range(10) });
  assert.equal(usual.steps.length, 10);
  assert.ok(usual.side > 95);
  const many = sheetLayout({ ...page, layers: 120, steps: range(50) });
  assert.ok(many.side >= 80);
  assert.ok(many.steps.length >= 8 && many.steps.length < 50);
  for (const { names, side, steps } of [few, usual, many]) {
    assert.ok(names + steps.length * (side + GAP) <= 1300);
  }
});

test("maps of one row of pixels fill the width in low rows, higher ones if they are few", () => {
  const few = sheetLayout({ ...page, layers: 2, steps: range(4), isFlat: true });
  assert.equal(few.high, 140);
  const flat = sheetLayout({ ...page, layers: 24, steps: range(4), isFlat: true });
  assert.ok(flat.side > 250 && flat.line < 66 && flat.rows >= 10);
  assert.ok(flat.names + 4 * (flat.side + GAP) > 1290);
  const many = sheetLayout({ ...page, layers: 24, steps: range(40), isFlat: true });
  assert.ok(many.side >= 160);
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

test("each 1st, 2nd, 4th, … step has a column, and the last one: fewer are some of more", () => {
  assert.deepEqual(thinned(range(5), 9, []), range(5));
  assert.deepEqual(thinned(range(9), 5, []), [0, 20, 40, 60, 80]);
  assert.deepEqual(thinned(range(9), 4, []), [0, 40, 80]);
  assert.deepEqual(thinned(range(10), 6, []), [0, 20, 40, 60, 80, 90]);
  assert.deepEqual(thinned(range(9), 1, []), [80]);
  const many = thinned(range(50), 30, []);
  assert.ok(thinned(range(50), 9, []).every((step) => many.includes(step)));
});

test("an onset has a column besides, however few there are", () => {
  assert.deepEqual(thinned(range(9), 6, [30]), [0, 20, 30, 40, 60, 80]);
  assert.deepEqual(thinned(range(9), 4, [30, 50]), [0, 30, 50, 80]);
  assert.deepEqual(thinned(range(9), 2, [30, 50]), [30, 80]);
  assert.deepEqual(thinned(range(9), 3, [35]), [0, 40, 80]); // not a kept step
});

/** A page of one row with these ranges, a pixel of 4 × 4 each. @param {[number, number][]} ends */
function rowOf(ends) {
  const values = (/** @type {number[]} */ numbers) => ({
    shape: [1, ends.length],
    values: Float32Array.from(numbers),
  });
  const [lo, hi] = [values(ends.map(([lo]) => lo)), values(ends.map(([, hi]) => hi))];
  const sides = values(ends.map(() => 4));
  const pixels = new Uint8Array(16 * ends.length);
  const row = { key: "a", channel: 0, palette: "grey", view: "" };
  return pageOf([row], pixels, { height: sides, width: sides, lo, hi }, 4, ends.length);
}

test("a map of one value is its number", () => {
  const page = rowOf([[0, 1], [0.5, 0.5]]); // prettier-ignore
  assert.deepEqual([onlyValue(page, 0), onlyValue(page, 1)], [NaN, 0.5]);
  const bad = rowOf([[0, 0]]); // prettier-ignore
  bad.pixels.fill(MARK.NAN);
  assert.equal(onlyValue(bad, 0), NaN);
  bad.pixels[3] = MARK.NEGATIVE_INFINITY; // no mark throughout, and no value either
  assert.equal(onlyValue(bad, 0), NaN);
  assert.equal(hasValue(bad, 0), false);
  bad.pixels[5] = 7;
  assert.equal(onlyValue(bad, 0), 0);
});

test("a map of one value is a fault only where its layer is constant", () => {
  const box = { left: 0, top: 0, width: 80, height: 80 };
  const look = { text: "#000" };
  const words = (/** @type {any} */ { texts }) => texts.map((/** @type {any} */ of) => of.text);
  const one = constantTile(box, -2.27, "dead", look);
  assert.deepEqual([words(one), one.hatch], [["one value", "−2.27"], undefined]);
  const constant = constantTile(box, -2.27, "constant", look);
  assert.deepEqual(words(constant), ["constant", "−2.27"]);
  assert.ok(constant.hatch);
});

test("the sheet says how many of the layers have pictures, if not all have", () => {
  const layer = (/** @type {string|null} */ key) => ({ key, roles: ["feature_maps"] });
  const text = (/** @type {(string|null)[]} */ ...keys) =>
    sizeText(
      /** @type {any} */ ({
        health: { layers: keys.map(layer), steps: [0, 1, 2], step_words: {} },
        layout: { steps: [0, 2] },
      }),
    );
  assert.equal(text("a", null, "b"), "2 of 3 layers have pictures · 2 of 3 steps");
  assert.equal(text("a", "b"), "2 of 3 steps");
});

test("the input is named by its model where there are several", () => {
  const named = (/** @type {string[]} */ ...names) =>
    inputName(/** @type {any} */ ({ layers: names.map((name) => ({ name })) }));
  assert.equal(named("", ""), "input");
  assert.equal(named("discriminator", "generator"), "input of discriminator");
});

test("a range is as exact as it takes to tell its ends apart", () => {
  assert.deepEqual(
    [endsText(-0.123, 1.456), endsText(-100.12, -100), endsText(2, 2), endsText(-1.59, -0.189, 3)],
    ["−0.12 … 1.5", "−100.1 … −100", "2", "−1.59 … −0.189"],
  );
});

/** @param {string[]} rows letters are states */
function outlines(rows, height = 10) {
  const states = { n: "nonfinite", d: "dead" };
  const columns = rows[0].length;
  const all = rows.join("");
  return regionsOf({
    ...{ cells: [...all].map((_, i) => i), columns, count: all.length },
    stateOf: (cell) =>
      /** @type {"dead"|"nonfinite"|null} */ (states[/** @type {"n"|"d"} */ (all[cell])] ?? null),
    boxOf: (cell) => {
      const [left, top] = [10 * (cell % columns), 10 * Math.floor(cell / columns)];
      return { left, top, width: 10, height };
    },
  });
}

test("neighbouring cells in one state have one outline, of any shape", () => {
  const [dead, bad] = outlines(["..nn", ".dnn", "dd.n"]);
  assert.deepEqual([dead.state, dead.sides.length, bad.state], ["dead", 8, "nonfinite"]);
  assert.deepEqual(
    bad.sides.filter(([left, , right]) => left === right).map(([left, top]) => [left, top]),
    [[20, 0], [40, 0], [20, 10], [40, 10], [30, 20], [40, 20]], // prettier-ignore
  );
});

test("cells that do not touch, and those at the ends of a line, have outlines of their own", () => {
  assert.equal(outlines(["d", "d"])[0].sides.length, 6);
  assert.equal(outlines(["d", "d"], 8)[0].sides.length, 8);
  assert.equal(outlines(["..d", "d.."])[0].sides.length, 8);
});

test("a picture is framed for what half of the channels have, not for what a few have", () => {
  const { FINE, UNCHANGED, DEAD, MOSTLY_DEAD, LARGE, NONFINITE } = CODE;
  assert.deepEqual([FINE, UNCHANGED, DEAD].map(frameOfCode), [null, null, null]);
  const severe = [MOSTLY_DEAD, LARGE, NONFINITE].map(frameOfCode);
  assert.deepEqual(severe, ["dead", "large", "nonfinite"]);
});

test("each state has a line of its own, so that outlines differ without colour", () => {
  const lines = Object.values(FRAMES).map(({ width, corner }) => `${width} ${corner}`);
  assert.equal(new Set(lines).size, lines.length);
  assert.equal(Object.keys(FRAMES).at(-1), "nonfinite"); // over all others
});

test("a tile of one mark is its word, if there is space for it", () => {
  const look = { text: "black" };
  const box = { left: 0, top: 0, width: 60, height: 60 };
  const wordsIn = (/** @type {object} */ size, value = NaN) =>
    markTile({ ...box, ...size }, MARK.DEAD, value, look).texts?.map(({ text }) => text);
  assert.deepEqual(wordsIn({}), ["dead"]);
  assert.deepEqual(wordsIn({}, 0), ["dead", "0"]);
  assert.deepEqual(wordsIn({ height: 20 }, 0), ["dead"]);
  assert.deepEqual(wordsIn({ width: 30 }), []);
  assert.deepEqual(wordsIn({ height: 8 }), []);
});

test("one scale per row leaves out steps with large values, unless there are no others", () => {
  const page = rowOf([[0, 1], [-1, 2], [0, 1e6]]); // prettier-ignore
  const stateOf = (/** @type {number} */ _row, /** @type {number} */ column) =>
    column === 2 ? /** @type {const} */ ("large") : null;
  assert.deepEqual(rowRanges(page, stateOf), [{ lo: -1, hi: 2 }]);
  assert.deepEqual(
    rowRanges(page, () => "large"),
    [{ lo: -1, hi: 1e6 }],
  );
});

test("a map that is one mark everywhere has no picture, one with a single value does", () => {
  const values = (/** @type {number[]} */ ...numbers) => ({
    shape: [1, 3],
    values: Float32Array.from(numbers),
  });
  const pixels = new Uint8Array(16).fill(MARK.NAN);
  pixels[12] = 17;
  const row = { key: "a", channel: 0, palette: "grey", view: "" };
  const of = pageOf([row], pixels, { height: values(0, 2, 2), width: values(0, 4, 4) }, 4, 3);
  assert.deepEqual(
    [0, 1, 2].map((column) => markOf(of, column)),
    [MARK.PADDING, MARK.NAN, 0],
  );
});

test("the legend names only the marks of single pixels that occur", () => {
  const pixels = new Uint8Array(32).fill(17);
  pixels.fill(MARK.NAN, 0, 16); // a whole map, which has its word
  pixels[20] = MARK.POSITIVE_INFINITY;
  const sides = { shape: [1, 2], values: Float32Array.of(4, 4) };
  const row = { key: "a", channel: 0, palette: "grey", view: "" };
  const of = pageOf([row], pixels, { height: sides, width: sides }, 4, 2);
  assert.deepEqual([...pixelMarksOf(of)], [MARK.POSITIVE_INFINITY]);
});

test("a picture of the input without a finite value is one mark", () => {
  const bad = MARK_TABLE[MARK.NAN];
  const fine = packed([10, 20, 30]);
  assert.deepEqual([[bad, bad], [bad, fine], []].map((of) => isNan(Uint32Array.from(of))), [
    true, false, false,
  ]); // prettier-ignore
});
