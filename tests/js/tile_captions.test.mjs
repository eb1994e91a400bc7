// @ts-check
/** What is written below a tile: its number, its range as far as there is space, and its states. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { loudest } from "../../src/fmapboard/plugin/static/model/scene.js";
import { marksIn } from "../../src/fmapboard/plugin/static/picture/captions.js";
import { writtenFault } from "../../src/fmapboard/plugin/static/picture/grid_tiles.js";
import { caption } from "../../src/fmapboard/plugin/static/picture/painter.js";

const context = /** @type {any} */ ({
  measureText: (/** @type {string} */ text) => ({ width: 7 * text.length }),
});
const look = /** @type {any} */ ({ text: "black", muted: "grey" });

/** @param {number} width @param {string} range */
function textsIn(width, range) {
  const names = [{ text: "12", colour: "black", isNeeded: true }];
  const { texts } = caption(context, { left: 0, top: 0, width }, names, null, range, look);
  return texts.map((of) => ("isSmall" in of && of.isSmall ? `small ${of.text}` : of.text));
}

test("a range that does not fit is small, before it is left out, and has all its digits", () => {
  assert.deepEqual(textsIn(90, "−0.43…1.2"), ["12", "−0.43…1.2"]);
  assert.deepEqual(textsIn(75, "−0.43…1.2"), ["12", "small −0.43…1.2"]); // and squeezed
  assert.deepEqual(textsIn(70, "−0.43…1.2"), ["12"]);
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

/** What is written below each tile. @param {number[]} codes of the channels' states */
function writtenOf(codes) {
  const values = (/** @type {number[]} */ each) => ({ values: Float32Array.from(each) });
  const arrays = {
    "feature_maps.code": values(codes),
    "feature_maps.dead": values(codes.map((code) => Number(DEAD.includes(code)))),
  };
  const maps = { arrays, header: {} };
  const column = { maps, question: { role: "feature_maps" }, side: {} };
  const scene = /** @type {any} */ ({
    ...{ kind: "maps", order: codes.map((_, i) => i), columns: [column] },
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
});
