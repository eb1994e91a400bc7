// @ts-check
/** What a channel is called that is 0 everywhere: dead in a training, off for an image. */

let isOfImages = false;

/** Chooses the words for what is shown next. @param {import("./step_words.js").Unit} unit of the run */
export function speakOf(unit) {
  isOfImages = unit === "image";
}

/** "dead", or "off" in a run of images, which says nothing about training. */
export function deadWord() {
  return isOfImages ? "off" : "dead";
}

/** A text about channels with that word. @param {string} text */
export function inWordsOf(text) {
  return isOfImages ? text.replaceAll("dead", "off") : text;
}
