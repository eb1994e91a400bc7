// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { FORMAT, decodeMaps } from "../../src/fmapboard/plugin/static/server/decode.js";
import { planesOf, valueAt } from "../../src/fmapboard/plugin/static/server/decode.js";
import { sketches } from "../../src/fmapboard/plugin/static/model/channel_order.js";
import { lay } from "../../src/fmapboard/plugin/static/picture/pixels.js";
import { buildScene } from "../../src/fmapboard/plugin/static/model/scene.js";
import {
  ROW_SHARE,
  corner,
  hit,
  layout,
  visible,
} from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";
import { positionText } from "../../src/fmapboard/plugin/static/picture/captions.js";
import { profile } from "../../src/fmapboard/plugin/static/view/channel.js";
import { ROWS_PICTURE as PICTURE } from "./fixtures.mjs";

/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/server.js").MapsPicture} MapsPicture
 */

/** @typedef {import("../../src/fmapboard/plugin/static/model/model.js").MapsScene} MapsScene */

const REQUEST = {
  count: 64,
  parts: 1,
  mapHeight: 1,
  mapWidth: 100,
  tile: 0,
  available: 700,
  windowHeight: 600,
  ratio: 1,
  rows: true,
};
/** Two rows of three positions, levels 0 127 255 and 255 0 127. */
const LEVELS = [0, 127, 255, 255, 0, 127];
const RGBA = Uint8ClampedArray.from(LEVELS.flatMap((level) => [level, level, level, 255]));

/** @param {MapsPicture} picture */
function scene(picture) {
  const planes = planesOf(RGBA, 3, PICTURE);
  const ends = (/** @type {number[]} */ values) => ({
    shape: [1, 2],
    values: Float32Array.from(values),
  });
  const maps = {
    header: { format: FORMAT, pictures: [picture] },
    step: 0,
    wallTime: 0,
    planes: new Map([["feature_maps/0", planes]]),
    arrays: { "feature_maps.lo": ends([0, 10]), "feature_maps.hi": ends([2.55, 30]) },
    kernels: null,
    missing: [],
    bytes: 0,
  };
  const question = { run: "r", key: "k", step: 0, ts: 0, role: "feature_maps", sample: 0 };
  const made = buildScene({
    state: { ...START },
    question,
    maps,
    others: [],
    history: null,
    sortMaps: null,
  });
  assert.equal(made.kind, "maps");
  return /** @type {MapsScene} */ (made);
}

test("rows fill the window in whole device pixels, without gaps", () => {
  for (const ratio of [1, 1.25, 2]) {
    const of = layout({ ...REQUEST, ratio });
    assert.equal(of.columns, 1);
    assert.equal((of.tileWidth * ratio) / 100, of.factor);
    assert.equal(of.factor, Math.round(of.factor));
    assert.equal(of.tileHeight * ratio, of.factorDown);
    assert.ok(of.width <= 700 && of.height <= 600);
    assert.equal(corner(of, 1).top - corner(of, 0).top, of.tileHeight);
  }
});

test("rows are at least 3 px high and positions 1 px wide, and scroll if they do not fit", () => {
  const many = layout({ ...REQUEST, count: 2048 });
  assert.deepEqual([many.tileHeight, many.height > 600], [3, true]);
  const long = layout({ ...REQUEST, mapWidth: 5000 });
  assert.deepEqual([long.factor, long.tileWidth, long.width > 700], [1, 5000, true]);
});

test("a larger tile size makes rows higher, and from 128 px on wider than the window", () => {
  const small = layout({ ...REQUEST, tile: 32 });
  const large = layout({ ...REQUEST, tile: 192 });
  assert.deepEqual([small.tileHeight, large.tileHeight], [32 / ROW_SHARE, 192 / ROW_SHARE]);
  assert.equal(large.factor, 3 * small.factor);
});

