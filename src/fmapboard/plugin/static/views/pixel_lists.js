// @ts-check
/** The lists of the point: channels by their value there, layers by how strongly they respond. */

import { LEGEND } from "../draw/palettes.js";
import { faultOf } from "../draw/captions.js";
import { cellOf, drawCrosshair } from "../draw/crosshair.js";
import { pixelsOf } from "../draw/grid_paint.js";
import { counted, short } from "../draw/number_text.js";
import { tileCanvas } from "../draw/paint.js";
import { channelsAt } from "../draw/pixel_rank.js";
import { BORDER, stateFrame } from "../draw/state_frame.js";
import { prepare } from "../draw/theme.js";
import { layerText } from "../state/compare.js";
import { h } from "./dom.js";
import { inWordsOf } from "../state/dead_word.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../data/pixel_layers.js").Ranked} Ranked */
/** @typedef {import("../draw/crosshair.js").Point} Point */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */

const TILE = 36;
/** Entries that are listed until all are asked for. */
const FIRST = 24;

/**
 * A small picture with the point in it.
 * @param {Uint32Array} pixels @param {number} height @param {number} width @param {Point} point
 * @param {import("../draw/scene.js").StateMark|null} fault
 */
function small(pixels, height, width, point, fault = null) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const high = height === 1 ? 12 : (TILE * height) / Math.max(height, width);
  const wide = height === 1 ? TILE : (TILE * width) / Math.max(height, width);
  const box = { left: BORDER, top: BORDER, width: wide, height: high };
  const context = prepare(canvas, wide + 2 * BORDER, high + 2 * BORDER);
  if (!pixels.length) return canvas;
  context.imageSmoothingEnabled = width > canvas.width;
  context.drawImage(tileCanvas(pixels, width), box.left, box.top, wide, high);
  if (fault) stateFrame(context, box, fault);
  drawCrosshair(context, box, point, null);
  return canvas;
}

/**
 * One entry: a picture, a name and what is said about it; pressing it goes there.
 * @param {HTMLCanvasElement} picture @param {string} name @param {string} value
 * @param {boolean} isBad @param {() => void} press
 */
function entry(picture, name, value, isBad, press) {
  return h(
    "li",
    {},
    h(
      "button",
      { type: "button", class: isBad ? "not-finite" : null, on: { click: press } },
      h("span", { class: "pixel-tile" }, picture),
      h("span", { class: "pixel-name", text: name, title: name }),
      h("span", { class: "pixel-value", text: value }),
    ),
  );
}

/** A deviation with its sign. @param {number} deviation in standard deviations */
const sigmas = (deviation) => `${deviation > 0 ? "+" : ""}${short(deviation, 2)} σ`;

/**
 * A button for the entries that are not listed; none if all are.
 * @param {number} more @param {() => void} showAll
 */
function rest(more, showAll) {
  if (more <= 0) return [];
  const press = { click: showAll };
  return [h("li", {}, h("button", { type: "button", text: `Show ${more} more`, on: press }))];
}

/**
 * Channels of the layer, by how far they are from their own mean at the point.
 * @param {App} app @param {MapsScene} scene @param {Point} point
 * @param {boolean} isWhole all of them @param {() => void} showAll
 */
export function channelItems(app, scene, point, isWhole, showAll) {
  const { height, width } = scene.a.planes;
  const readings = channelsAt(scene.a, point);
  const items = readings.slice(0, isWhole ? Infinity : FIRST).map((of) => {
    const { pixels } = pixelsOf(scene, "a", of.channel, app.state.colours);
    const name = inWordsOf(LEGEND.find(({ code }) => code === of.mark)?.name ?? "");
    const isBad = Number.isNaN(of.value);
    const unit = of.unit > 0 ? ` ± ${short(of.unit, 2)}` : "";
    const away = Number.isNaN(of.deviation) ? "" : ` · ${sigmas(of.deviation)}`;
    const value = isBad ? name : `${short(of.value, 4)}${unit}${name ? ` (${name})` : ""}${away}`;
    const fault = faultOf(scene, "a", of.channel);
    const called = `channel ${of.channel}${fault && !isBad ? ` · ${fault.word}` : ""}`;
    return entry(small(pixels, height, width, point, fault), called, value, isBad, () =>
      app.update({ channel: of.channel }),
    );
  });
  return [...items, ...rest(readings.length - items.length, showAll)];
}

/**
 * Layers, by how strongly they respond at the point.
 * @param {App} app @param {Ranked} ranked @param {Point} point
 * @param {boolean} isWhole all of them @param {() => void} showAll
 */
export function layerItems(app, ranked, point, isWhole, showAll) {
  const items = ranked.layers.slice(0, isWhole ? Infinity : FIRST).map((of) => {
    const { y, x } = cellOf(point, of.height, of.width);
    const averaged = of.block > 1 ? `, each the mean of ${of.block}×${of.block}` : "";
    const cell =
      of.height === 1 ? `column ${x} of ${of.width}` : `y ${y}, x ${x} of ${of.height}×${of.width}`;
    const { drawn, channels } = of.layer;
    const among = drawn < channels ? ` · ${drawn} of ${channels} channels` : "";
    const value = of.nonfinite
      ? `${of.nonfinite} non-finite`
      : `${short(of.score, 3)} · channel ${of.channel} ${sigmas(of.deviation)}${among}`;
    const made = entry(
      small(of.pixels, of.height, of.width, point),
      layerText(of.layer.key),
      value,
      of.nonfinite > 0,
      () => app.update({ layer: of.layer.key, channel: of.channel < 0 ? null : of.channel }),
    );
    made.title = `${cell}${averaged}; ${counted(of.compared, "channel")} compared`;
    return made;
  });
  return [...items, ...rest(ranked.layers.length - items.length, showAll)];
}
