// @ts-check
/** Finds the kept step for a requested one; lists of steps are ascending. */

/**
 * Index of the last step that is not after the requested one, otherwise 0; -1 if there are none.
 * @param {readonly number[]} steps @param {number|null} asked null for the newest
 */
export function indexOf(steps, asked) {
  if (asked === null) return steps.length - 1;
  let low = 0;
  let high = steps.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= asked) low = middle + 1;
    else high = middle;
  }
  return Math.max(low - 1, Math.min(0, steps.length - 1));
}

/**
 * The index nearest to one in a list; 0 in an empty one.
 * @param {number} i @param {number} count
 */
export const within = (i, count) => Math.max(0, Math.min(count - 1, i));

/**
 * The kept step nearest to a position on an axis.
 * @param {readonly number[]} steps @param {number} at
 */
export function nearest(steps, at) {
  const below = indexOf(steps, at);
  if (below < 0) return null;
  const above = Math.min(below + 1, steps.length - 1);
  return at - steps[below] <= steps[above] - at ? steps[below] : steps[above];
}

/**
 * The kept step `by` places away; null at the newest.
 * @param {readonly number[]} steps @param {number|null} from @param {number} by
 */
export function walk(steps, from, by) {
  const to = Math.max(0, indexOf(steps, from) + by);
  return to >= steps.length - 1 ? null : steps[to];
}

/**
 * Indices to prefetch, mostly ahead.
 * @param {number} count @param {number} index @param {number} direction @param {number} reach
 */
export function neighbours(count, index, direction, reach) {
  const indices = [];
  const forward = direction < 0 ? -1 : 1;
  for (let away = 1; away <= reach; away += 1) {
    indices.push(index + away * forward);
    if (away <= reach / 2) indices.push(index - away * forward);
  }
  return indices.filter((i) => i >= 0 && i < count);
}

/**
 * How many of the logged steps are kept, in words. @param {number} kept @param {number} written
 * @param {string} noun of one of them
 */
export function keptText(kept, written, noun = "logged step") {
  const total = Math.max(kept, written);
  if (total === 0) return "no step logged yet";
  return kept === total
    ? `all ${total} ${noun}${total === 1 ? "" : "s"} kept`
    : `${kept} of ${total} ${noun}s kept`;
}

/**
 * The first kept step that is not before another; the last if there is none.
 * @param {number[]} steps @param {number} step
 */
export function keptFrom(steps, step) {
  return steps.find((each) => each >= step) ?? steps[steps.length - 1];
}
