// @ts-check
/** Shortens long names, which often differ only at their end. */

/** The longest name that is shown in full in headings and captions, characters. */
const LONGEST = 36;

/**
 * A name with its middle left out if it is long; more is kept of the end than of the beginning.
 * @param {string} name @param {number} most characters
 */
export function cutMiddle(name, most = LONGEST) {
  const letters = [...name];
  if (letters.length <= most) return name;
  const head = Math.floor((most - 1) * 0.4);
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}
