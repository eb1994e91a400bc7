// @ts-check
/** Whether a run is still being written, and how old the list of its steps is. */

/** @typedef {import("../data/answers.js").Layer} Layer */

/** A run whose newest record is younger is fresh, s. */
const FRESH = 600;
/** Longer pauses are expected of a run that logs rarely: this many times its usual interval. */
const PAUSES = 3;
const MOST = 6 * 3600;
/** An older list of steps is not called the newest, even while live. */
const CURRENT_MS = 30000;

/** Wall time of the newest kept record, s; -Infinity if there is none. @param {Layer[]} layers */
export function newestTime(layers) {
  return layers.reduce(
    (most, { wall_times: at }) => Math.max(most, at[at.length - 1] ?? most),
    -Infinity,
  );
}

/**
 * True if the run was written a short time ago, so that more steps are to be expected.
 * @param {Layer[]} layers @param {number} now s since 1970
 */
export function isFresh(layers, now) {
  const newest = newestTime(layers);
  const longest = layers.reduce((most, { wall_times: at, steps_written: written }) => {
    const usual = written > 1 ? (at[at.length - 1] - at[0]) / (written - 1) : 0;
    return Math.max(most, usual || 0);
  }, 0);
  return now - newest < Math.min(MOST, Math.max(FRESH, PAUSES * longest));
}

/**
 * What is said behind a claim about all steps, if they are not looked for continuously.
 * @param {number|null} listedAt time of the list of steps, ms @param {boolean} live
 * @param {number} now ms
 */
export function asOf(listedAt, live, now) {
  if (listedAt === null) return "";
  if (live && now - listedAt < CURRENT_MS) return "";
  const date = new Date(listedAt);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  return ` as of ${time}`;
}
