// @ts-check
/** Answers by question: asked once, kept within a bound, stopped when nobody waits any more. */

import { Lru } from "./lru.js";

/**
 * @typedef {object} Entry
 * @property {any} value undefined until the first answer
 * @property {Error|null} error
 * @property {number} epoch which reload it belongs to
 * @property {boolean} loading
 */

const LIMIT = 256 * 1024 * 1024;

export class Store {
  /** @param {(prefetched: boolean) => void} changed an answer came; nobody waited for a prefetched one @param {number} limit bytes */
  constructor(changed, limit = LIMIT) {
    this.changed = changed;
    /** @type {Lru<Entry>} */
    this.kept = new Lru(limit);
    /** @type {Map<string, {entry: Entry, controller: AbortController, wanted: boolean, prefetch: boolean}>} */
    this.pending = new Map();
    this.requests = 0;
  }

  /** From here to `end`, what is got is wanted. */
  begin() {
    for (const question of this.pending.values()) question.wanted = false;
  }

  /** Stops what was not asked for since `begin`. */
  end() {
    for (const [key, question] of this.pending) {
      if (question.wanted || question.prefetch) continue;
      question.controller.abort();
      this.pending.delete(key);
    }
  }

  /**
   * What is known now; asks where nothing is, or where what is known is of an earlier epoch.
   * @param {string} key
   * @param {(signal: AbortSignal) => Promise<any>} load
   * @param {{epoch?: number, bytes?: (value: any) => number, prefetch?: boolean}} how
   * @returns {Entry}
   */
  get(key, load, { epoch = 0, bytes = () => 1000, prefetch = false } = {}) {
    const waiting = this.pending.get(key);
    if (waiting) {
      waiting.wanted = true;
      if (!prefetch) waiting.prefetch = false;
      return waiting.entry;
    }
    const known = this.kept.get(key);
    if (known && known.epoch >= epoch) return known;
    const entry = { value: known?.value, error: null, epoch, loading: true };
    const controller = new AbortController();
    this.pending.set(key, { entry, controller, wanted: true, prefetch });
    this.requests += 1;
    load(controller.signal).then(
      (value) => this.settle(key, entry, { ...entry, value, error: null, loading: false }, bytes(value)),
      (error) => this.settle(key, entry, { ...entry, error, loading: false }, 1000),
    );
    return entry;
  }

  /** @param {string} key @param {Entry} asked @param {Entry} settled @param {number} bytes */
  settle(key, asked, settled, bytes) {
    const question = this.pending.get(key);
    if (question?.entry !== asked) return; // nobody asks this any more
    this.pending.delete(key);
    this.kept.set(key, settled, bytes);
    this.changed(question.prefetch);
  }

  /** Forget errors, so that what failed is asked again. */
  retry() {
    for (const [key, { value }] of [...this.kept.held]) if (value.error) this.kept.delete(key);
  }

  /** @param {string} key */
  has(key) {
    return this.kept.has(key) || this.pending.has(key);
  }

  /** Is anything on its way that a person waits for? */
  get busy() {
    return [...this.pending.values()].some((question) => !question.prefetch);
  }
}
