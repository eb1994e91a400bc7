// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  alongOrder,
  bySimilarity,
  byScore,
  meanChanges,
  sketches,
  strengths,
} from "../../src/fmapboard/plugin/static/model/channel_order.js";

test("channels are ordered by score, ties by index, NaN first", () => {
  assert.deepEqual(byScore([1, 3, 3, NaN, 0]), [3, 1, 2, 0, 4]);
});

test("strength is the root mean square, so large negative values count", () => {
  assert.deepEqual([...strengths([-3, 0], [4, 1])], [5, 1]);
});

test("change is the mean of the recorded changes", () => {
  const changes = [NaN, NaN, 1, 5, 2, 0]; // three steps of two channels
  assert.deepEqual([...meanChanges(changes, 2)], [1.5, 2.5]);
});

test("a step without a finite change does not count", () => {
  assert.deepEqual([...meanChanges([1, NaN, 3, NaN, Infinity, NaN], 2)], [2, 0]);
});

/** @param {number[][]} tiles each 2 × 2 */
const planes = (tiles) => ({
  channels: tiles.length,
  height: 2,
  width: 2,
  levels: Uint8Array.from(tiles.flat()),
  marks: null,
  coarse: 1,
});

const TILES = [
  [0, 0, 255, 255],
  [9, 9, 9, 9],
  [0, 255, 0, 255],
  [0, 10, 250, 255],
  [5, 250, 5, 250],
];

test("similar channels are next to each other, flat ones last", () => {
  const order = bySimilarity(sketches(planes(TILES)), [9, 8, 3, 2, 1]);
  assert.deepEqual(order, [0, 3, 2, 4, 1]);
});

/** Pearson's correlation. @param {number[]} a @param {number[]} b */
function correlation(a, b) {
  const centred = [a, b].map((list) => {
    const mean = list.reduce((sum, value) => sum + value, 0) / list.length;
    return list.map((value) => value - mean);
  });
  const dot = (/** @type {number[]} */ x, /** @type {number[]} */ y) =>
    x.reduce((sum, value, i) => sum + value * y[i], 0);
  const [x, y] = centred;
  return dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y));
}

test("along an order of similarity stands the correlation with the channel before", () => {
  const values = alongOrder(sketches(planes(TILES)), [0, 3, 2, 4, 1]);
  const expected = [NaN, NaN, correlation(TILES[2], TILES[3]), correlation(TILES[3], TILES[0])];
  expected[4] = correlation(TILES[4], TILES[2]);
  values.forEach((value, c) => {
    if (Number.isNaN(expected[c])) assert.ok(Number.isNaN(value));
    else assert.ok(Math.abs(value - expected[c]) < 1e-6);
  });
});

test("a sketch is independent of a channel's offset and gain", () => {
  const { vectors, length } = sketches(
    planes([
      [0, 10, 20, 30],
      [100, 120, 140, 160],
    ]),
  );
  for (let i = 0; i < length; i += 1) assert.ok(Math.abs(vectors[i] - vectors[length + i]) < 1e-6);
});

test("2048 channels can be ordered by similarity", () => {
  const tiles = Array.from({ length: 2048 }, (_, c) => [
    c % 251,
    (c * 7) % 253,
    (c * 13) % 255,
    c % 7,
  ]);
  const order = bySimilarity(sketches(planes(tiles)), new Float64Array(2048));
  assert.equal(new Set(order).size, 2048);
});
