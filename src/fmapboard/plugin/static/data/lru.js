// @ts-check
/** A least recently used cache, bounded in bytes. */

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
