// @ts-check
/** Which changes of the state the browser's Back button undoes. */

/** @typedef {import("./state.js").State} State */
/** @typedef {"visit"|"walk"|"auto"} How a new entry, one shared with the next, or as `PLACE` says */

/** Fields that make a new history entry; a change of step, channel or scale makes none. */
const PLACE = Object.freeze(/** @type {const} */ (["view", "run", "layer"]));

export class Visits {
  constructor() {
    /** The next address that is written gets an entry of its own in the history. */
    this.isNew = false;
    this.isWalking = false;
  }

  /**
   * Notes a change that the user made. Layers passed one after the other share one entry.
   * @param {State} before @param {State} after @param {How} how
   * @returns {boolean} true if the address of `before` must be written first: Back leads there
   */
  note(before, after, how) {
    if (how !== "visit" && PLACE.every((field) => before[field] === after[field])) return false;
    const goesOn = how === "walk" && this.isWalking;
    this.isWalking = how === "walk";
    if (goesOn || this.isNew) return false;
    this.isNew = true;
    return true;
  }

  /** True once after a change that is a place of its own. */
  take() {
    const { isNew } = this;
    this.isNew = false;
    return isNew;
  }
}
