// @ts-check
/** Caches answers by key, shares requests in flight, and aborts those that are no longer needed. */

import { Lru } from "./lru.js";

/**
 * @template T
 * @typedef {object} Entry
 * @property {T|undefined} value undefined until the first answer
 * @property {Error|null} error
 * @property {number} epoch number of the reload that requested it
 * @property {boolean} loading
 */

/**
 * A request in flight.
 * @typedef {object} Pending
 * @property {Entry<unknown>} entry
 * @property {AbortController} controller
 * @property {boolean} needed asked for since the last `begin`
 * @property {boolean} prefetch requested ahead of time
 */

const LIMIT = 256 * 1024 * 1024;

export class Store {
  /**
   * @param {(prefetched: boolean) => void} changed called after each answer or error
   * @param {number} limit bytes
   */
  constructor(changed, limit = LIMIT) {
    this.changed = changed;
    /** @type {Lru<Entry<unknown>>} */
    this.kept = new Lru(limit);
    /** @type {Map<string, Pending>} */
    this.pending = new Map();
    this.requests = 0;
  }

  /** Starts a pass; `end` then aborts the requests that this pass did not ask for. */
  begin() {
    for (const request of this.pending.values()) request.needed = false;
  }

  /** Aborts requests that were not asked for since `begin`, except prefetches. */
  end() {
    for (const [key, request] of this.pending) {
      if (request.needed || request.prefetch) continue;
      request.controller.abort();
      this.pending.delete(key);
    }
  }

  /**
   * The newest known entry; starts a request if there is none, or only one of an earlier epoch.
   * @template T
   * @param {string} key @param {(signal: AbortSignal) => Promise<T>} load
   * @param {{epoch?: number, bytes?: (value: T) => number, prefetch?: boolean}} how
   * @returns {Entry<T>}
   */
  get(key, load, { epoch = 0, bytes = () => 1000, prefetch = false } = {}) {
    const waiting = this.pending.get(key);
    if (waiting) {
      waiting.needed = true;
      if (!prefetch) waiting.prefetch = false;
      return /** @type {Entry<T>} */ (waiting.entry);
    }
    const known = /** @type {Entry<T>|undefined} */ (this.kept.get(key));
    if (known && known.epoch >= epoch) return known;
    /** @type {Entry<T>} */
    const entry = { value: known?.value, error: null, epoch, loading: true };
    const controller = new AbortController();
    this.pending.set(key, { entry, controller, needed: true, prefetch });
    this.requests += 1;
    load(controller.signal).then(
      (value) =>
        this.settle(key, entry, { ...entry, value, error: null, loading: false }, bytes(value)),
      (error) => this.settle(key, entry, { ...entry, error, loading: false }, 1000),
    );
    return entry;
  }

  /**
   * Stores the outcome of a request.
   * @param {string} key @param {Entry<unknown>} asked @param {Entry<unknown>} settled
   * @param {number} bytes
   */
  settle(key, asked, settled, bytes) {
    const request = this.pending.get(key);
    if (request?.entry !== asked) return; // aborted or replaced in the meantime
    this.pending.delete(key);
    this.kept.set(key, settled, bytes);
    this.changed(request.prefetch);
  }

  /** Drops errors, so that failed requests are sent again. */
  retry() {
    for (const [key, { value }] of [...this.kept.held]) if (value.error) this.kept.delete(key);
  }

  /** True if the key is cached or requested. @param {string} key */
  has(key) {
    return this.kept.has(key) || this.pending.has(key);
  }

  /** True while a request is in flight that is not a prefetch. */
  get busy() {
    return [...this.pending.values()].some((request) => !request.prefetch);
  }
}
