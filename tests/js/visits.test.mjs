// @ts-check
/** What the Back button undoes. */

import assert from "node:assert/strict";
import test from "node:test";

import { START } from "../../src/fmapboard/plugin/static/model/state.js";
import { Visits } from "../../src/fmapboard/plugin/static/model/visits.js";

test("another page, run or layer is a place of its own; a step or a channel is not", () => {
  const visits = new Visits();
  for (const patch of [{ step: 3 }, { channel: 1 }, { tile: 64 }]) {
    const now = { ...START, ...patch };
    assert.equal(visits.note(START, now, "auto"), false);
    assert.equal(visits.take(now), false);
  }
  for (const patch of [{ run: "b" }, { layer: "x" }, { view: /** @type {const} */ ("maps") }]) {
    const now = { ...START, ...patch };
    assert.equal(visits.note(START, now, "auto"), true);
    assert.deepEqual([visits.take(now), visits.take(now)], [true, false]);
  }
  assert.equal(visits.note(START, { ...START, step: 3 }, "visit"), true);
  assert.equal(visits.take({ ...START, step: 3 }), true);
});

test(
  "two changes before the address is written are one visit, which leaves the first " + "place",
  () => {
    const visits = new Visits();
    const then = { ...START, layer: "x" };
    assert.equal(visits.note(START, then, "auto"), true);
    assert.equal(visits.note(then, { ...then, layer: "y" }, "auto"), false);
    assert.equal(visits.take({ ...then, layer: "y" }), true);
  },
);

test(
  "a walk back to its first place before the address is written is no visit, the next one " + "is",
  () => {
    const visits = new Visits();
    const at = (/** @type {string} */ layer) => ({ ...START, layer });
    visits.note(at("a"), at("b"), "walk");
    visits.note(at("b"), at("a"), "walk");
    assert.equal(visits.take(at("a")), false);
    assert.equal(visits.note(at("a"), at("b"), "walk"), true);
    assert.equal(visits.take(at("b")), true);
  },
);

test("a walk that begins after the Back button is a visit of its own", () => {
  const visits = new Visits();
  const at = (/** @type {string} */ layer) => ({ ...START, layer });
  visits.note(at("a"), at("b"), "walk");
  visits.take(at("b"));
  visits.leave();
  assert.equal(visits.note(at("a"), at("b"), "walk"), true);
});

test("layers passed one after the other share an entry, until another visit", () => {
  const visits = new Visits();
  const at = (/** @type {string} */ layer) => ({ ...START, layer });
  assert.equal(visits.note(at("a"), at("b"), "walk"), true);
  visits.take(at("b"));
  assert.equal(visits.note(at("b"), at("c"), "walk"), false);
  assert.equal(visits.take(at("c")), false);
  assert.equal(visits.note(at("c"), at("d"), "auto"), true);
  visits.take(at("d"));
  assert.equal(visits.note(at("d"), at("e"), "walk"), true);
});
