// @ts-check
/** Draws all channels of a layer, or its kernels, on a canvas as large as the visible part. */

import { layerText, origin } from "../model/compare.js";
import { columnOf, differenceOf, isDifference, partName } from "../model/scene.js";
import { listed } from "../model/state.js";
import { short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { faultOf, positionText, rangeText, valueText } from "../picture/captions.js";
import { paintGrid } from "../picture/grid_paint.js";
import { paintKernels, paintStored } from "../picture/kernel_paint.js";
import { gridCrosshairs } from "../picture/point.js";
import { layoutFor } from "../picture/scene_layout.js";
import { ROW_SHARE, corner, hit } from "../picture/tile_layout.js";
import { valueAt } from "../server/decode.js";
import { h, say, show } from "./dom.js";
import {
  cellOfChannel,
  channelAt,
  channelAway,
  describeChosen,
  describeKernel,
  revealColumn,
} from "./kernels.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {import("../model/scene.js").Part} Part */
/** @typedef {import("../model/value_scale.js").Side} Side */

const HELP =
  "Channels of the layer. The up and down arrows move by a row, brackets by a channel, Enter opens a channel.";

/** @param {App} app */
export function createGrid(app) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const sheet = h("div", { class: "sheet" }, canvas);
  const attributes = { class: "grid", tabindex: "0", role: "application", "aria-label": HELP };
  const scroller = h("div", attributes, sheet);
  const note = h("p", { class: "note", role: "status" });
  const status = h("div", { class: "status", "aria-live": "polite" });
  const loading = h("p", { class: "loading", role: "status", hidden: true });
  const element = h("div", { class: "grid-room" }, note, scroller, loading, status);
  /** @type {import("../picture/tile_layout.js").Layout|null} */
  let placed = null;
  /** @type {Model|null} */
  let drawn = null;
  /** @type {number|null} */
  let hovered = null;
  let shownChannel = "";

  function paint() {
    const { clientWidth: width, clientHeight: height, scrollTop: top, scrollLeft: left } = scroller;
    if (!width || !height) return; // another view is shown
    if (!drawn?.scene || drawn.scene.kind === "none") return;
    const { scene, state } = drawn;
    const ratio = window.devicePixelRatio || 1;
    const look = { ...theme(), palette: state.colours };
    const context = prepare(canvas, width, height);
    if (scene.kind === "kernels" && !scene.grid) {
      placed = null;
      paintStored(context, scene.kernels, sheet, scroller, look);
      return;
    }
    placed = layoutFor(scene, state.tile, width, height, ratio);
    sheet.style.height = `${Math.max(placed.height, 1)}px`;
    sheet.style.width = placed.width > width ? `${placed.width}px` : "";
    const marks = { selected: state.channel, hovered, chosen: listed(state.channels) };
    const where = { top, left, width, height, ratio, ...marks };
    if (scene.kind === "maps") {
      paintGrid(context, scene, placed, where, look);
      gridCrosshairs(context, scene, placed, where, state.pixel);
    } else if (scene.grid) paintKernels(context, scene.grid, placed, where, look);
  }

  /** The cell under the pointer, or null. @param {MouseEvent} event */
  function under(event) {
    if (!placed) return null;
    const box = canvas.getBoundingClientRect();
    const across = placed.width ? scroller.scrollLeft : 0;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return hit(placed, x + across, y + scroller.scrollTop);
  }

  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at && drawn?.scene) app.pick(channelAt(drawn.scene, at.cell), at, event);
  });
  /** The pointer in the page, while it is over the grid. @type {MouseEvent|null} */
  let pointer = null;

  /** Describes what is under the pointer now; without a pointer, the selected channel. */
  function readOut() {
    const scene = drawn?.scene?.kind === "none" ? null : drawn?.scene;
    const at = pointer && scene ? under(pointer) : null;
    const channel = at && scene ? scene.order[at.cell] : null;
    const chosen = app.state.channel;
    canvas.style.cursor = at ? "pointer" : "default";
    const kernels = scene?.kind === "kernels" ? scene.grid : null;
    const maps = scene?.kind === "maps" ? scene : null;
    let text = "";
    if (kernels) text = at ? describeKernel(kernels, at) : describeChosen(kernels, chosen);
    else if (maps && at) text = describe(maps, at);
    else if (maps && chosen !== null && chosen < maps.channels) text = spoken(maps, chosen);
    say(status, text);
    if (channel === hovered) return;
    hovered = channel;
    if (!kernels) app.hover(channel);
    requestAnimationFrame(paint);
  }

  /** @param {MouseEvent|null} event null once the pointer has left */
  function point(event) {
    pointer = event;
    readOut();
  }
  canvas.addEventListener("mousemove", point);
  canvas.addEventListener("mouseleave", () => point(null));
  const scrolled = () => {
    paint();
    readOut();
  };
  scroller.addEventListener("scroll", scrolled, { passive: true });

  /**
   * Moves the selection by channels, or by rows of the grid, in the order shown.
   * @param {number} by @param {boolean} rows
   */
  function move(by, rows) {
    const scene = drawn?.scene;
    if (scene?.kind === "kernels" && scene.grid) {
      app.update({ channel: channelAway(scene.grid, app.state.channel, by) });
    }
    if (scene?.kind !== "maps") return;
    const now = app.state.channel === null ? -1 : scene.order.indexOf(app.state.channel);
    const step = rows ? by * (placed?.columns ?? 1) : by;
    const to = now < 0 ? 0 : Math.min(scene.order.length - 1, Math.max(0, now + step));
    app.update({ channel: scene.order[to] });
  }

  function reveal() {
    const scene = drawn?.scene;
    if (!placed || !scene || app.state.channel === null) return;
    const cell = cellOfChannel(scene, app.state.channel);
    if (cell < 0) return;
    const { left, top } = corner(placed, cell);
    if (revealColumn(scene, scroller, left, placed)) return;
    const bottom = top + placed.cellHeight;
    if (top < scroller.scrollTop) scroller.scrollTop = top - 10;
    else if (bottom > scroller.scrollTop + scroller.clientHeight) {
      scroller.scrollTop = bottom - scroller.clientHeight;
    }
  }

  /** @param {Model} model */
  function draw(model) {
    drawn = model;
    const { scene } = model;
    show(scroller, Boolean(scene && scene.kind !== "none"));
    const why = model.problem || scene?.why || "";
    say(note, why);
    show(note, Boolean(why));
    paint();
    const key = `${model.state.layer}/${model.state.channel}/${model.state.sort}`;
    if (key !== shownChannel) {
      shownChannel = key;
      reveal();
      paint();
    }
    readOut();
    mark(model);
  }

  /** Says what is still shown while something else is being loaded. @param {Model} model */
  function mark({ stale, scene }) {
    show(loading, stale && Boolean(scene));
    if (!stale || !scene) return;
    const { question } = scene;
    say(loading, `Loading. Still shown: ${layerText(question.key)} · ${origin(question)}`);
  }
  const shownTile = () => {
    if (placed?.rows) return placed.tileHeight * ROW_SHARE;
    return placed ? Math.max(placed.tileWidth, placed.tileHeight) : 64;
  };
  return { element, draw, mark, move, shownTile };
}

