// @ts-check
/** What is written below a tile: its number, its range as far as there is space, and its states. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { loudest } from "../../src/fmapboard/plugin/static/model/scene.js";
import { marksIn } from "../../src/fmapboard/plugin/static/picture/captions.js";
import { writtenFault } from "../../src/fmapboard/plugin/static/picture/grid_tiles.js";
import {
  badge,
  caption,
  captionSize,
  longest,
} from "../../src/fmapboard/plugin/static/picture/painter.js";

const context = /** @type {any} */ ({
  measureText: (/** @type {string} */ text) => ({ width: 7 * text.length }),
});
const look = /** @type {any} */ ({ text: "black", muted: "grey" });

test("ranges are below all tiles, in one size and with all digits, or below none", () => {
  const sizeIn = (/** @type {number} */ place) =>
    captionSize(context, ["0 … 1", "−0.43 … 1.2"], place); // 77 px, and 65 px if they are small
  assert.deepEqual(sizeIn(77), { isShown: true, isSmall: false });
  assert.deepEqual(sizeIn(55), { isShown: true, isSmall: true }); // and squeezed
  assert.equal(sizeIn(54).isShown, false);
});

test("the longest texts have the widest one among them", () => {
  assert.deepEqual(longest(["0 … 1", "−0.1 … 11", "−0.11 … 1.1"]), ["−0.11 … 1.1"]);
  assert.deepEqual(longest(["−1 … 2", "1.1 … 2"]), ["−1 … 2", "1.1 … 2"]);
});

test("a range is at the right of what is left of its number, in the size of all", () => {
  const names = [{ text: "12", colour: "black", isNeeded: true }];
  const { texts } = caption(
    context,
    { left: 0, top: 0, width: 90 },
    names,
    null,
    "1 … 2",
    look,
    true,
  );
  assert.deepEqual(texts[1], {
    ...{ text: "1 … 2", x: 90, y: 0, align: "right", width: 71, colour: "grey", isSmall: true },
  });
});

test("a state that is two is written in full, in brief, or as the more severe one", () => {
  const fault = /** @type {any} */ ({
    word: "large, dead after ReLU",
    brief: "dead",
    isBoth: true,
  });
  const wordIn = (/** @type {number} */ width) =>
    badge(context, fault, { left: 0, top: 0, width }, look, [], true).texts[0].text;
  assert.deepEqual([200, 90, 60].map(wordIn), ["large, dead after ReLU", "large, dead", "dead"]);
});

test("a channel with large values that is dead behind its activation is both", () => {
  const none = { nan: 0, positive: 0, negative: 0, constant: false };
  const word = (/** @type {"large"|"dead"} */ kind, large = true) =>
    loudest({ ...none, kind, large, dead: kind === "dead", after: "ReLU" })?.word;
  assert.equal(word("dead"), "large, dead after ReLU");
  assert.equal(word("dead", false), "dead after ReLU");
  assert.equal(word("large"), "large");
});

const PART = { column: 0, isDifference: false };

/** @type {number[]} */
const DEAD = [CODE.MOSTLY_DEAD, CODE.LARGE_AND_DEAD];

/**
 * What is written below each tile. @param {number[]} codes of the channels' states
 * @param {number} columns in all of which they are
 */
function writtenOf(codes, columns = 1) {
  const values = (/** @type {number[]} */ each) => ({ values: Float32Array.from(each) });
  const arrays = {
    "feature_maps.code": values(codes),
    "feature_maps.dead": values(codes.map((code) => Number(DEAD.includes(code)))),
  };
  const maps = { arrays, header: {} };
  const column = { maps, question: { role: "feature_maps" }, side: {} };
  const scene = /** @type {any} */ ({
    ...{ kind: "maps", order: codes.map((_, i) => i), columns: Array(columns).fill(column) },
  });
  const written = scene.order.map((/** @type {number} */ i) => {
    const fault = writtenFault(scene, PART, i);
    return fault ? fault.brief || "colour only" : "";
  });
  return { written, marks: Object.fromEntries(marksIn(scene)) };
}

test("a state of more than half of the tiles is not written below each of them", () => {
  const { FINE, MOSTLY_DEAD, LARGE, LARGE_AND_DEAD } = CODE;
  const all = writtenOf([LARGE_AND_DEAD, LARGE_AND_DEAD, MOSTLY_DEAD]);
  assert.deepEqual(
    [all.written, all.marks],
    [["", "", ""], { large: [[0, 1]], dead: [[0, 1, 2]] }],
  );
  const some = writtenOf([LARGE_AND_DEAD, LARGE, FINE]);
  assert.deepEqual(some.written, ["dead", "colour only", ""]);
  assert.deepEqual(writtenOf([LARGE_AND_DEAD, MOSTLY_DEAD]).written, ["large", ""]);
  const beside = writtenOf([LARGE_AND_DEAD, MOSTLY_DEAD], 2); // columns are told apart by it
  assert.deepEqual(beside.written, ["dead", "dead"]);
});
