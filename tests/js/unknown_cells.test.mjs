// @ts-check
/** Cells of the map of states: their colours, and those whose brightness is not known. */

import assert from "node:assert/strict";
import test from "node:test";

import { LEVELS, shadeOf } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { UNKNOWN_LEVEL } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { columnText, fillCells } from "../../src/fmapboard/plugin/static/picture/health_map.js";
import { CODE } from "../../src/fmapboard/plugin/static/model/health_states.js";

/**
 * Pixels that differ from the most frequent colour of a cell.
 * @param {number} wide @param {number} high
 */
function marks(wide, high) {
  const out = new Uint32Array(wide * high);
  const cells = {
    codes: Uint8Array.of(CODE.FINE),
    levels: Uint8Array.of(UNKNOWN_LEVEL),
    at: Int32Array.of(0),
  };
  const look = /** @type {any} */ ({ theme: "light", ratio: 1 });
  fillCells(out, wide, high, { rows: 1, columns: 1 }, cells, look, 0);
  const usual = out[0] === out[out.length - 1] ? out[0] : out[1];
  return [...out.keys()]
    .filter((i) => out[i] !== usual)
    .map((i) => [i % wide, Math.floor(i / wide)]);
}

test("a cell of unknown brightness has one dash in its middle, a small one dots", () => {
  const dash = marks(40, 22);
  assert.deepEqual(new Set(dash.map(([, y]) => y)), new Set([11]));
  assert.deepEqual([dash[0][0], dash.length], [17, 7]);
  const dots = marks(40, 8);
  assert.deepEqual(new Set(dots.map(([x, y]) => `${x % 4},${y % 4}`)), new Set(["1,1"]));
});

test("a cell with a fault has one colour, whatever its range of values is", () => {
  const look = /** @type {any} */ ({ theme: "light", ratio: 1 });
  for (const code of Object.values(CODE)) {
    const [low, high, unknown] = [2, LEVELS - 1, UNKNOWN_LEVEL].map((level) => {
      const out = new Uint32Array(400);
      const cells = {
        codes: Uint8Array.of(code),
        levels: Uint8Array.of(level),
        at: Int32Array.of(0),
      };
      fillCells(out, 20, 20, { rows: 1, columns: 1 }, cells, look, 0);
      return out.join();
    });
    const isShaded = code > 0 && code <= CODE.UNCHANGED;
    assert.equal(low === high, !isShaded, `${code}`);
    assert.equal(low === unknown, !isShaded, `${code}`);
  }
});

test("a fault of half of the channels is well apart from that of a tenth of them", () => {
  for (const theme of /** @type {const} */ (["light", "dark"])) {
    const distance = (/** @type {number} */ one, /** @type {number} */ other) => {
      const [a, b] = [one, other].map((code) => shadeOf(theme, code, 0));
      return Math.hypot(...a.map((value, i) => value - b[i]));
    };
    assert.ok(distance(CODE.DEAD, CODE.MOSTLY_DEAD) > 60, theme);
    assert.ok(distance(CODE.CONSTANT, CODE.MOSTLY_CONSTANT) > 60, theme);
  }
});

test("a column of an image has its name where that has the space", () => {
  const label = /** @type {const} */ (["2", "chelsea.jpg"]);
  assert.deepEqual(
    [40, 80, 120].map((width) => columnText(label, width)),
    ["2", "ch…ea.jpg", "chelsea.jpg"],
  );
  assert.equal(columnText(["30", ""], 120), "30");
});

test("colours of states are muted in the dark theme too, so that no cell glares", () => {
  for (const code of Object.values(CODE)) {
    const rgb = shadeOf("dark", code, LEVELS - 1);
    assert.ok(Math.max(...rgb) <= 160, `${code}: ${rgb}`);
    assert.ok(Math.max(...rgb) - Math.min(...rgb) <= 90, `${code}: ${rgb}`);
  }
});
