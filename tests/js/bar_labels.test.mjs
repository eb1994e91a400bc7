// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { barLabels } from "../../src/fmapboard/plugin/static/picture/captions.js";
import { valueRange } from "../../src/fmapboard/plugin/static/server/decode.js";

const WIDE = 7;
/** @param {string} text */
const widthOf = (text) => text.length * WIDE;
/** @param {number} lo @param {number} hi @param {number} width */
const labels = (lo, hi, width) => barLabels(lo, hi, width, widthOf);
/** @param {number} lo @param {number} hi @param {number} width */
const texts = (lo, hi, width) => labels(lo, hi, width).map(({ text }) => text);

test("both ends and round values between them are labelled", () => {
  assert.deepEqual(texts(-1, 3, 400), ["−1", "0", "1", "2", "3"]);
  assert.deepEqual(
    labels(-1, 3, 400).map(({ end }) => end),
    [true, false, false, false, true],
  );
});

test("no two labels touch, and none leaves the bar", () => {
  const ends = [-12345.678, -0.000123, 0, 0.000456, 0.5, 99.99, 123456];
  for (const lo of ends) {
    for (const hi of ends) {
      for (const width of [60, 120, 180, 320]) {
        const all = labels(lo, hi, width);
        all.forEach(({ text, left }, i) => {
          const right = left + widthOf(text);
          assert.ok(left >= 0 && (all.length === 1 || right <= width + 1e-9), `${lo} ${hi}`);
          const next = all[i + 1];
          if (next) assert.ok(right < next.left, `${lo} ${hi} ${width}: ${text} ${next.text}`);
        });
      }
    }
  }
});

test("a narrow bar has two digits, then one label with both ends", () => {
  assert.deepEqual(texts(-0.12345, 0.6789, 100), ["−0.123", "0.679"]);
  assert.deepEqual(texts(-0.12345, 0.6789, 80), ["−0.12", "0.68"]);
  assert.deepEqual(texts(-0.12345, 0.6789, 60), ["−0.12 … 0.68"]);
});

test("a bar of one value or of none says so", () => {
  assert.deepEqual(texts(2, 2, 200), ["2"]);
  assert.deepEqual(texts(NaN, NaN, 200), ["no finite value"]);
});

test("a map on a scale with 0 in the middle has its own least and largest value below it", () => {
  const planes = { channels: 1, height: 1, width: 3, marks: null, coarse: 1 };
  const levels = Uint8Array.from([0, 100, 174]);
  const ends = { lo: Float32Array.of(-0.0405), hi: Float32Array.of(0.0405) };
  const [lo, hi] = valueRange({ planes: { ...planes, levels }, ...ends }, 0);
  // The end of the scale is exact, the other one to 0.0003.
  assert.deepEqual([lo.toFixed(4), hi.toFixed(4)], ["-0.0405", "0.0150"]);
  const near = Uint8Array.from([0, 100, 128]); // 128 is the level of 0, and of what is near it
  assert.equal(valueRange({ planes: { ...planes, levels: near }, ...ends }, 0)[1], 0);
  const own = { lo: Float32Array.of(-1), hi: Float32Array.of(2) };
  assert.deepEqual(valueRange({ planes: { ...planes, levels }, ...own }, 0), [-1, 2]);
});
