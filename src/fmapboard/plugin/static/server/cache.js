// @ts-check
/** A least recently used cache, bounded in bytes. */

// A least recently used cache, bounded in bytes.

/** @template V */
export class Lru {
  /** @param {number} limit bytes */
  constructor(limit) {
    this.limit = limit;
    this.bytes = 0;
    /** @type {Map<string, {value: V, bytes: number}>} */
    this.held = new Map();
  }

  /** @param {string} key @returns {V|undefined} */
  get(key) {
    const entry = this.held.get(key);
    if (!entry) return undefined;
    this.held.delete(key);
    this.held.set(key, entry); // moves it to the end of the Map's order: most recently used
    return entry.value;
  }

  /** @param {string} key */
  has(key) {
    return this.held.has(key);
  }

  /**
   * Evicts the least recently used entries; keeps the newest however large it is.
   * @param {string} key @param {V} value @param {number} bytes
   */
  set(key, value, bytes) {
    this.delete(key);
    this.held.set(key, { value, bytes });
    this.bytes += bytes;
    for (const oldest of this.held.keys()) {
      if (this.bytes <= this.limit || this.held.size === 1) break;
      this.delete(oldest);
    }
  }

  /** @param {string} key */
  delete(key) {
    const entry = this.held.get(key);
    if (!entry) return;
    this.bytes -= entry.bytes;
    this.held.delete(key);
  }
}

// Caches answers by key, shares requests in flight, and aborts those that are no longer needed.

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

// Loads many answers a few at a time, the most wanted first, and caches them within a limit.

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
