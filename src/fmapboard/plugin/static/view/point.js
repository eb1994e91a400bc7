// @ts-check
/** The lists of the point: channels by their value there, layers by how strongly they respond. */

import { layerText } from "../model/compare.js";
import { inputOf } from "../model/sides.js";
import { cellOf, movedPoint, pointOf, pointText } from "../model/state.js";
import { counted, inWordsOf, short, stepText } from "../model/words.js";
import { BORDER, prepare, stateFrame } from "../picture/canvas.js";
import { faultOf } from "../picture/captions.js";
import { pixelsOf, tileCanvas } from "../picture/paint.js";
import { PixelLayers, channelsAt, drawCrosshair } from "../picture/point.js";
import { LEGEND } from "../server/palettes.js";
import { button, h, say, segments, show } from "./dom.js";

// The lists of the point: channels by their value there, layers by how strongly they respond.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../picture/point.js").Ranked} Ranked */
/** @typedef {import("../model/state.js").Point} Point */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */

const TILE = 36;
/** Entries that are listed until all are asked for. */
const FIRST = 24;

/**
 * A small picture with the point in it.
 * @param {Uint32Array} pixels @param {number} height @param {number} width @param {Point} point
 * @param {import("../model/scene.js").StateMark|null} fault
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

// The point tool: a place in the input or a map, and which channels and layers respond there.

/** @typedef {import("../server/source.js").Model} Model */
/** @typedef {import("../model/state.js").PixelList} PixelList */

/** Largest height of the input image, CSS px. */
const INPUT = 200;
const MEASURE =
  "Ordered by how far the channels here lie from their own mean over the map: the root mean square " +
  "over the channels of (value − mean) ÷ standard deviation (σ). An average place has 1.";
const CHANNELS =
  "Ordered by how far each channel here lies from its own mean over the map, in standard deviations " +
  "(σ); non-finite channels come first.";

