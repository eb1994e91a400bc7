// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lazy } from "../../src/fmapboard/plugin/static/server/cache.js";

/** @typedef {{question: string, signal: AbortSignal, answer: (value: string) => void, fail: (why: Error) => void}} Sent */

/** A loader whose answers are given by hand. @param {number} limit bytes */
function byHand(limit = 100) {
  /** @type {Sent[]} */
  const sent = [];
  let changes = 0;
  const lazy = new Lazy({
    key: (/** @type {string} */ question) => question,
    load: (question, signal) =>
      new Promise((answer, fail) => sent.push({ question, signal, answer, fail })),
    bytes: () => 40,
    changed: () => (changes += 1),
    most: 2,
    limit,
  });
  const asked = () => sent.map((each) => each.question);
  return { lazy, sent, asked, changes: () => changes };
}

const turn = () => new Promise((done) => setTimeout(done, 0));

test("few requests at a time, the most wanted first", async () => {
  const { lazy, sent, asked, changes } = byHand();
  lazy.want(["a", "b", "c"]);
  assert.deepEqual(asked(), ["a", "b"]);
  sent[0].answer("A");
  await turn();
  assert.deepEqual([asked(), lazy.get("a"), lazy.left, changes()], [["a", "b", "c"], "A", 2, 1]);
});

test("a request that is no longer wanted is aborted, and its answer dropped", async () => {
  const { lazy, sent, asked } = byHand();
  lazy.want(["a", "b"]);
  lazy.want(["b", "c"]);
  assert.deepEqual([sent[0].signal.aborted, sent[1].signal.aborted], [true, false]);
  assert.deepEqual(asked(), ["a", "b", "c"]);
  sent[0].answer("A");
  await turn();
  assert.equal(lazy.get("a"), undefined);
});

test("an error is kept until a retry, and does not block the others", async () => {
  const { lazy, sent, asked } = byHand();
  lazy.want(["a", "b", "c"]);
  sent[0].fail(new Error("gone"));
  await turn();
  lazy.want(["a", "b", "c"]);
  assert.deepEqual([lazy.error("a")?.message, asked()], ["gone", ["a", "b", "c"]]);
  lazy.retry();
  lazy.want(["a"]);
  assert.deepEqual(asked(), ["a", "b", "c", "a"]);
});

test("the least recently used answers are dropped beyond the limit", async () => {
  const { lazy, sent } = byHand(100);
  for (const [i, question] of ["a", "b", "c"].entries()) {
    lazy.want([question]);
    sent[i].answer(question);
    await turn();
  }
  assert.deepEqual([lazy.get("a"), lazy.get("b"), lazy.get("c")], [undefined, "b", "c"]);
});

test("idle resolves when everything has been answered", async () => {
  const { lazy, sent } = byHand();
  lazy.want(["a", "b"]);
  let done = false;
  void lazy.idle().then(() => (done = true));
  sent[0].answer("A");
  await turn();
  assert.equal(done, false);
  sent[1].fail(new Error("no"));
  await turn();
  assert.equal(done, true);
});
