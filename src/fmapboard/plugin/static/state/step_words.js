// @ts-check
/** What a step is called: "step 20", or what it shows in a run of `visualize`. */

import { stepText } from "../draw/number_text.js";

/** @typedef {Record<string, string>|undefined} Words `step_words` of an answer */
/** @typedef {"step"|"image"} Unit */

/** @param {Words} words @param {number} step */
export function wordOf(words, step) {
  return words?.[step] ?? `step ${stepText(step)}`;
}

/**
 * A step in a narrow place: its number, and the name of what it shows, or "".
 * @param {Words} words @param {number} step @returns {[string, string]}
 */
export function labelOf(words, step) {
  return [stepText(step), /\((.*)\)$/.exec(words?.[step] ?? "")?.[1] ?? ""];
}

/** What a step of a run is: "image" if each step is another image. @param {Words} words @returns {Unit} */
export function kindOf(words) {
  const every = Object.values(words ?? {});
  return every.length && every.every((word) => word.startsWith("image ")) ? "image" : "step";
}