/** @param {import("../app.js").App} app */
export function createPixel(app) {
  const start = button({
    text: "Point at a pixel",
    label: "Which channels respond at a place of the input or of a map",
    key: "x",
    press: () => toggle(),
  });
  const list = segments(
    "What is ordered by the values at the point",
    /** @type {[PixelList, string, string][]} */ ([
      [
        "channels",
        "Channels",
        "the channels of this layer, by how strongly they respond at the point",
      ],
      ["layers", "Layers", "all layers, by how strongly their channels respond at the point"],
    ]),
    (pixel_list) => app.update({ pixel_list }),
  );
  const close = button({
    icon: "close",
    label: "Leave the point",
    key: "Esc",
    press: () => app.update({ pixel: "" }),
  });
  const canvas = h("canvas", { role: "img" });
  const caption = h("figcaption");
  const figure = h("figure", {}, caption, canvas);
  const where = h("p", { class: "pixel-where", role: "status" });
  const measure = h("p", { class: "pixel-measure" });
  const items = h("ol", { class: "pixel-list" });
  const body = h("div", { class: "pixel-body" }, figure, where, measure, items);
  const element = h(
    "section",
    { class: "pixel", "aria-label": "Point" },
    h("div", { class: "row spread" }, start, h("span", { class: "row" }, list.element, close)),
    body,
  );
  const layers = new PixelLayers(app.source, () => changed());
  /** @type {Model|null} */
  let drawn = null;
  let scheduled = false;
  let isWhole = false;
  let wholeOf = "";
  let shown = "";
  /** @type {MapsScene|null} */
  let shownScene = null;
  /** @type {MapsScene|null} */
  let current = null;

  /** Draws the list soon after an answer; several answers are drawn together. */
  function changed() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      if (drawn && drawn === app.model) draw(drawn);
    });
  }

  /** @param {Point} point */
  const put = (point) => app.update({ pixel: pointText(point) });

  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    put({ u: (event.clientX - box.left) / box.width, v: (event.clientY - box.top) / box.height });
  });

  function toggle() {
    app.update({ pixel: app.state.pixel ? "" : "0.5,0.5" });
  }

  /** Moves the point by cells of the layer's maps. @param {number} down @param {number} right */
  function move(down, right) {
    const point = pointOf(app.state.pixel);
    if (!point || !current) return;
    const { height, width } = current.a.planes;
    put(movedPoint(point, height, width, down, right));
  }

  /** @param {Model} model */
  function draw(model) {
    drawn = model;
    const { state, scene, stale } = model;
    const point = pointOf(state.pixel);
    current = scene?.kind === "maps" ? scene : null;
    show(element, Boolean(current));
    show(body, Boolean(point));
    show(close, Boolean(point));
    show(list.element, Boolean(point));
    start.setAttribute("aria-pressed", String(Boolean(point)));
    list.draw(state.pixel_list);
    if (!point || !current || state.pixel_list === "channels") layers.rest();
    document.documentElement.dataset.pixel = "ready";
    if (!point || !current || stale) return;
    picture(current, point);
    say(where, placeText(current, point));
    const of = `${state.pixel_list}/${current.question.key}`;
    if (of !== wholeOf) isWhole = false;
    wholeOf = of;
    const showAll = () => {
      isWhole = true;
      app.redraw();
    };
    if (state.pixel_list === "channels") channels(current, point, showAll);
    else byLayer(model, current, point, showAll);
  }

  /** @param {MapsScene} scene @param {Point} point @param {() => void} showAll */
  function channels(scene, point, showAll) {
    const { drawn, channels: all } = scene.picture;
    const rest =
      drawn && all && drawn < all
        ? ` Only the ${drawn} drawn of ${all} channels are compared.`
        : "";
    say(measure, `${CHANNELS}${rest}`);
    const key = JSON.stringify(["channels", point, app.state.colours, isWhole]);
    if (key === shown && scene === shownScene) return;
    [shown, shownScene] = [key, scene];
    items.replaceChildren(...channelItems(app, scene, point, isWhole, showAll));
  }

  /** @param {Model} model @param {MapsScene} scene @param {Point} point @param {() => void} showAll */
  function byLayer(model, scene, point, showAll) {
    const ranked = layers.rank(model, scene, point);
    const { asked, done, left } = ranked;
    document.documentElement.dataset.pixel = done < asked ? "loading" : "ready";
    const progress = done < asked ? `${done} of ${asked} layers measured so far. ` : "";
    const without = left.length ? ` Left out: ${left.join("; ")}.` : "";
    say(measure, `${progress}${MEASURE}${without}`);
    const key = JSON.stringify([
      "layers",
      point,
      app.state.colours,
      isWhole,
      done,
      layers.measuredOf,
    ]);
    if (key === shown) return;
    shown = key;
    items.replaceChildren(...layerItems(app, ranked, point, isWhole, showAll));
  }

  /** @param {MapsScene} scene @param {Point} point */
  function picture(scene, point) {
    const { picture: input, loading } = scene.rows
      ? { picture: null, loading: false }
      : inputOf(app.source, scene.question);
    show(canvas, Boolean(input));
    const step = stepText(scene.question.step);
    if (!input) {
      const why = scene.rows
        ? "A sequence: the point is a position in it."
        : `The network's input of step ${step} is not stored: point at a map.`;
      say(caption, loading ? "Loading the input…" : why);
      return;
    }
    say(caption, `Input of step ${step}, sample ${scene.question.sample}: click to point`);
    const width = Math.max(100, element.clientWidth - 24);
    const factor = Math.min(width / input.width, INPUT / input.height);
    const [wide, high] = [input.width * factor, input.height * factor];
    const context = prepare(canvas, wide, high);
    context.imageSmoothingEnabled = factor < 1;
    context.drawImage(input, 0, 0, wide, high);
    // The outline is the part of the input that has the place of the cell.
    drawCrosshair(context, { left: 0, top: 0, width: wide, height: high }, point, scene.a.planes);
    canvas.setAttribute("aria-label", `network's input; ${placeText(scene, point)}`);
  }
  const isOn = () => Boolean(current && app.state.pixel);
  return { element, draw, toggle, move, put, isOn, rest: () => layers.rest() };
}

/** Where the point is, in words. @param {MapsScene} scene @param {Point} point */
function placeText(scene, point) {
  const { height, width } = scene.a.planes;
  const { y, x } = cellOf(point, height, width);
  const { block } = scene.picture;
  if (scene.rows) {
    const at = block > 1 ? `positions ${x * block} to ${(x + 1) * block - 1}` : `position ${x}`;
    return `${at} of the sequence; other sequences at the same relative position`;
  }
  const averaged = block > 1 ? `, each the mean of ${block}×${block} values` : "";
  return (
    `Cell y ${y}, x ${x} of ${height}×${width} in this layer${averaged}: the same relative place as in the ` +
    "input. Strides and padding make this approximate."
  );
}
