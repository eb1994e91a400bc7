// @ts-check
/** How several film strips share the window: below each other, or also beside each other. */

/** @typedef {import("./film_layout.js").FilmLayout} FilmLayout */

/** Height of a strip's heading, and the least height of a strip with it, CSS px. */
const STRIP_HEADING = 24;
const LEAST_HEIGHT = 220;

/**
 * How many strips are beside each other. They are below each other, so that equal steps are, unless
 * that leaves half of the width empty (or two thirds, for three), and beside each other their frames
 * are larger or, at a fixed size, less is scrolled.
 * @param {number} count strips
 * @param {{width: number, height: number}} window for all strips, CSS px
 * @param {(width: number, height: number) => FilmLayout} layoutIn of the widest strip, in a pane
 * @returns {number} 1 to `count`
 */
export function stripsAcross(count, window, layoutIn) {
  const laidOut = (/** @type {number} */ across) => {
    const each = window.height / Math.ceil(count / across);
    const height = Math.max(each, Math.min(LEAST_HEIGHT, window.height)) - STRIP_HEADING;
    const of = layoutIn(window.width / across, height);
    return { of, hidden: Math.max(0, of.height - height) };
  };
  const below = laidOut(1);
  let best = { across: 1, tile: below.of.tileWidth, hidden: below.hidden };
  for (let across = 2; across <= count; across += 1) {
    if (across * below.of.width > window.width) break;
    const { of, hidden } = laidOut(across);
    const isLarger = of.tileWidth > best.tile;
    if (isLarger || (of.tileWidth === best.tile && hidden < best.hidden)) {
      best = { across, tile: of.tileWidth, hidden };
    }
  }
  return best.across;
}
