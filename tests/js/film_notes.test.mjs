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

test("steps of the scale are logged ones where not all of them have pictures", () => {
  const note = (/** @type {number[]} */ steps, leftOut = 0, faulty = new Map()) => {
    const film = {
      history: HISTORY,
      steps,
      hasMaps: true,
      isLocked: true,
      layer: LAYER,
      locked: { lo: [0], hi: [1] },
      inFilm: { large: new Map([[0, leftOut]]), beyond: new Map(), faulty },
      sharing: "",
      how: { scale: "channel", zeroCentred: false },
      order: [0],
      unit: "step",
    };
    return scaleNote(/** @type {any} */ (film));
  };
  assert.equal(note([0, 20]), "Scale locked over all 4 logged steps.");
  assert.equal(
    note([0, 20], 3),
    "Scale locked over all 4 logged steps. Without 3 steps with large values: " +
      "there, colours stop at both ends.",
  );
  assert.equal(note(HISTORY.steps), "Scale locked over all 4 kept steps.");
  assert.equal(
    note(HISTORY.steps, 0, new Map([[0, 2]])),
    "Scale locked over all 4 kept steps. Without frames that are dead or not " +
      "finite: there, colours stop at both ends.",
  );
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
