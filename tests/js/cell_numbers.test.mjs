// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { numbersOf } from "../../src/fmapboard/plugin/static/model/health_states.js";
import { Cache } from "../../src/fmapboard/plugin/static/server/cache.js";
import { LAYER } from "./fixtures.mjs";

/** @typedef {import("../../src/fmapboard/plugin/static/server/server.js").Health} Health */

test(
  "numbers that the answer does not have are requested once per step, and errors are " + "said",
  async (t) => {
    /** @type {string[]} */
    const asked = [];
    t.mock.method(globalThis, "fetch", async (/** @type {URL} */ url) => {
      asked.push(url.search);
      if (url.search.includes("step=10&"))
        return new Response('{"error": "gone"}', { status: 404 });
      const arrays = { minimum: { offset: 0, shape: [3] } };
      const codes = { offset: 12, shape: [3] };
      const facts = { steps: [0, -10, 0], keys: [null, null, null], arrays, codes };
      const text = new TextEncoder().encode(JSON.stringify(facts));
      const head = new Uint8Array(Uint32Array.of(text.length).buffer);
      return new Response(new Blob([head, text, Float32Array.of(5, 6, 7), Uint8Array.of(1, 1, 1)]));
    });
    const of = /** @type {Health} */ (
      /** @type {unknown} */ ({
        run: "a",
        steps: [0, 10],
        wall_times: [1000, 1001],
        layers: [LAYER, LAYER, LAYER],
        arrays: {},
      })
    );
    const cache = new Cache(() => {});
    const pass = { most: 1, changed: () => {} };
    const numbers = (/** @type {number} */ at) => numbersOf(cache, pass, of, at);
    assert.equal(numbers(1), "numbers: loading …");
    await cache.idle(pass);
    for (const [at, value] of [
      [0, 5],
      [1, NaN], // of an earlier step
      [2, 7],
    ]) {
      const known = numbers(at);
      assert.ok(typeof known !== "string");
      assert.deepEqual([known("minimum"), known("dead")], [value, NaN]);
    }
    assert.deepEqual(asked, ["?run=a&step=0&ts=1000"]);
    numbers(3);
    await cache.idle(pass);
    assert.equal(numbers(4), "gone (HTTP 404)");
    cache.retry();
    assert.equal(numbers(4), "numbers: loading …");
    await cache.idle(pass);
  },
);
