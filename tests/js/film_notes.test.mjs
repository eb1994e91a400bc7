// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  goText,
  inputNote,
  onsetText,
  scaleNote,
} from "../../src/fmapboard/plugin/static/view/film.js";
import { LAYER } from "./fixtures.mjs";

const HISTORY = { steps: [0, 10, 20, 30], arrays: {} };
const ONSET = /** @type {const} */ ({ channel: 2, kind: "large", word: "large", count: 3 });
const OF_TRAINING = /** @type {const} */ ({ words: {}, unit: "step", layer: LAYER });
/** A report with pictures of two of four steps. */
const REPORT = { history: HISTORY, steps: [0, 20], ...OF_TRAINING };

test("a fault of a head names the head, one of an MLP its unit", () => {
  const of = (/** @type {string} */ unit) =>
    onsetText({ ...ONSET, step: 0, after: null }, { ...REPORT, layer: { ...LAYER, unit } });
  assert.match(of("head"), /^head 2: large/);
  assert.match(of("unit"), /^MLP unit 2: large/);
});

test("a fault at a step without pictures leads to the next one, or the last, and names it", () => {
  const of = (/** @type {number} */ step, /** @type {number} */ after) =>
    onsetText({ ...ONSET, step, after }, REPORT);
  const first = "channel 2: large first at step";
  assert.equal(of(10, 0), `${first} 10 (not at 0), at 3 of 4 logged steps`);
  assert.equal(goText(10, REPORT), "Go to step 20, the next kept one: step 10 has no pictures");
  assert.equal(goText(30, REPORT), "Go to step 20, the last kept one: step 30 has no pictures");
  assert.equal(of(20, 10), `${first} 20 (not at 10), at 3 of 4 logged steps`);
  const all = { history: HISTORY, steps: HISTORY.steps, ...OF_TRAINING };
  assert.equal(
    onsetText({ ...ONSET, step: 10, after: 0 }, all),
    `${first} 10 (not at 0), at 3 of 4 kept steps`,
  );
});

test("one sentence says which steps the scale is of, or which it leaves out", () => {
  const note = (/** @type {number[]} */ steps, /** @type {number[][]} */ ...leftOut) => {
    const film = {
      history: HISTORY,
      steps,
      hasMaps: true,
      isLocked: true,
      layer: LAYER,
      locked: { lo: [0], hi: [1] },
      leftOut: [[4, 4], ...leftOut],
      sharing: "",
      of: { letter: "" },
      how: { scale: "channel", zeroCentred: false },
      order: [0, 1],
      unit: "step",
    };
    return scaleNote(/** @type {any} */ (film));
  };
  assert.equal(note([0, 20]), "One scale for all 4 logged steps.");
  assert.equal(note(HISTORY.steps), "One scale for all 4 kept steps.");
  assert.equal(note([0, 20], [3]), "One scale, without 3 steps (large).");
  assert.equal(note([0, 20], [], [1]), "One scale, without 1 step (non-finite).");
  const most = "One scale, without 4 steps (1 large, 2 dead, 1 ▲ outlying).";
  assert.equal(note([0, 20], [1], [], [1, 2], [1]), most);
});

/** A run of `visualize`, whose last image has no picture. */
const IMAGES = /** @type {const} */ ({
  layer: LAYER,
  history: HISTORY,
  steps: [0, 10, 20],
  words: { 0: "image 0 (a.jpg)", 10: "image 10 (b.jpg)", 20: "image 20 (c.jpg)", 30: "image 30" },
  unit: "image",
});

test("images are called by their names, and are not before or after each other", () => {
  const images = /** @type {any} */ (IMAGES);
  assert.equal(
    onsetText({ ...ONSET, step: 10, after: 0 }, images),
    "channel 2: large at 3 of 4 logged images, the first is image 10 (b.jpg)",
  );
  assert.equal(goText(10, images), "Go to image 10 (b.jpg)");
  assert.equal(
    goText(30, images),
    "Go to image 20 (c.jpg), the last kept one: image 30 has no pictures",
  );
  assert.equal(inputNote(images), "One image per frame, the same weights.");
});
