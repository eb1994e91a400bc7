// @ts-check
/** Which kept step stands for the one asked for; all lists of steps ascend. */

/**
 * Index of the last step that is not after the one asked for, else of the first; -1 for no steps.
 * @param {readonly number[]} steps @param {number|null} asked null asks for the newest
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

/** The kept step nearest to a place on an axis. @param {readonly number[]} steps @param {number} at */
export function nearest(steps, at) {
  const below = indexOf(steps, at);
  if (below < 0) return null;
  const above = Math.min(below + 1, steps.length - 1);
  return at - steps[below] <= steps[above] - at ? steps[below] : steps[above];
}

/**
 * Walk along the kept steps; past the last one is null: from there on the newest is followed.
 * @param {readonly number[]} steps @param {number|null} from @param {number} by
 */
export function walk(steps, from, by) {
  const to = Math.max(0, indexOf(steps, from) + by);
  return to >= steps.length - 1 ? null : steps[to];
}

/**
 * The steps around an index worth having next: first the way the person goes.
 * @param {number} count @param {number} index @param {number} direction @param {number} reach
 */
export function neighbours(count, index, direction, reach) {
  const wanted = [];
  const forward = direction < 0 ? -1 : 1;
  for (let away = 1; away <= reach; away += 1) {
    wanted.push(index + away * forward);
    if (away <= reach / 2) wanted.push(index - away * forward);
  }
  return wanted.filter((i) => i >= 0 && i < count);
}

/** What is kept of what was logged, in words. @param {number} kept @param {number} written */
export function keptText(kept, written) {
  const total = Math.max(kept, written);
  if (total === 0) return "no step logged yet";
  return kept === total
    ? `all ${total} logged step${total === 1 ? "" : "s"} kept`
    : `${kept} of ${total} logged steps kept`;
}