/** A channel, and its column if there are several. @param {MapsScene} scene @param {number} channel @param {Part} part */
function named(scene, channel, part) {
  return `channel ${channel}${scene.columns.length > 1 ? ` of ${partName(part)}` : ""}`;
}

/** Describes a channel. @param {MapsScene} scene @param {number} channel @param {Part} part */
function spoken(
  scene,
  channel,
  part = isDifference(scene.parts[0]) ? scene.parts[0] : /** @type {Part} */ ("a"),
) {
  const fault = faultOf(scene, part, channel);
  const range = rangeText(scene, part, channel) || "no picture";
  const [number] = scene.sorting.texts?.(channel) ?? [];
  const sorted = number ? ` · ${number}` : "";
  return `${named(scene, channel, part)} · ${range}${fault ? ` · ${fault.word}` : ""}${sorted}`;
}

/**
 * Describes the position and value under the pointer.
 * @param {MapsScene} scene @param {NonNullable<ReturnType<typeof hit>>} at
 */
function describe(scene, at) {
  const channel = scene.order[at.cell];
  const part = scene.parts[at.part];
  const { side } = columnOf(scene, part);
  if (at.u === null || at.v === null || !side) return spoken(scene, channel, part);
  const y = Math.floor(at.v * side.planes.height);
  const x = Math.floor(at.u * side.planes.width);
  const place = positionText(scene.rows, scene.picture.block, y, x);
  return `${named(scene, channel, part)} · ${place} · ${reading(scene, part, channel, y, x)}`;
}

/** Uncertainty of a side's values. @param {Side} side @param {number} channel */
function unitOf({ planes, lo, hi }, channel) {
  return ((hi[channel] - lo[channel]) / 255) * planes.coarse;
}

/**
 * Describes the value at a position.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 * @param {number} y @param {number} x
 */
export function reading(scene, part, channel, y, x) {
  const { side } = columnOf(scene, part);
  if (!side) return "no picture";
  if (isDifference(part)) {
    const between = differenceOf(scene, part);
    if (!between) return "no difference";
    const { height, width, values } = between;
    const value = values[(channel * height + y) * width + x];
    if (Number.isNaN(value)) return "non-finite on at least one side";
    const unit = unitOf(scene.a, channel) + unitOf(side, channel);
    return `difference ${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
  }
  return valueText(valueAt(side.planes, channel, y, x, side.lo[channel], side.hi[channel]));
}
