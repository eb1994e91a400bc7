// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CAPTION_LINE,
  corner,
  hit,
  layout,
  visible,
} from "../../src/fmapboard/plugin/static/picture/layouts.js";
import { BELOW } from "../../src/fmapboard/plugin/static/picture/painter.js";
import { lay } from "../../src/fmapboard/plugin/static/picture/pixels.js";

const REQUEST = {
  count: 64,
  parts: 1,
  mapHeight: 8,
  mapWidth: 8,
  tile: 64,
  available: 500,
  windowHeight: 400,
  ratio: 1,
};

test("each map pixel is a whole number of device pixels", () => {
  for (const ratio of [1, 1.25, 1.5, 2, 3]) {
    for (const tile of [24, 50, 64, 100]) {
      const of = layout({ ...REQUEST, tile, ratio, mapWidth: 7, mapHeight: 7 });
      assert.equal((of.tileWidth * ratio) / 7, of.factor);
      assert.equal(of.factor, Math.round(of.factor));
    }
  }
});

test("a map larger than its tile is drawn 1:1, not shrunk", () => {
  assert.equal(layout({ ...REQUEST, mapWidth: 224, mapHeight: 224 }).factor, 1);
});

test(
  "without a tile size, tiles fill the width, in as many columns as fill the window " + "best",
  () => {
    for (const mapWidth of [8, 14, 32, 64, 100]) {
      for (const [count, parts] of [
        [16, 1],
        [64, 1],
        [200, 1],
        [16, 2],
      ]) {
        const of = layout({ ...REQUEST, count, parts, tile: 0, mapWidth, mapHeight: mapWidth });
        if (of.factor < 2 || of.lines < 2) continue;
        const gap = corner(of, 1).left - corner(of, 0, parts - 1).left - of.tileWidth;
        assert.ok(gap >= 8 && gap <= 8 * (parts + 1) + 1, `${count} of ${mapWidth}: ${gap}`);
      }
    }
    const few = layout({ ...REQUEST, count: 4, tile: 0 });
    const many = layout({ ...REQUEST, count: 200, tile: 0 });
    assert.ok(few.tileWidth > 2 * many.tileWidth && few.height <= 400);
  },
);

test("several lines of tiles reach from one margin to the other", () => {
  for (const available of [500, 533, 571]) {
    const of = layout({ ...REQUEST, available });
    const right = corner(of, of.columns - 1).left + of.tileWidth;
    assert.ok(right <= available - 10 && right > available - 10 - of.columns, `${right}`);
  }
});

test("2048 channels have tiles of readable size and scroll", () => {
  const of = layout({ ...REQUEST, count: 2048, tile: 0 });
  assert.ok(of.tileWidth >= 44);
  assert.ok(of.height > 400);
});

test("only cells inside the window are visible", () => {
  const of = layout(REQUEST);
  const line = (/** @type {number} */ i) =>
    [...Array(of.columns).keys()].map((c) => i * of.columns + c);
  const shown = (/** @type {number} */ top, /** @type {number} */ height) =>
    visible(of, { top, width: 500, height });
  assert.deepEqual(shown(0, of.cellHeight), line(0));
  assert.deepEqual(shown(10 + 2 * of.cellHeight, of.cellHeight - 1), line(2));
  assert.deepEqual(shown(1e6, 10), []);
});

test("a point in a tile is mapped to its cell, part and position", () => {
  const of = layout({ ...REQUEST, parts: 3, available: 900 });
  for (const cell of [0, 5, 63]) {
    for (const part of [0, 1, 2]) {
      const { left, top } = corner(of, cell, part);
      const found = hit(of, left + of.tileWidth * 0.25, top + of.tileHeight * 0.75);
      assert.deepEqual([found?.cell, found?.part], [cell, part]);
      assert.ok(Math.abs((found?.u ?? 0) - 0.25) < 1e-9 && Math.abs((found?.v ?? 0) - 0.75) < 1e-9);
    }
  }
});

test("tiles of a cell are closer to each other than to those of the next cell", () => {
  const of = layout({ ...REQUEST, parts: 4, available: 2000 });
  const [first, second, last] = [0, 1, 3].map((part) => corner(of, 0, part).left);
  const space = second - first - of.tileWidth;
  assert.ok(corner(of, 1).left - last - of.tileWidth >= 2 * space); // tiles of a cell are together
});

test("captions are below the frame of their tile and above that of the next line", () => {
  const frame = 2.5; // of a selected cell, see `cellLines`
  const text = 11;
  assert.ok(BELOW > frame);
  for (const numbered of [false, true]) {
    const of = layout({ ...REQUEST, numbered });
    const lines = numbered ? CAPTION_LINE : 0;
    assert.ok(of.tileHeight + BELOW + lines + text <= of.cellHeight - frame);
  }
});

test("a caption belongs to its channel without a position, and a point outside to nothing", () => {
  const of = layout(REQUEST);
  const { left, top } = corner(of, 3);
  const below = hit(of, left + 4, top + of.tileHeight + 5);
  assert.deepEqual([below?.cell, below?.u, below?.v], [3, null, null]);
  assert.equal(hit(of, 2, 2), null);
  assert.equal(hit(of, left, top + 1e6), null);
});

test("pixels of no whole size are drawn without gaps, each at least once", () => {
  const out = new Uint32Array(8 * 5);
  lay(out, 8, 5, 0, 0, Uint32Array.from([1, 2, 3, 4, 5, 6]), 3, 2.5);
  assert.deepEqual([...out.subarray(0, 8)], [1, 1, 1, 2, 2, 3, 3, 3]);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((y) => out[8 * y]),
    [1, 1, 1, 4, 4],
  );
});

test("pixels are drawn as blocks and clipped at the edges", () => {
  const out = new Uint32Array(4 * 3);
  lay(out, 4, 3, 1, -1, Uint32Array.from([1, 2, 3, 4]), 2, 2);
  assert.deepEqual([...out], [0, 1, 1, 2, 0, 3, 3, 4, 0, 3, 3, 4]);
});
