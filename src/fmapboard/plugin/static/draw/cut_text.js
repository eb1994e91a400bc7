// @ts-check
/** Shortens texts to a width on a canvas. */

/**
 * A text without its beginning if it is too wide: names of layers and files differ at their ends.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} width CSS px
 */
export function cutStart(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [1, text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (context.measureText(`…${text.slice(middle)}`).width <= width) high = middle;
    else low = middle + 1;
  }
  return `…${text.slice(low)}`;
}
