// @ts-check
/** A cache bounded in bytes: what was not asked for the longest goes first. */

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
    this.held.set(key, entry); // a Map remembers the order of insertion: now the newest
    return entry.value;
  }

  /** @param {string} key */
  has(key) {
    return this.held.has(key);
  }

  /** Keeps at least the newest entry, however large. @param {string} key @param {V} value @param {number} bytes */
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
