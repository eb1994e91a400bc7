// @ts-check
/** Finds runs by parts of their names, and shortens names where they are alike. */

import { runText } from "./run_text.js";

/**
 * Runs whose names contain all words of a text, in any order and case.
 * @param {readonly string[]} runs @param {string} text @returns {string[]}
 */
export function search(runs, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const name = runText(run).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/**
 * A name of at most `most` characters, cut in the middle: long names of runs differ at the end.
 * @param {string} name @param {number} most
 */
export function middle(name, most) {
  const letters = Array.from(name);
  if (letters.length <= most) return name;
  const head = Math.max(1, Math.floor((most - 1) / 3));
  return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (most - 1 - head)).join("")}`;
}

/**
 * A name in two parts; the first one may be cut by the page, the second one is shown whole.
 * @param {string} name @param {number} end length of the second part @returns {[string, string]}
 */
export function parted(name, end) {
  const letters = Array.from(name);
  if (letters.length <= end + 4) return ["", name];
  return [letters.slice(0, -end).join(""), letters.slice(-end).join("")];
}
