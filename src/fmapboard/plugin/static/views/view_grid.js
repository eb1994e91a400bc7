// @ts-check
/** Draws all channels of a layer, or its kernels, on a canvas as large as the visible part. */

import { layerText, origin } from "../state/compare.js";
import { h, say, show } from "./dom.js";
import { gridCrosshairs } from "../draw/crosshair.js";
import { faultOf, rangeText } from "../draw/captions.js";
import { paintGrid } from "../draw/grid_paint.js";
import { ROW_SHARE, corner, hit, layout } from "../draw/tile_layout.js";
import { valueAt } from "../data/decode.js";
import { short } from "../draw/number_text.js";
import { LEGEND } from "../draw/palettes.js";
import { prepare, theme } from "../draw/theme.js";
import { listed } from "../state/film.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../draw/scene.js").KernelsScene} KernelsScene */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */
/** @typedef {import("../draw/scene.js").Part} Part */
/** @typedef {import("../draw/value_scale.js").Side} Side */

/** Minimum side of one kernel weight, device px; a picture larger than the window scrolls. */
const KERNEL_PX = 3;

/** @param {App} app */
export function createGrid(app) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const sheet = h("div", { class: "sheet" }, canvas);
  const scroller = h(
    "div",
    {
      class: "grid",
      tabindex: "0",
      role: "application",
      "aria-label":
        "Channels of the layer. The up and down arrows move by a row, brackets by a channel, Enter opens a channel.",
    },
    sheet,
  );
  const note = h("p", { class: "note", role: "status" });
  const status = h("div", { class: "status", "aria-live": "polite" });
  const loading = h("p", { class: "loading", role: "status", hidden: true });
  const element = h("div", { class: "grid-room" }, note, scroller, loading, status);
  /** @type {import("../draw/tile_layout.js").Layout|null} */
  let placed = null;
  /** @type {Model|null} */
  let drawn = null;
  /** @type {number|null} */
  let hovered = null;
  let shownChannel = "";

  function paint() {
    if (!drawn?.scene || drawn.scene.kind === "none") return;
    const { scene, state } = drawn;
    const ratio = window.devicePixelRatio || 1;
    const width = scroller.clientWidth;
    const height = scroller.clientHeight;
    if (!width || !height) return; // another view is shown
    const look = { ...theme(), palette: state.colours };
    const context = prepare(canvas, width, height);
    if (scene.kind === "kernels") {
      kernels(context, scene, width, height);
      return;
    }
    placed = layoutFor(scene, state.tile, width, height, ratio);
    sheet.style.height = `${Math.max(placed.height, 1)}px`;
    sheet.style.width = placed.width > width ? `${placed.width}px` : "";
    const where = {
      top: scroller.scrollTop,
      left: scroller.scrollLeft,
      width,
      height,
      ratio,
      selected: state.channel,
      hovered,
      chosen: listed(state.channels),
    };
    paintGrid(context, scene, placed, where, look);
    gridCrosshairs(context, scene, placed, where, state.pixel);
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {KernelsScene} scene
   * @param {number} width CSS px @param {number} height CSS px
   */
  function kernels(context, scene, width, height) {
    const picture = scene.kernels;
    const ratio = window.devicePixelRatio || 1;
    const fit = Math.min((width - 20) / picture.width, (height - 20) / Math.max(picture.height, 1));
    const factor = Math.max(KERNEL_PX, Math.floor(fit * ratio)) / ratio;
    sheet.style.height = `${picture.height * factor + 20}px`;
    sheet.style.width = `${picture.width * factor + 20}px`;
    placed = null;
    context.fillStyle = theme().background;
    context.fillRect(0, 0, width, height);
    context.drawImage(
      picture,
      10 - scroller.scrollLeft,
      10 - scroller.scrollTop,
      picture.width * factor,
      picture.height * factor,
    );
  }

  /** The cell under the pointer, or null. @param {MouseEvent} event */
  function under(event) {
    if (!placed) return null;
    const box = canvas.getBoundingClientRect();
    const across = placed.rows ? scroller.scrollLeft : 0;
    return hit(
      placed,
      event.clientX - box.left + across,
      event.clientY - box.top + scroller.scrollTop,
    );
  }

  const scrolled = () => {
    paint();
    readOut();
  };
  scroller.addEventListener("scroll", scrolled, { passive: true });
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at && drawn?.scene) app.pick(drawn.scene.order[at.cell], at, event);
  });
  /** The pointer in the page, while it is over the grid. @type {MouseEvent|null} */
  let pointer = null;

  /** Describes what is under the pointer now; without a pointer, the selected channel. */
  function readOut() {
    const scene = drawn?.scene?.kind === "maps" ? drawn.scene : null;
    const at = pointer && scene ? under(pointer) : null;
    const channel = at && scene ? scene.order[at.cell] : null;
    const chosen = app.state.channel;
    canvas.style.cursor = at ? "pointer" : "default";
    if (scene && at) say(status, describe(scene, at));
    else if (scene && chosen !== null && chosen < scene.channels)
      say(status, spoken(scene, chosen));
    else say(status, "");
    if (channel === hovered) return;
    hovered = channel;
    app.hover(channel);
    requestAnimationFrame(paint);
  }

  canvas.addEventListener("mousemove", (event) => {
    pointer = event;
    readOut();
  });
  canvas.addEventListener("mouseleave", () => {
    pointer = null;
    readOut();
  });

  /**
   * Moves the selection by channels, or by rows of the grid, in the order shown.
   * @param {number} by @param {boolean} rows
   */
  function move(by, rows) {
    const scene = drawn?.scene;
    if (!scene || scene.kind !== "maps") return;
    const now = app.state.channel === null ? -1 : scene.order.indexOf(app.state.channel);
    const step = rows ? by * (placed?.columns ?? 1) : by;
    const to = now < 0 ? 0 : Math.min(scene.order.length - 1, Math.max(0, now + step));
    app.update({ channel: scene.order[to] });
  }

  function reveal() {
    const scene = drawn?.scene;
    if (!placed || !scene || app.state.channel === null) return;
    const cell = scene.order.indexOf(app.state.channel);
    if (cell < 0) return;
    const { top } = corner(placed, cell);
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
  return { element, scroller, draw, mark, move, paint, shownTile };
}

