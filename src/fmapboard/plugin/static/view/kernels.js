// @ts-check
/** Kernels in words, and those of the open output channel enlarged, with their numbers. */

import {
  cellOf,
  channelOf,
  kernelName,
  measured,
  partName,
  position,
  weightText,
} from "../model/kernel_scene.js";
import { short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { paintKernels, rangeText } from "../picture/kernel_paint.js";
import { kernelLayout } from "../picture/scene_layout.js";
import { hit } from "../picture/tile_layout.js";
import { kernelsOf, outputChannels } from "../server/kernels.js";
import { html, useRef } from "../vendor/preact_htm.js";
import { ChannelHead, Painted } from "./controls.js";

/** @typedef {import("../model/kernel_scene.js").KernelCells} KernelCells */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {ReturnType<typeof import("../picture/tile_layout.js").hit>} Hit */

/**
 * The kernel, position and weight under the pointer.
 * @param {KernelCells} grid @param {NonNullable<Hit>} at
 */
export function describeKernel(grid, at) {
  const { of } = grid;
  const plane = grid.cells[at.cell];
  const part = grid.parts[at.part];
  const side = grid.sides.length > 1 ? ` · ${partName(grid, part)}` : "";
  const name = `${kernelName(grid, plane)}${side}`;
  if (at.u === null || at.v === null) return `${name} · ${rangeText(grid, part, plane)}`;
  const y = Math.floor(at.v * of.height);
  const x = Math.floor(at.u * of.width);
  return `${name} · ${position(of, y, x)} · ${weightText(grid, part, plane, y, x)}`;
}

/** Describes the selected channel. @param {KernelCells} grid @param {number|null} channel */
export function describeChosen(grid, channel) {
  if (channel === null || channel >= outputChannels(grid.of)) return "";
  const cell = cellOf(grid, channel);
  if (grid.of.rowOf !== null) return "";
  if (cell < 0) return `channel ${channel} · its kernels are not drawn`;
  const alone = grid.of.inputs === 1 || grid.colour;
  const range = rangeText(grid, grid.parts[0], grid.cells[cell]);
  return alone ? `channel ${channel} · ${range}` : `channel ${channel}`;
}

/**
 * The output channel that is `by` drawn ones away from the selected one; the first one if there is
 * none.
 * @param {KernelCells} grid @param {number|null} channel @param {number} by
 */
export function channelAway({ of, cells }, channel, by) {
  if (of.rowOf !== null) return channel;
  const drawn = new Set(cells.map((plane) => channelOf(of, plane)));
  const known = [...drawn].sort((a, b) => a - b);
  const now = channel === null ? -1 : known.indexOf(channel);
  return known[now < 0 ? 0 : Math.min(known.length - 1, Math.max(0, now + by))];
}

/**
 * Channel of a cell: of kernels the output channel.
 * @param {import("../model/scene.js").Scene} scene @param {number} cell
 */
export function channelAt(scene, cell) {
  const plane = scene.order[cell];
  return scene.kind === "kernels" && scene.grid ? channelOf(scene.grid.of, plane) : plane;
}

/**
 * Scrolls a column of a matrix of kernels into view, if a channel is a column there.
 * @param {import("../model/scene.js").Scene} scene @param {HTMLElement} scroller
 * @param {number} left of the column, CSS px @param {import("../picture/tile_layout.js").Layout} of
 */
export function revealColumn(scene, scroller, left, of) {
  if (scene.kind !== "kernels" || !scene.grid?.columns || scene.grid.down === "outputs")
    return false;
  const right = left + of.cellWidth;
  if (left - of.left < scroller.scrollLeft) scroller.scrollLeft = left - of.left;
  else if (right > scroller.scrollLeft + scroller.clientWidth) {
    scroller.scrollLeft = right - scroller.clientWidth;
  }
  return true;
}

/**
 * First cell of a channel, -1 for none.
 * @param {import("../model/scene.js").Scene} scene @param {number} channel
 */
export function cellOfChannel(scene, channel) {
  const kernels = scene.kind === "kernels" ? scene.grid : null;
  return kernels ? cellOf(kernels, channel) : scene.order.indexOf(channel);
}

/** Height that the kernels about fit, CSS px. */
const WINDOW = 320;

/**
 * A canvas of kernels.
 * @param {{grid: KernelCells, label: string, said: (text: string) => void}} props `said` describes
 *   what is under the pointer
 */
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

/**
 * What there is to say instead of kernels.
 * @param {KernelCells} grid @param {number|null} channel @param {number} count of drawn kernels
 */
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

/**
 * @param {KernelCells} grid @param {number[]} planes of the channel
 * @param {number} all number of its kernels, drawn or not
 */
function numberRows({ sides }, planes, all) {
  const found = sides.map(({ kernels }) => kernels && measured(kernels, planes));
  /** @param {string} text @param {string[]} cells */
  const row = (text, cells) =>
    html`<tr><th scope="row">${text}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  /** @param {(of: ReturnType<typeof measured>) => [number, number]} pick a number and its uncertainty */
  const numbers = (pick) =>
    found.map((of) => {
      const [value, unit] = of ? pick(of) : [NaN, 0];
      if (!Number.isFinite(value)) return "–";
      return `${short(value)}${unit > 0 ? ` ± ${short(unit, 2)}` : ""}`;
    });
  const bad = numbers((of) => [of.bad, 0]);
  const differences = sides.slice(1).map(({ difference: of }) => differenceNorm(of, planes));
  const several = sides.length > 1;
  return [
    several &&
      html`<tr><th />${sides.map(({ letter }) => html`<th scope="col">${letter}</th>`)}</tr>`,
    row(
      "Minimum",
      numbers(({ lo, unit }) => [lo, unit]),
    ),
    row(
      "Maximum",
      numbers(({ hi, unit }) => [hi, unit]),
    ),
    row(
      "Norm",
      numbers(({ norm, normUnit }) => [norm, normUnit]),
    ),
    found.some((of) => of?.bad) && row("Not finite", bad),
    several && row("Norm of A − …", ["", ...differences]),
    row("Drawn", [`${planes.length} of ${all} inputs`]),
  ];
}

/**
 * 2-norm of a difference, in words.
 * @param {import("../model/value_scale.js").Difference|null} difference @param {number[]} planes
 */
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
