// @ts-check
/** Describes a frame of the film strip in words. */

import { valueAt } from "../data/decode.js";
import { pictureOf } from "../data/decoded_maps.js";
import { faultOfFrame, whyNoFrame } from "../draw/film_captions.js";
import { isBeyond } from "../draw/film_scale.js";
import { short } from "../draw/number_text.js";
import { LEGEND, MARK } from "../draw/palettes.js";
import { inWordsOf } from "../state/dead_word.js";

/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../data/film_frames.js").Frame} Frame */

/** False if all values of a frame are NaN or infinite. @param {Strip} strip @param {number} i @param {number} channel */
function hasFinite(strip, i, channel) {
  const planes = strip.frame(i)?.side?.planes;
  if (!planes?.marks) return true;
  const size = planes.height * planes.width;
  return !planes.marks
    .subarray(channel * size, (channel + 1) * size)
    .every((mark) => mark >= MARK.NAN && mark <= MARK.NEGATIVE_INFINITY);
}

/**
 * A frame in words: its value at a place, its range, its fault.
 * @param {Strip} strip @param {number} i @param {number} channel
 * @param {{u: number, v: number}|null} place
 */
export function describe(strip, i, channel, place) {
  const name = `channel ${channel}`;
  if (!strip.hasMaps) return name;
  const why = whyNoFrame(strip, i, channel);
  if (why) return `${name}: ${why}`;
  const side = strip.frame(i)?.side;
  const fault = faultOfFrame(strip, i, channel);
  if (!side) return `${name}: loading${fault ? ` · ${fault.word}` : ""}`;
  const { planes, lo, hi } = side;
  if (!place) {
    const range = `${short(lo[channel])}…${short(hi[channel])}`;
    const far = isBeyond(strip, side, channel) ? "beyond the scale" : "";
    const said = [name, hasFinite(strip, i, channel) ? range : "", fault?.word ?? "", far];
    return said.filter(Boolean).join(" · ");
  }
  const [y, x] = [Math.floor(place.v * planes.height), Math.floor(place.u * planes.width)];
  const { value, unit, mark } = valueAt(planes, channel, y, x, lo[channel], hi[channel]);
  const known = inWordsOf(LEGEND.find(({ code }) => code === mark)?.name ?? "");
  const said = Number.isNaN(value)
    ? known || "no value"
    : `${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}${known ? ` (${known})` : ""}`;
  const { block, layout } = /** @type {import("../data/answers.js").MapsPicture} */ (
    pictureOf(/** @type {Frame} */ (strip.frame(i)).maps, strip.role)
  );
  const position = block > 1 ? `positions ${x * block} to ${(x + 1) * block - 1}` : `position ${x}`;
  const at = layout === "rows" ? position : `y ${y}, x ${x}`;
  const far = isBeyond(strip, side, channel) ? " · beyond the scale" : "";
  return `${name} · ${at} · ${said}${far}`;
}
