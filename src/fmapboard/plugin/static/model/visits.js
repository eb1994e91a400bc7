// @ts-check
/** Which changes of the state the browser's Back button undoes. */

/** @import {How, State} from "./model.js" */

/** Fields that make a new history entry; a change of step, channel or scale makes none. */
const PLACE = Object.freeze(/** @type {const} */ (["view", "run", "layer"]));

/** @param {State} a @param {State} b */
function isSamePlace(a, b) {
  return PLACE.every((field) => a[field] === b[field]);
}

export class Visits {
  constructor() {
    /** The next address that is written gets an entry of its own in the history. */
    this.isNew = false;
    this.isWalking = false;
    /**
     * Where the noted change began; null if it gets an entry wherever it ends.
     * @type {State|null}
     */
    this.from = null;
  }

  /**
   * Notes a change; layers passed one after the other share one entry. True if the address of
   * `before` must be written first: Back leads there.
   * @param {State} before @param {State} after @param {How} how
   */
  note(before, after, how) {
    if (how !== "visit" && isSamePlace(before, after)) return false;
    const goesOn = how === "walk" && this.isWalking;
    this.isWalking = how === "walk";
    if (how === "visit") this.from = null;
    if (goesOn || this.isNew) return false;
    this.isNew = true;
    this.from = how === "visit" ? null : before;
    return true;
  }

  /**
   * True once after a change that is a place of its own. Several keys can be pressed before the
   * address is written: if they led back to where they began, that was none, and the next one is.
   * @param {State} now the state whose address is written
   */
  take(now) {
    const { isNew, from } = this;
    this.isNew = false;
    if (!isNew || !from || !isSamePlace(from, now)) return isNew;
    this.isWalking = false;
    return false;
  }

  /** Ends a walk: the browser has gone to another entry of its history. */
  leave() {
    this.isNew = false;
    this.isWalking = false;
  }
}
