// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { Lru } from "../../src/fmapboard/plugin/static/server/cache.js";
import { Store } from "../../src/fmapboard/plugin/static/server/cache.js";

/** A request that the test answers. */
function question() {
  /** @type {(value: unknown) => void} */ let answer = () => {};
  /** @type {(error: Error) => void} */ let fail = () => {};
  /** @type {AbortSignal|undefined} */ let signal;
  const promise = new Promise((resolve, reject) => ([answer, fail] = [resolve, reject]));
  const load = (/** @type {AbortSignal} */ given) => {
    signal = given;
    return promise;
  };
  return {
    load,
    answer: (/** @type {unknown} */ v) => answer(v),
    fail: (/** @type {Error} */ e) => fail(e),
    stopped: () => Boolean(signal?.aborted),
  };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("the cache evicts the least recently used entries above its limit", () => {
  const cache = new Lru(100);
  cache.set("a", 1, 40);
  cache.set("b", 2, 40);
  cache.get("a");
  cache.set("c", 3, 40);
  assert.deepEqual([...cache.held.keys()], ["a", "c"]);
  assert.equal(cache.bytes, 80);
  cache.set("huge", 4, 500);
  assert.deepEqual([...cache.held.keys()], ["huge"]);
  cache.set("huge", 5, 10);
  assert.equal(cache.bytes, 10);
});

test("a key is requested once, however often it is read", async () => {
  let drawn = 0;
  const store = new Store(() => (drawn += 1));
  const q = question();
  store.get("q", q.load);
  store.get("q", q.load);
  q.answer(7);
  await settled();
  assert.equal(store.get("q", q.load).value, 7);
  assert.deepEqual([store.requests, drawn], [1, 1]);
});

test("a request that is no longer needed is aborted, and its answer dropped", async () => {
  let drawn = 0;
  const store = new Store(() => (drawn += 1));
  const old = question();
  const now = question();
  store.begin();
  store.get("old", old.load);
  store.end();
  store.begin();
  store.get("now", now.load);
  store.end();
  assert.ok(old.stopped() && !now.stopped());
  old.answer(1);
  await settled();
  assert.equal(drawn, 0);
  assert.ok(!store.kept.has("old"));
});

test("a prefetch is not aborted and does not make the store busy", () => {
  const store = new Store(() => {});
  const q = question();
  store.get("next", q.load, { prefetch: true });
  store.begin();
  store.end();
  assert.ok(!q.stopped());
  assert.equal(store.busy, false);
  store.begin();
  store.get("next", q.load);
  assert.equal(store.busy, true);
});

test("a reload returns the old answer until the new one arrives", async () => {
  const store = new Store(() => {});
  const first = question();
  store.get("runs", first.load, { epoch: 1 });
  first.answer("old");
  await settled();
  const second = question();
  assert.equal(store.get("runs", second.load, { epoch: 2 }).value, "old");
  second.answer("new");
  await settled();
  assert.equal(store.get("runs", second.load, { epoch: 2 }).value, "new");
});

test("an error is returned, and requested again only after a retry", async () => {
  const store = new Store(() => {});
  const q = question();
  store.get("q", q.load);
  q.fail(new Error("gone"));
  await settled();
  assert.equal(store.get("q", q.load).error?.message, "gone");
  assert.equal(store.requests, 1);
  store.retry();
  const again = question();
  store.get("q", again.load);
  assert.equal(store.requests, 2);
});

test("a failed reload keeps the old answer", async () => {
  const store = new Store(() => {});
  const first = question();
  store.get("q", first.load, { epoch: 1 });
  first.answer("known");
  await settled();
  const second = question();
  store.get("q", second.load, { epoch: 2 });
  second.fail(new Error("away"));
  await settled();
  assert.equal(store.get("q", second.load, { epoch: 2 }).value, "known");
});
