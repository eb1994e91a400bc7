// @ts-check
/** Answers by key within a limit: requests in flight are shared, and aborted once not needed. */

/** @import {Entry, Pass, Pending} from "./server.js" */

/**
 * A function that is computed once per argument, an object or a name.
 * @template {object|string} K @template V @param {(of: K) => V} make @returns {(of: K) => V}
 */
export function once(make) {
  /** @type {[Map<unknown, V>, WeakMap<any, V>]} */
  const [names, objects] = [new Map(), new WeakMap()];
  return (of) => {
    const held = typeof of === "string" ? names : objects;
    if (!held.has(of)) held.set(of, make(of));
    return /** @type {V} */ (held.get(of));
  };
}

export class Cache {
  /** @param {Pass["changed"]} changed of the main pass @param {number} limit bytes */
  constructor(changed, limit = 384e6) {
    /** @type {Pass} */
    this.main = { most: Infinity, changed };
    this.limit = limit;
    this.bytes = 0;
    /**
     * The least recently used first.
     * @type {Map<string, {entry: Entry<unknown>, bytes: number}>}
     */
    this.kept = new Map();
    /** @type {Map<string, Pending>} */
    this.pending = new Map();
    /** @type {{of: Pass, done: () => void}[]} */
    this.idling = [];
  }

  /** Starts a pass; `end` then aborts the requests that this pass did not ask for. */
  begin(of = this.main) {
    for (const each of this.pending.values()) if (each.of === of) each.needed = false;
  }

  /** Aborts requests that were not asked for since `begin`, except prefetches; sends others. */
  end(of = this.main) {
    for (const [key, each] of this.pending) {
      if (each.of !== of || each.needed || each.prefetch) continue;
      each.sent?.abort();
      this.pending.delete(key);
    }
    this.goOn(of);
  }

  /**
   * The newest known entry; starts a request if there is none, or only one of an earlier epoch.
   * @template T @param {string} key @param {(signal: AbortSignal) => Promise<T>} load
   * @param {{of?: Pass, epoch?: number, bytes?: (value: T) => number, prefetch?: boolean}} how
   * @returns {Entry<T>}
   */
  get(key, load, { of = this.main, epoch = 0, bytes = () => 1000, prefetch = false } = {}) {
    const known = /** @type {Entry<T>|undefined} */ (this.peek(key));
    const waiting = this.pending.get(key);
    if (!waiting && known && known.epoch >= epoch) return known;
    /** @type {Entry<T>} */
    const entry = { value: known?.value, error: null, epoch, loading: true };
    const send = () => {
      asked.sent = new AbortController();
      const settle = (/** @type {Entry<T>} */ found, /** @type {number} */ size) => {
        if (this.pending.get(key) !== asked) return; // aborted or replaced in the meantime
        this.pending.delete(key);
        this.keep(key, { ...found, loading: false }, size);
        this.goOn(asked.of);
        asked.of.changed(asked.prefetch);
      };
      load(asked.sent.signal).then(
        (value) => settle({ ...entry, value }, bytes(value)),
        (error) => settle({ ...entry, error }, 1000),
      );
    };
    /** @type {Pending} */
    const asked = waiting ?? { of, entry, send, sent: null, needed: true, prefetch };
    Object.assign(asked, { of, needed: true, prefetch: asked.prefetch && prefetch });
    this.pending.delete(key);
    this.pending.set(key, asked); // behind those that were asked for before it
    if (!asked.sent && of.most === Infinity) send();
    return /** @type {Entry<T>} */ (asked.entry);
  }

  /** What is kept, which counts as used now. @param {string} key */
  peek(key) {
    const held = this.kept.get(key);
    if (held) this.kept.delete(key);
    if (held) this.kept.set(key, held);
    return held?.entry;
  }

  /**
   * Drops the least recently used entries above the limit.
   * @param {string} key @param {Entry<unknown>} entry @param {number} bytes
   */
  keep(key, entry, bytes) {
    this.drop(key);
    this.kept.set(key, { entry, bytes });
    this.bytes += bytes;
    for (const oldest of this.kept.keys()) {
      if (this.bytes <= this.limit || this.kept.size === 1) break;
      this.drop(oldest);
    }
  }

  /** @param {string} key */
  drop(key) {
    this.bytes -= this.kept.get(key)?.bytes ?? 0;
    this.kept.delete(key);
  }

  /** Sends what waits, and tells those who wait for everything. @param {Pass} of */
  goOn(of) {
    const own = [...this.pending.values()].filter((each) => each.of === of);
    const free = of.most - own.filter(({ sent }) => sent).length;
    for (const each of own.filter(({ sent }) => !sent).slice(0, Math.max(0, free))) each.send();
    if (own.length) return;
    const isOver = (/** @type {{of: Pass}} */ each) => each.of === of;
    for (const { done } of this.idling.filter(isOver)) done();
    this.idling = this.idling.filter((each) => !isOver(each));
  }

  /**
   * Resolves when nothing of a pass is waited for any more.
   * @param {Pass} of
   * @returns {Promise<void>}
   */
  idle(of) {
    return new Promise((done) => {
      this.idling.push({ of, done });
      this.goOn(of);
    });
  }

  /** Drops errors, so that failed requests are sent again. */
  retry() {
    for (const [key, { entry }] of [...this.kept]) if (entry.error) this.drop(key);
  }

  /** True if the key is cached or requested. @param {string} key */
  has(key) {
    return this.kept.has(key) || this.pending.has(key);
  }

  /** Number of answers that are waited for. @param {boolean} all prefetches are counted too */
  left(of = this.main, all = false) {
    const own = [...this.pending.values()].filter((each) => each.of === of);
    return own.filter(({ prefetch }) => all || !prefetch).length;
  }
}
