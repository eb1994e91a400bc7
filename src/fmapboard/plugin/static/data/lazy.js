// @ts-check
/** Loads many answers a few at a time, the most wanted first, and caches them within a limit. */

import { Lru } from "./lru.js";

/**
 * @template Q, T
 * @typedef {object} Loading
 * @property {(question: Q) => string} key
 * @property {(question: Q, signal: AbortSignal) => Promise<T>} load
 * @property {(value: T) => number} bytes
 * @property {() => void} changed called after each answer or error
 * @property {number} most requests in flight
 * @property {number} limit bytes
 */

/** @template Q, T */
export class Lazy {
  /** @param {Loading<Q, T>} how */
  constructor(how) {
    this.how = how;
    /** @type {Lru<T>} */
    this.kept = new Lru(how.limit);
    /** @type {Map<string, Error>} */
    this.errors = new Map();
    /** @type {Map<string, AbortController>} */
    this.pending = new Map();
    /** Questions that are waited for, the most wanted first. @type {Q[]} */
    this.wanted = [];
    /** @type {(() => void)[]} */
    this.waiting = [];
  }

  /** The cached answer, which counts as used now. @param {Q} question */
  get(question) {
    return this.kept.get(this.how.key(question));
  }

  /** Why there is no answer. @param {Q} question */
  error(question) {
    return this.errors.get(this.how.key(question));
  }

  /**
   * Requests what is missing in this order; requests in flight that are not asked for are aborted.
   * @param {Q[]} questions the most wanted first
   */
  want(questions) {
    const keys = new Set(questions.map(this.how.key));
    for (const [key, controller] of this.pending) {
      if (keys.has(key)) continue;
      controller.abort();
      this.pending.delete(key);
    }
    this.wanted = questions.filter((question) => {
      const key = this.how.key(question);
      return !this.kept.has(key) && !this.errors.has(key);
    });
    this.start();
    this.rest();
  }

  /** Tells those who wait for everything. */
  rest() {
    if (this.left) return;
    for (const done of this.waiting.splice(0)) done();
  }

  start() {
    for (const question of this.wanted) {
      if (this.pending.size >= this.how.most) return;
      if (!this.pending.has(this.how.key(question))) void this.request(question);
    }
  }

  /** @param {Q} question */
  async request(question) {
    const key = this.how.key(question);
    const controller = new AbortController();
    this.pending.set(key, controller);
    try {
      const value = await this.how.load(question, controller.signal);
      if (this.pending.get(key) !== controller) return; // aborted or replaced in the meantime
      this.kept.set(key, value, this.how.bytes(value));
    } catch (error) {
      if (this.pending.get(key) !== controller) return;
      this.errors.set(key, /** @type {Error} */ (error));
    }
    this.pending.delete(key);
    this.wanted = this.wanted.filter((each) => this.how.key(each) !== key);
    this.start();
    this.how.changed();
    this.rest();
  }

  /** Resolves when nothing is waited for any more. @returns {Promise<void>} */
  idle() {
    if (!this.left) return Promise.resolve();
    return new Promise((done) => this.waiting.push(done));
  }

  /** Drops errors, so that failed requests can be sent again. */
  retry() {
    this.errors.clear();
  }

  /** Number of answers that are waited for. */
  get left() {
    return this.wanted.length;
  }
}
