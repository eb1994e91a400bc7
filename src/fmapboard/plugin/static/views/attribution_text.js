// @ts-check
/** What the attribution view says, on the page and in a saved file. */

import { pixels } from "../data/decoded_maps.js";
import { short, stepText } from "../draw/number_text.js";
import { callName } from "../state/call_names.js";

/** @typedef {import("../state/attribution.js").Row} Row */
/** @typedef {import("../state/attribution.js").Tile} Tile */

/** The grey of a picture without attribution (`fmapboard.render.heat`). */
const NEGLIGIBLE = 128;

/** Of what the gradient is. */
const EFFECTS = Object.freeze({
  loss:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of this " +
    "step's loss, relu(−∂L/∂A)·A summed over channels.",
  probe:
    "Where it is bright, a larger activation of the layer lowers the loss here: LayerCAM of " +
    "attribution_loss on the probe in eval mode, relu(−∂L/∂A)·A summed over channels.",
  score:
    "Where it is bright, a larger activation of the layer raises the score here, of the class that " +
    "target= names or else of each image's highest score: LayerCAM in eval mode, relu(∂y/∂A)·A " +
    "summed over channels.",
});
const CONTROL =
  "The first logged step is the control: what is bright there too has not been learned since. " +
  "Bright does not mean that the network needs this place.";
const OTHER_IMAGES =
  " Two steps usually saw different images: attribution_loss= draws the same ones at each step.";

/** What bright places mean. @param {Row[]} rows at least one */
export function effectText(rows) {
  return EFFECTS[rows[0].series.of];
}

/** What the first step is there for; "" without it. @param {Row[]} rows at least one */
export function controlText(rows) {
  if (!rows.some(({ first }) => first)) return "";
  return rows[0].series.of === "loss" ? CONTROL + OTHER_IMAGES : CONTROL;
}

/** Layer, type and size of the maps. @param {Row["series"]} of */
export function headingText({ name, label, type, size }) {
  const facts = [type, size ? `maps of ${size[0]}×${size[1]}` : ""].filter(Boolean).join(", ");
  return [callName({ name, label }), facts].filter(Boolean).join(" · ");
}

/**
 * Step of a picture, and the norm of its gradient.
 * @param {Row} row @param {Tile} tile one of its two @param {ImageBitmap} picture of the tile
 * @returns {[string, string]}
 */
export function captionTexts(row, tile, picture) {
  const { step, gradient } = tile;
  const time = `${tile === row.first ? "first step: " : "step "}${stepText(step)}`;
  const symbol = row.first ? "∂L/∂A" : "∂y/∂A";
  const norm = gradient === null ? "not finite or unknown" : short(gradient);
  const isGrey = isNegligible(picture) && gradient !== null;
  return [time, `|${symbol}| = ${norm}${isGrey ? ", map negligible" : ""}`];
}

/** @type {WeakMap<ImageBitmap, boolean>} */
const greys = new WeakMap();

/** True if a picture is one even grey. @param {ImageBitmap} picture */
function isNegligible(picture) {
  const held = greys.get(picture);
  if (held !== undefined) return held;
  const [red, green, blue] = pixels(picture).data;
  const isGrey = [red, green, blue].every((each) => each === NEGLIGIBLE);
  greys.set(picture, isGrey);
  return isGrey;
}
