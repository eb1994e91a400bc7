// @ts-check
/** Finds out whether two sides of a comparison had the same input image. */

/**
 * `unknown`: the input image of at least one side is not kept, or was never stored.
 * @typedef {"same"|"different"|"unknown"|"loading"} Inputs
 */

/** @type {WeakMap<ImageBitmap, Uint8ClampedArray>} */
const read = new WeakMap();

/** @param {ImageBitmap} picture RGBA */
function pixels(picture) {
  let found = read.get(picture);
  if (!found) {
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) throw new Error("this browser has no canvas to decode pictures with");
    context.drawImage(picture, 0, 0);
    found = context.getImageData(0, 0, picture.width, picture.height).data;
    read.set(picture, found);
  }
  return found;
}

/** @param {ImageBitmap} a @param {ImageBitmap} b */
export function samePixels(a, b) {
  if (a === b) return true;
  if (a.width !== b.width || a.height !== b.height) return false;
  const [first, second] = [pixels(a), pixels(b)];
  return first.every((value, i) => value === second[i]);
}
