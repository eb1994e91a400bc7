// @ts-check
/** Draws all channels of a layer, or its kernels, on a canvas as large as the visible part. */

import { layerText, origin } from "../model/compare.js";
import * as weights from "../model/kernel_scene.js";
import { columnOf, isDifference, partName } from "../model/scene.js";
import { listed } from "../model/state.js";
import { short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { faultOf, positionText, rangeText, valueText } from "../picture/captions.js";
import { paintGrid } from "../picture/grid_paint.js";
import { paintKernels, weightRange } from "../picture/kernel_paint.js";
import { gridCrosshairs } from "../picture/point.js";
import { ROW_SHARE, corner, hit, kernelLayout, layoutFor } from "../picture/tile_layout.js";
import { valueAt } from "../server/decode.js";
import { kernelsOf, outputChannels } from "../server/kernels.js";
import { within } from "../server/steps.js";
import { html, useRef } from "../vendor/preact_htm.js";
import { ChannelHead, Painted, h, reveal, say, show } from "./controls.js";

/** @import {App, Model} from "../app.js" */
/** @import {KernelCells} from "../model/kernel_scene.js" */
/** @import {MapsScene, Part} from "../model/scene.js" */

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
    placed = layoutFor(scene, state.tile, width, height, ratio);
    sheet.style.height = `${Math.max(placed.height, 1)}px`;
    sheet.style.width = placed.width > width ? `${placed.width}px` : "";
    const marks = { selected: state.channel, hovered, chosen: listed(state.channels) };
    const where = { top, left, width, height, ratio, ...marks };
    if (scene.kind === "maps") {
      paintGrid(context, scene, placed, where, look);
      gridCrosshairs(context, scene, placed, where, state.pixel);
    } else paintKernels(context, scene.grid, placed, where, look);
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
    const [at, scene] = [under(event), drawn?.scene];
    if (!at || !scene) return;
    const plane = scene.order[at.cell]; // a channel, except of kernels
    app.pick(scene.kind === "kernels" ? weights.channelOf(scene.grid.of, plane) : plane, at, event);
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

  for (const type of /** @type {const} */ (["mousemove", "mouseleave"])) {
    canvas.addEventListener(type, (event) => {
      pointer = type === "mousemove" ? event : null;
      readOut();
    });
  }
  const scrolled = () => {
    paint();
    readOut();
  };
  scroller.addEventListener("scroll", scrolled, { passive: true });

  /** Moves the selection by channels, or by rows of the grid. @param {number} by @param {boolean} rows */
  function move(by, rows) {
    const scene = drawn?.scene;
    const kernels = scene?.kind === "kernels" ? scene.grid : null;
    const all = kernels?.cells.map((plane) => weights.channelOf(kernels.of, plane)) ?? [];
    const outputs = [...new Set(all)].filter((each) => each >= 0).sort((a, b) => a - b);
    const order = scene?.kind === "maps" ? scene.order : outputs;
    if (!order.length) return;
    const now = order.indexOf(app.state.channel ?? -1);
    const step = rows && !kernels ? by * (placed?.columns ?? 1) : by;
    const to = now < 0 ? 0 : within(now + step, order.length);
    app.update({ channel: order[to] });
  }

  function revealChannel() {
    const [scene, { channel }] = [drawn?.scene, app.state];
    if (!placed || !scene || channel === null) return;
    const kernels = scene.kind === "kernels" ? scene.grid : null;
    const cell = kernels ? weights.cellOf(kernels, channel) : scene.order.indexOf(channel);
    if (cell < 0) return;
    const { left, top } = corner(placed, cell);
    // In a matrix of kernels a channel is a column, unless it is a row.
    if (kernels?.columns && kernels.down !== "outputs")
      reveal(scroller, "Left", left - placed.left, left + placed.cellWidth);
    else reveal(scroller, "Top", top - 10, top + placed.cellHeight);
    paint();
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
      revealChannel();
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

/** What is under the pointer. @param {MapsScene} scene @param {NonNullable<ReturnType<typeof hit>>} at */
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

/** The value at a position. @param {MapsScene} scene @param {Part} part @param {number} channel @param {number} y @param {number} x */
export function reading(scene, part, channel, y, x) {
  const { side, difference: between } = columnOf(scene, part);
  if (!side) return "no picture";
  if (isDifference(part)) {
    if (!between) return "no difference";
    const { height, width, values } = between;
    const value = values[(channel * height + y) * width + x];
    if (Number.isNaN(value)) return "non-finite on at least one side";
    const unit = weights.unitOf(scene.a, channel) + weights.unitOf(side, channel);
    return `difference ${short(value, 4)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
  }
  return valueText(valueAt(side.planes, channel, y, x, side.lo[channel], side.hi[channel]));
}

// Kernels in words, and those of the open output channel enlarged, with their numbers.

/** @typedef {ReturnType<typeof import("../picture/tile_layout.js").hit>} Hit */

/** The kernel, position and weight under the pointer. @param {KernelCells} grid @param {NonNullable<Hit>} at */
function describeKernel(grid, at) {
  const { of } = grid;
  const plane = grid.cells[at.cell];
  const part = grid.parts[at.part];
  const side = grid.sides.length > 1 ? ` · ${weights.partLetters(grid, part)}` : "";
  const name = `${weights.kernelName(grid, plane)}${side}`;
  if (at.u === null || at.v === null) return `${name} · ${weightRange(grid, part, plane)}`;
  const y = Math.floor(at.v * of.height);
  const x = Math.floor(at.u * of.width);
  return `${name} · ${weights.position(of, y, x)} · ${weights.weightText(grid, part, plane, y, x)}`;
}

/** Describes the selected channel. @param {KernelCells} grid @param {number|null} channel */
function describeChosen(grid, channel) {
  const { of, cells, parts, colour } = grid;
  if (channel === null || channel >= outputChannels(of) || of.rowOf !== null) return "";
  const cell = weights.cellOf(grid, channel);
  if (cell < 0) return `channel ${channel} · its kernels are not drawn`;
  const isAlone = of.inputs === 1 || colour;
  return `channel ${channel}${isAlone ? ` · ${weightRange(grid, parts[0], cells[cell])}` : ""}`;
}

/** Height that the kernels about fit, CSS px. */
const WINDOW = 320;

/** `said` describes what is pointed at. @param {{grid: KernelCells, label: string, said: (text: string) => void}} props */
function Tiles({ grid, label, said }) {
  const placedIn = (/** @type {HTMLElement} */ canvas) => {
    const available = canvas.parentElement?.clientWidth ?? 0;
    const ratio = window.devicePixelRatio || 1;
    return kernelLayout(grid, { tile: 0, available, windowHeight: WINDOW, ratio });
  };
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const placed = placedIn(canvas);
    const width = Math.max(canvas.parentElement?.clientWidth ?? 0, placed.width);
    const size = { width, height: placed.height, ratio: window.devicePixelRatio || 1 };
    const look = { ...theme(), background: theme().panel, palette: "signed" };
    const where = { top: 0, ...size, selected: null, hovered: null };
    paintKernels(prepare(canvas, width, placed.height), grid, placed, where, look);
  };
  /** @param {MouseEvent & {currentTarget: HTMLElement}} event */
  const point = ({ currentTarget, clientX, clientY }) => {
    const box = currentTarget.getBoundingClientRect();
    const at = hit(placedIn(currentTarget), clientX - box.left, clientY - box.top);
    said(at ? describeKernel(grid, at) : "");
  };
  return html`<${Painted} role="img" aria-label=${label} paint=${paint} onMouseMove=${point} onMouseLeave=${() => said("")} />`;
}

/** @param {{app: import("../app.js").App, model: Model}} props */
export function ChannelKernels({ app, model: { scene, state } }) {
  const value = useRef(/** @type {HTMLElement|null} */ (null));
  const say = (/** @type {string} */ text) =>
    void (value.current && (value.current.textContent = text));
  const grid = scene?.kind === "kernels" ? scene.grid : null;
  if (!grid) return null;
  const { channel } = state;
  const { planes, all } = channel === null ? { planes: [], all: 0 } : kernelsOf(grid.of, channel);
  const note = instead(grid, channel, planes.length);
  const label = `kernels of channel ${channel}`;
  const columns = grid.of.rows ? 1 : 0;
  const each = { ...grid, colour: false, cells: planes, columns, down: "inputs" };
  const title = "Over the drawn kernels, from the stored picture with one byte per weight";
  return html`
    <section class=${channel === null ? "kernels" : "kernels open"} aria-label="Kernels of a channel">
      ${channel !== null && html`<${ChannelHead} app=${app} name=${`Kernels of channel ${channel}`} />`}
      ${
        planes.length > 0 &&
        html`
          <div class="channel-body">
            <p class="kernel-value" aria-live="polite" ref=${value} />
            ${grid.colour && html`<${Tiles} grid=${{ ...grid, cells: planes.slice(0, 1) }} label=${label} said=${say} />`}
            <${Tiles} grid=${each} label=${`${label}, one per input`} said=${say} />
            <table class="kernel-numbers" title=${title}>${numberRows(grid, planes, all)}</table>
          </div>
        `
      }
      ${note && html`<p class="note">${note}</p>`}
    </section>
  `;
}

/** Said instead of kernels. @param {KernelCells} grid @param {number|null} channel @param {number} count of drawn kernels */
function instead({ of }, channel, count) {
  if (of.rowOf !== null) {
    return "The weight has two axes, and its rows are no channels: the kernels are computed from it.";
  }
  if (channel === null) {
    return "Click a kernel or press ] to see all kernels of its output channel with their weights.";
  }
  if (count) return "";
  return (
    "No kernel of this channel is drawn: the picture has the first " +
    `${of.outputs} of ${of.allOutputs} output channels.`
  );
}

/** @param {KernelCells} grid @param {number[]} planes of the channel @param {number} all kernels, drawn or not */
function numberRows({ sides }, planes, all) {
  const found = sides.map(({ kernels }) => kernels && weights.measured(kernels, planes));
  /** @param {string} text @param {string[]} cells */
  const row = (text, cells) =>
    html`<tr><th scope="row">${text}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  /** @param {(of: ReturnType<typeof weights.measured>) => [number, number]} pick a number and its uncertainty */
  const numbers = (pick) =>
    found.map((of) => {
      const [value, unit] = of ? pick(of) : [NaN, 0];
      if (!Number.isFinite(value)) return "–";
      return `${short(value)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
    });
  const bad = numbers((of) => [of.bad, 0]);
  const differences = sides.slice(1).map(({ difference: of }) => differenceNorm(of, planes));
  const several = sides.length > 1;
  const heads = sides.map(({ letter }) => html`<th scope="col">${letter}</th>`);
  const [least, most] = [numbers((of) => [of.lo, of.unit]), numbers((of) => [of.hi, of.unit])];
  const norms = numbers((of) => [of.norm, of.normUnit]);
  return [
    several && html`<tr><th />${heads}</tr>`,
    ...[row("Minimum", least), row("Maximum", most), row("Norm", norms)],
    found.some((of) => of?.bad) && row("Not finite", bad),
    several && row("Norm of A − …", ["", ...differences]),
    row("Drawn", [`${planes.length} of ${all} inputs`]),
  ];
}

/** 2-norm of a difference. @param {import("../model/value_scale.js").Difference|null} difference @param {number[]} planes */
function differenceNorm(difference, planes) {
  if (!difference) return "–";
  const size = difference.height * difference.width;
  let square = 0;
  for (const plane of planes) {
    for (const value of difference.values.subarray(plane * size, (plane + 1) * size)) {
      square += value * value;
    }
  }
  return short(Math.sqrt(square));
}
