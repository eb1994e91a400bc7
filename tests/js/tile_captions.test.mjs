// @ts-check
/** What is written below a tile: its number, its range as far as there is space, and its states. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { loudest } from "../../src/fmapboard/plugin/static/model/scene.js";
import { caption } from "../../src/fmapboard/plugin/static/picture/painter.js";

const context = /** @type {any} */ ({
  measureText: (/** @type {string} */ text) => ({ width: 7 * text.length }),
});
const look = /** @type {any} */ ({ text: "black", muted: "grey" });

/** @param {number} width @param {string[]} ranges */
function textsIn(width, ranges) {
  const names = [{ text: "12", colour: "black", isNeeded: true }];
  const { texts } = caption(context, { left: 0, top: 0, width }, names, null, ranges, look);
  return texts.map(({ text }) => text);
}

test("a range that does not fit has fewer digits, before it is left out", () => {
  const ranges = ["−0.43…1.2", "−0.4…1"];
  assert.deepEqual(textsIn(90, ranges), ["12", "−0.43…1.2"]);
  assert.deepEqual(textsIn(65, ranges), ["12", "−0.4…1"]);
  assert.deepEqual(textsIn(57, ranges), ["12", "−0.4…1"]); // squeezed
  assert.deepEqual(textsIn(50, ranges), ["12"]);
});

test("a channel with large values that is dead behind its activation is both", () => {
  const none = { nan: 0, positive: 0, negative: 0, constant: false };
  const word = (/** @type {"large"|"dead"} */ kind, dead = true) =>
    loudest({ ...none, kind, dead, after: "ReLU" })?.word;
  assert.equal(word("large"), "large, dead after ReLU");
  assert.equal(word("dead"), "dead after ReLU");
  assert.equal(word("large", false), "large");
});
