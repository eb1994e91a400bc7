// @ts-check
/** Borders of pictures of faulty channels. */

import assert from "node:assert/strict";
import test from "node:test";

import { stateFrame } from "../../src/fmapboard/plugin/static/picture/canvas.js";

/** Lines of the hatch of a border. @param {"nonfinite"|"large"|"dead"|"constant"} kind */
function lines(kind) {
  /** @type {number[][]} */
  const found = [];
  const nothing = () => {};
  let from = [0, 0];
  const context = {
    moveTo: (/** @type {number[]} */ ...at) => (from = at),
    lineTo: (/** @type {number} */ x, /** @type {number} */ y) =>
      found.push([Math.sign(x - from[0]), Math.sign(y - from[1])]),
  };
  for (const name of ["save", "restore", "beginPath", "rect", "clip", "fillRect", "stroke"]) {
    Object.assign(context, { [name]: nothing });
  }
  const mark = { kind, word: "", brief: "", colour: "red" };
  stateFrame(/** @type {any} */ (context), { left: 10, top: 10, width: 40, height: 30 }, mark);
  return [...new Set(found.map(String))];
}

test("each state has a hatch of its own, so that borders differ without colour", () => {
  assert.deepEqual(lines("large"), []);
  assert.deepEqual(lines("dead"), ["1,1"]);
  assert.deepEqual(lines("nonfinite"), ["1,1", "-1,1"]);
  assert.deepEqual(lines("constant"), ["0,1", "1,0"]);
});