/**
 * @param {MapsScene} scene @param {number} tile longer side in CSS px, 0 to about fit the window
 * @param {number} available width, CSS px @param {number} windowHeight @param {number} ratio
 */
export function layoutFor(scene, tile, available, windowHeight, ratio) {
  const planes = scene.a?.planes;
  return layout({
    count: scene.order.length,
    parts: scene.parts.length,
    mapHeight: planes?.height ?? 1,
    mapWidth: planes?.width ?? 1,
    tile,
    available,
    windowHeight,
    ratio,
    rows: scene.rows,
  });
}

/** Describes a channel. @param {MapsScene} scene @param {number} channel @param {Part} part */
function spoken(scene, channel, part = scene.parts[0]) {
  const fault = faultOf(scene, part, channel);
  const range = rangeText(scene, part, channel);
  return `channel ${channel} · ${range}${fault ? ` · ${fault.word}` : ""}`;
}

/**
 * Describes the position and value under the pointer.
 * @param {MapsScene} scene @param {NonNullable<ReturnType<typeof hit>>} at
 */
function describe(scene, at) {
  const channel = scene.order[at.cell];
  const part = scene.parts[at.part];
  const side = part === "b" ? scene.b : scene.a;
  if (at.u === null || at.v === null || !side) return spoken(scene, channel, part);
  const y = Math.floor(at.v * side.planes.height);
  const x = Math.floor(at.u * side.planes.width);
  return `channel ${channel} · ${place(scene, y, x)} · ${reading(scene, part, channel, y, x)}`;
}

/** Uncertainty of a side's values. @param {Side} side @param {number} channel */
function unitOf({ planes, lo, hi }, channel) {
  return ((hi[channel] - lo[channel]) / 255) * planes.coarse;
}

/** Describes a position in a map. @param {MapsScene} scene @param {number} y @param {number} x */
export function place(scene, y, x) {
  if (!scene.rows) return `y ${y}, x ${x}`;
  const block = scene.picture.block;
  return block > 1 ? `positions ${x * block} to ${(x + 1) * block - 1}` : `position ${x}`;
}

/**
 * Describes the value at a position.
 * @param {MapsScene} scene @param {Part} part @param {number} channel
 * @param {number} y @param {number} x
 */
export function reading(scene, part, channel, y, x) {
  if (part === "difference" && scene.difference) {
    const { height, width, values } = scene.difference;
    const value = values[(channel * height + y) * width + x];
    if (Number.isNaN(value)) return "not finite on at least one side";
    const unit = [scene.a, scene.b].reduce(
      (sum, each) => sum + (each ? unitOf(each, channel) : 0),
      0,
    );
    return `difference ${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
  }
  const side = part === "b" ? scene.b : scene.a;
  if (!side) return "";
  const { value, unit, mark } = valueAt(
    side.planes,
    channel,
    y,
    x,
    side.lo[channel],
    side.hi[channel],
  );
  const name = LEGEND.find(({ code }) => code === mark)?.name;
  if (Number.isNaN(value)) return name ?? "no value";
  return `${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}${name ? ` (${name})` : ""}`;
}