test("a point is mapped to channel, side and position, and to nothing outside the rows", () => {
  const of = layout({ ...REQUEST, parts: 3 });
  for (const cell of [0, 40, 63]) {
    for (const part of [0, 1, 2]) {
      const { left, top } = corner(of, cell, part);
      const found = hit(of, left + of.tileWidth * 0.505, top + of.tileHeight / 2);
      assert.deepEqual(
        [found?.cell, found?.part, Math.floor((found?.u ?? 0) * 100)],
        [cell, part, 50],
      );
    }
  }
  assert.ok(corner(of, 0).left >= 40); // a channel number of four digits
  assert.equal(hit(of, corner(of, 3).left - 5, corner(of, 3).top), null);
  assert.equal(hit(of, corner(of, 0).left + 5, corner(of, 0).top - 5), null);
});

test("only rows inside the window are visible", () => {
  const of = layout({ ...REQUEST, count: 2048 });
  const { top } = corner(of, 100);
  assert.deepEqual(
    visible(of, { top, width: 700, height: 3 * of.tileHeight - 1 }),
    [100, 101, 102],
  );
});

test("a row is drawn with different factors for width and height", () => {
  const out = new Uint32Array(5 * 3);
  lay(out, 5, 3, -1, 0, Uint32Array.from([1, 2, 3]), 3, 2, 3);
  assert.deepEqual([...out], [1, 2, 2, 3, 3, 1, 2, 2, 3, 3, 1, 2, 2, 3, 3]);
});

test("rows are decoded with the range of their channel, and can be drawn as a line", () => {
  const planes = planesOf(RGBA, 3, PICTURE);
  assert.deepEqual([planes.channels, planes.height, planes.width], [2, 1, 3]);
  assert.deepEqual([...planes.levels], LEVELS);
  assert.equal(valueAt({ planes, lo: [0, 10], hi: [1, 30] }, 1, 0, 1).value, 10);
  const line = profile({ planes, lo: [0, 10], hi: [2.55, 30] }, 0);
  assert.deepEqual(
    line.map((value) => value.toFixed(2)),
    ["0.00", "1.27", "2.55"],
  );
});

test("the similarity of rows sees differences within an eighth of their length", () => {
  const levels = new Uint8Array(2 * 64);
  for (let x = 0; x < 64; x += 1) levels[x] = levels[64 + ((x + 1) % 64)] = x % 2 ? 255 : 0;
  const { vectors, length } = sketches({
    channels: 2,
    height: 1,
    width: 64,
    levels,
    marks: null,
    coarse: 1,
  });
  let dot = 0;
  for (let k = 0; k < length; k += 1) dot += vectors[k] * vectors[length + k];
  assert.ok(Math.abs(dot + 1) < 1e-5); // opposite
});

test("a place in a row is a position, or the range of positions that were averaged", () => {
  assert.equal(positionText(true, 1, 0, 2), "position 2");
  assert.equal(positionText(true, 16, 0, 2), "positions 32 to 47");
  assert.equal(positionText(false, 1, 1, 2), "y 1, x 2");
});

test("a stored scale of the whole layer is recognized, as is that of maps of one pixel", () => {
  assert.equal(scene(PICTURE).wholeLayer, false);
  assert.equal(scene({ ...PICTURE, scale: "layer" }).wholeLayer, true);
  assert.equal(scene({ ...PICTURE, tile: [1, 1] }).wholeLayer, true);
});

test("a record of a newer format raises an error that says to reload", async () => {
  const json = {
    header: { format: FORMAT + 1, pictures: [] },
    step: 0,
    wall_time: 0,
    arrays: {},
    pictures: [],
    missing: [],
  };
  await assert.rejects(
    decodeMaps({ json, body: new ArrayBuffer(0) }),
    /a record of format 2; this page reads up to 1: reload the page/,
  );
  json.header.format = FORMAT;
  assert.equal((await decodeMaps({ json, body: new ArrayBuffer(0) })).step, 0);
});
