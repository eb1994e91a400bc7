// @ts-check
/** The parts of images that excite the open channel most, with their values. */

import { short } from "../draw/number_text.js";
import { cropsOf, isUnexcited } from "../state/patches.js";
import { h, say, show } from "./dom.js";
import { explain } from "./glossary.js";

/** @typedef {import("../state/patches.js").Crop} Crop */
/** @typedef {import("../state/patches.js").LayerPatches} LayerPatches */
/** @typedef {import("../state/patches.js").Shown} Shown */

/** Longer side of a crop, CSS px. */
const SIDE = 76;

const EXCITED = "Excited most by";

export function createPatches() {
  const about = h("span", { class: "value" });
  const heading = h("span", { text: EXCITED });
  const title = h("h3", {}, explain(heading, "patches"), about);
  const list = h("div", { class: "patches" });
  const note = h("p", { class: "note" });
  const element = h("div", { "data-part": "patches" }, title, list, note);
  /** What the crops are of. @type {LayerPatches|null} */
  let drawn = null;
  let channel = -1;

  /** @param {Shown|null} patches */
  function draw(patches) {
    show(element, patches !== null);
    if (!patches) return;
    const { found, problem } = patches;
    list.classList.toggle("old", !found);
    say(note, found ? noteText(found, patches.channel) : problem);
    show(note, Boolean(note.textContent));
    if (!found) return;
    say(about, aboutText(found, patches.step));
    if (found === drawn && channel === patches.channel) return;
    [drawn, channel] = [found, patches.channel];
    const crops = cropsOf(found, channel);
    say(heading, isUnexcited(crops) ? "Largest values, none above 0" : EXCITED);
    list.replaceChildren(...crops.map((crop, i) => figure(found, crop, i)));
  }
  return { element, draw };
}

/** @param {LayerPatches} found @param {number} step */
function aboutText({ header }, step) {
  const each = header.one_per_image ? ", one crop per image" : "";
  return `${header.images} images${each}, step ${step}`;
}

/** What is not shown, and why; "" for nothing. @param {LayerPatches} found @param {number} channel */
function noteText({ header, arrays, picture }, channel) {
  const { searched, channels } = header;
  if (channel >= searched) {
    return `Only channels 0…${searched - 1} of ${channels} were searched (--channels).`;
  }
  if (!picture) return "TensorBoard does not keep the picture of these patches.";
  const nan = arrays.nan?.values[channel] ?? 0;
  const lines = [];
  if (nan) lines.push(`${nan} NaN values were left out.`);
  if (header.lost_at) lines.push(`The field is given as the whole image: ${header.lost_at}.`);
  return lines.join(" ");
}

/** @param {LayerPatches} found @param {Crop} crop @param {number} rank from 0 */
function figure({ header, picture }, crop, rank) {
  const [height, width] = header.picture.cell;
  const canvas = h("canvas", { role: "img", "aria-label": cropText(crop, rank) });
  [canvas.width, canvas.height] = [width, height];
  const scale = SIDE / Math.max(width, height);
  canvas.style.width = `${Math.round(width * scale)}px`;
  canvas.style.height = `${Math.round(height * scale)}px`;
  const [left, top] = crop.corner;
  if (picture) {
    canvas.getContext("2d")?.drawImage(picture, left, top, width, height, 0, 0, width, height);
  }
  const caption = h("figcaption", { text: short(crop.value) });
  const made = h("figure", { title: cropText(crop, rank) }, canvas, caption);
  made.style.width = canvas.style.width;
  return made;
}

/** @param {Crop} crop @param {number} rank from 0 */
function cropText({ value, name, field, size, place }, rank) {
  const [top, left, bottom, right] = field;
  const [height, width] = size;
  const at = place.length ? ` at (${place.join(", ")})` : "";
  return (
    `${rank + 1}. ${name}: ${short(value)}${at}; ` +
    `rows ${top}…${bottom - 1}, columns ${left}…${right - 1} of ${height}×${width} px`
  );
}
