// @ts-check
/** What the Back button undoes. */

import assert from "node:assert/strict";
import test from "node:test";

import { START } from "../../src/fmapboard/plugin/static/state/state.js";
import { Visits } from "../../src/fmapboard/plugin/static/state/visits.js";

test("another page, run or layer is a place of its own; a step or a channel is not", () => {
  const visits = new Visits();
  for (const patch of [{ step: 3 }, { channel: 1 }, { tile: 64 }]) {
    assert.equal(visits.note(START, { ...START, ...patch }, "auto"), false);
    assert.equal(visits.take(), false);
  }
  for (const patch of [{ run: "b" }, { layer: "x" }, { view: /** @type {const} */ ("maps") }]) {
    assert.equal(visits.note(START, { ...START, ...patch }, "auto"), true);
    assert.deepEqual([visits.take(), visits.take()], [true, false]);
  }
  assert.equal(visits.note(START, { ...START, step: 3 }, "visit"), true);
});

test("two changes before the address is written are one visit, which leaves the first place", () => {
  const visits = new Visits();
  const then = { ...START, layer: "x" };
  assert.equal(visits.note(START, then, "auto"), true);
  assert.equal(visits.note(then, { ...then, layer: "y" }, "auto"), false);
  assert.equal(visits.take(), true);
});

test("layers passed one after the other share an entry, until another visit", () => {
  const visits = new Visits();
  const at = (/** @type {string} */ layer) => ({ ...START, layer });
  assert.equal(visits.note(at("a"), at("b"), "walk"), true);
  visits.take();
  assert.equal(visits.note(at("b"), at("c"), "walk"), false);
  assert.equal(visits.take(), false);
  assert.equal(visits.note(at("c"), at("d"), "auto"), true);
  visits.take();
  assert.equal(visits.note(at("d"), at("e"), "walk"), true);
});
