// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { Cache } from "../../src/fmapboard/plugin/static/server/cache.js";

/**
 * @typedef {{key: string, signal: AbortSignal, answer: (value: unknown) => void, fail: (why: Error)
 *   => void}} Sent
 */

/**
 * A cache whose requests are answered by hand, each answer of 40 bytes.
 * @param {number} limit bytes
 */
function byHand(limit = 100) {
  /** @type {Sent[]} */
  const sent = [];
  /** @type {boolean[]} */
  const changes = [];
  const cache = new Cache((prefetched) => changes.push(prefetched), limit);
  const few = { most: 2, changed: () => void changes.push(false) };
  const get = (/** @type {string} */ key, /** @type {object} */ how = {}) =>
    cache.get(
      key,
      (signal) => new Promise((answer, fail) => sent.push({ key, signal, answer, fail })),
      { bytes: () => 40, ...how },
    );
  const pass = (/** @type {string[]} */ keys, of = cache.main) => {
    cache.begin(of);
    for (const key of keys) get(key, { of });
    cache.end(of);
  };
  return { cache, few, get, pass, sent, changes, asked: () => sent.map(({ key }) => key) };
}
const turn = () => new Promise((done) => setImmediate(done));

test(
  "the least recently used answers are dropped above the limit, but not the " + "newest",
  async () => {
    const { cache, get, sent } = byHand();
    for (const [i, key] of ["a", "b", "c"].entries()) {
      get(key);
      sent[i].answer(key);
      await turn();
      cache.peek("a");
    }
    assert.deepEqual([...cache.kept.keys()], ["c", "a"]);
    get("huge", { bytes: () => 500 });
    sent[3].answer(1);
    await turn();
    assert.deepEqual([[...cache.kept.keys()], cache.bytes], [["huge"], 500]);
  },
);

test("a key is requested once, however often it is read", async () => {
  const { get, sent, changes } = byHand();
  get("a");
  get("a");
  sent[0].answer(7);
  await turn();
  assert.deepEqual([get("a").value, sent.length, changes], [7, 1, [false]]);
});

test("a request that is no longer needed is aborted, and its answer dropped", async () => {
  const { cache, pass, sent, changes } = byHand();
  pass(["old"]);
  pass(["now"]);
  assert.deepEqual(
    sent.map(({ signal }) => signal.aborted),
    [true, false],
  );
  sent[0].answer(1);
  await turn();
  assert.deepEqual([changes, cache.has("old")], [[], false]);
});

test("a prefetch is not aborted, and is not waited for until it is needed", () => {
  const { cache, get, pass, sent } = byHand();
  get("next", { prefetch: true });
  pass([]);
  assert.deepEqual(
    [sent[0].signal.aborted, cache.left(), cache.left(undefined, true)],
    [false, 0, 1],
  );
  pass(["next"]);
  assert.equal(cache.left(), 1);
});

test(
  "a reload returns the old answer until the new one arrives, and keeps it if that " + "fails",
  async () => {
    const { get, sent } = byHand();
    get("a", { epoch: 1 });
    sent[0].answer("old");
    await turn();
    assert.equal(get("a", { epoch: 2 }).value, "old");
    sent[1].answer("new");
    await turn();
    assert.equal(get("a", { epoch: 2 }).value, "new");
    get("a", { epoch: 3 });
    sent[2].fail(new Error("away"));
    await turn();
    assert.equal(get("a", { epoch: 3 }).value, "new");
  },
);

test("a pass sends few requests at a time, the most wanted first", async () => {
  const { cache, few, pass, sent, asked } = byHand();
  pass(["a", "b", "c"], few);
  assert.deepEqual(asked(), ["a", "b"]);
  pass(["d", "b", "c"], few);
  assert.deepEqual(
    [sent[0].signal.aborted, sent[1].signal.aborted, asked()],
    [true, false, ["a", "b", "d"]],
  );
  sent[1].answer("B");
  await turn();
  assert.deepEqual([asked().at(-1), cache.peek("b")?.value, cache.left(few)], ["c", "B", 2]);
  assert.equal(cache.left(), 0);
});

test("an error is kept until a retry, and does not block the others", async () => {
  const { cache, few, pass, sent, asked } = byHand();
  pass(["a", "b", "c"], few);
  sent[0].fail(new Error("gone"));
  await turn();
  pass(["a", "b", "c"], few);
  assert.deepEqual([cache.peek("a")?.error?.message, asked()], ["gone", ["a", "b", "c"]]);
  cache.retry();
  sent[1].answer("B");
  await turn();
  pass(["a", "c"], few);
  assert.deepEqual(asked(), ["a", "b", "c", "a"]);
});

test("idle resolves when a pass has been answered", async () => {
  const { cache, few, pass, sent } = byHand();
  pass(["a", "b"], few);
  let done = false;
  void cache.idle(few).then(() => (done = true));
  sent[0].answer("A");
  await turn();
  assert.equal(done, false);
  sent[1].fail(new Error("no"));
  await turn();
  assert.equal(done, true);
  await cache.idle(few);
});
