// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { corner, hit, layout, visible } from "../../src/fmapboard/plugin/static/draw/tile_layout.js";
import { lay } from "../../src/fmapboard/plugin/static/draw/paint.js";

const ROOM = { count: 64, parts: 1, mapHeight: 8, mapWidth: 8, wanted: 64, available: 500, windowHeight: 400, ratio: 1 };

test("each map pixel takes whole device pixels", () => {
  for (const ratio of [1, 1.25, 1.5, 2, 3]) {
    for (const wanted of [24, 50, 64, 100]) {
      const of = layout({ ...ROOM, wanted, ratio, mapWidth: 7, mapHeight: 7 });
      assert.equal((of.tileWidth * ratio) / 7, of.factor);
      assert.equal(of.factor, Math.round(of.factor));
    }
  }
});

test("a map larger than its tile is drawn pixel by pixel, never shrunk", () => {
  assert.equal(layout({ ...ROOM, mapWidth: 224, mapHeight: 224 }).factor, 1);
});

test("without a wish, tiles are as large as about fits the window", () => {
  const of = layout({ ...ROOM, count: 4, wanted: 0 });
  assert.ok(of.height <= 600);
  const larger = layout({ ...ROOM, count: 4, wanted: of.tileWidth + 8 });
  assert.ok(larger.height > 600 || larger.cellWidth > 480);
});

test("2048 channels that do not fit stay readable and scroll", () => {
  const of = layout({ ...ROOM, count: 2048, wanted: 0 });
  assert.ok(of.tileWidth >= 44);
  assert.ok(of.height > 400);
});

test("only cells that show are visible", () => {
  const of = layout(ROOM);
  assert.deepEqual(visible(of, 0, of.cellHeight), [0, of.columns]);
  assert.deepEqual(visible(of, 10 + 2 * of.cellHeight, 10 + 3 * of.cellHeight - 1), [2 * of.columns, 3 * of.columns]);
  assert.deepEqual(visible(of, 1e6, 1e6 + 10), [64, 64]);
});

test("a point in the middle of a tile finds it", () => {
  const of = layout({ ...ROOM, parts: 3, available: 900 });
  for (const cell of [0, 5, 63]) {
    for (const part of [0, 1, 2]) {
      const { left, top } = corner(of, cell, part);
      const found = hit(of, left + of.tileWidth * 0.25, top + of.tileHeight * 0.75);
      assert.deepEqual([found?.cell, found?.part], [cell, part]);
      assert.ok(Math.abs((found?.u ?? 0) - 0.25) < 1e-9 && Math.abs((found?.v ?? 0) - 0.75) < 1e-9);
    }
  }
});

test("a caption belongs to its channel but has no value; outside there is nothing", () => {
  const of = layout(ROOM);
  const { left, top } = corner(of, 3);
  const below = hit(of, left + 4, top + of.tileHeight + 5);
  assert.deepEqual([below?.cell, below?.u, below?.v], [3, null, null]);
  assert.equal(hit(of, 2, 2), null);
  assert.equal(hit(of, left, top + 1e6), null);
});

test("pixels are laid as blocks and cut at the edges", () => {
  const out = new Uint32Array(4 * 3);
  lay(out, 4, 3, 1, -1, Uint32Array.from([1, 2, 3, 4]), 2, 2);
  assert.deepEqual([...out], [0, 1, 1, 2, 0, 3, 3, 4, 0, 3, 3, 4]);
});
