// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { stripsAcross } from "../../src/fmapboard/plugin/static/picture/film_layout.js";
import { filmLayout } from "../../src/fmapboard/plugin/static/picture/film_layout.js";

/**
 * How many strips of one channel are beside each other.
 * @param {number} strips @param {number} steps @param {number} width @param {number} height CSS px
 * @param {number} tile CSS px, 0 for any
 */
function across(strips, steps, width, height, tile = 0) {
  const map = { mapHeight: 32, mapWidth: 32, isSequence: false, ratio: 1, tile };
  const has = { hasInput: true, hasMaps: true, hasKernels: true };
  return stripsAcross(strips, { width, height }, (windowWidth, windowHeight) =>
    filmLayout({ ...map, ...has, count: steps, rows: 1, windowWidth, windowHeight }),
  );
}

test("short strips in a wide window are beside each other", () => {
  assert.equal(across(2, 10, 2250, 700), 2);
  assert.equal(across(3, 4, 2250, 700), 3);
});

test("strips are below each other if they take most of the width", () => {
  assert.equal(across(2, 24, 2250, 700), 1);
  assert.equal(across(2, 10, 970, 700), 1);
  assert.equal(across(2, 6, 1100, 500), 1, "although frames would be larger");
});

test("strips stay below each other if frames are no larger beside each other", () => {
  assert.equal(across(2, 4, 2250, 2000), 1);
});

test("frames of a fixed size are beside each other only if they are scrolled otherwise", () => {
  assert.equal(across(2, 4, 2250, 500, 160), 2);
  assert.equal(across(2, 4, 2250, 1400, 160), 1);
});
