// @ts-check
/** Describes kernels under the pointer, and moves between the output channels they belong to. */

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
import { button, h, say, show } from "./dom.js";

// Describes kernels under the pointer, and moves between the output channels they belong to.

/** @typedef {import("../model/kernel_scene.js").KernelCells} KernelCells */
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

// All kernels of the selected output channel, enlarged, with their numbers.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */

/** Height that the kernels about fit, CSS px. */
const WINDOW = 320;

/** A canvas of kernels. @param {(text: string) => void} said describes what is under the pointer */
function createTiles(said) {
  const canvas = h("canvas", { role: "img" });
  /** @type {{grid: KernelCells, placed: import("../picture/tile_layout.js").Layout}|null} */
  let drawn = null;
  /** The pointer in the page, while it is over the canvas. @type {MouseEvent|null} */
  let pointer = null;

  function readOut() {
    if (!pointer || !drawn) return;
    const box = canvas.getBoundingClientRect();
    const at = hit(drawn.placed, pointer.clientX - box.left, pointer.clientY - box.top);
    said(at ? describeKernel(drawn.grid, at) : "");
  }
  canvas.addEventListener("mousemove", (event) => {
    pointer = event;
    readOut();
  });
  canvas.addEventListener("mouseleave", () => {
    pointer = null;
    said("");
  });

  /** @param {KernelCells|null} grid @param {number} width CSS px @param {string} label */
  function draw(grid, width, label) {
    show(canvas, Boolean(grid));
    if (!grid) {
      pointer = drawn = null;
      return;
    }
    const ratio = window.devicePixelRatio || 1;
    const placed = kernelLayout(grid, { tile: 0, available: width, windowHeight: WINDOW, ratio });
    drawn = { grid, placed };
    const wide = Math.max(width, placed.width);
    const context = prepare(canvas, wide, placed.height);
    const where = { top: 0, width: wide, height: placed.height, selected: null, hovered: null };
    const look = { ...theme(), background: theme().panel, palette: "signed" };
    paintKernels(context, grid, placed, { ...where, ratio }, look);
    canvas.setAttribute("aria-label", label);
    readOut();
  }
  return { canvas, draw };
}

/** @param {App} app */
export function createKernels(app) {
  const name = h("h2");
  const value = h("p", { class: "kernel-value", "aria-live": "polite" });
  const read = (/** @type {string} */ text) => say(value, text);
  const colour = createTiles(read);
  const tiles = createTiles(read);
  const table = h("table", { class: "kernel-numbers" });
  table.title = "Over the drawn kernels, from the stored picture with one byte per weight";
  const note = h("p", { class: "note" });
  const move = (/** @type {number} */ by) => () => app.moveChannel(by);
  const close = () => app.update({ channel: null });
  const head = h(
    "div",
    { class: "row spread" },
    name,
    h(
      "span",
      { class: "row" },
      button({ icon: "previous", label: "Channel before", key: "[", press: move(-1) }),
      button({ icon: "next", label: "Channel after", key: "]", press: move(1) }),
      button({ icon: "close", label: "Close the channel", key: "Esc", press: close }),
    ),
  );
  const body = h("div", { class: "channel-body" }, value, colour.canvas, tiles.canvas, table);
  const element = h(
    "section",
    { class: "kernels", "aria-label": "Kernels of a channel" },
    head,
    body,
    note,
  );

  /** @param {Model} model */
  function draw({ scene, state }) {
    const grid = scene?.kind === "kernels" ? scene.grid : null;
    show(element, Boolean(grid));
    if (!grid) return;
    const { channel } = state;
    element.classList.toggle("open", channel !== null);
    const { planes, all } = channel === null ? { planes: [], all: 0 } : kernelsOf(grid.of, channel);
    show(body, planes.length > 0);
    say(note, instead(grid, channel, planes.length));
    show(note, Boolean(note.textContent));
    if (channel === null) return;
    say(name, `Kernels of channel ${channel}`);
    if (!planes.length) return;
    const width = element.clientWidth - 24;
    const label = `kernels of channel ${channel}`;
    colour.draw(grid.colour ? { ...grid, cells: planes.slice(0, 1) } : null, width, label);
    const columns = grid.of.rows ? 1 : 0;
    tiles.draw(
      { ...grid, colour: false, cells: planes, columns, down: "inputs" },
      width,
      `${label}, one per input`,
    );
    table.replaceChildren(...numberRows(grid, planes, all));
  }
  return { element, draw };
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
  /**
   * @param {string} text
   * @param {(of: ReturnType<typeof measured>) => {number: number, unit?: number}} pick
   */
  const row = (text, pick) => {
    const cells = found.map((of) => {
      const { number, unit = 0 } = of ? pick(of) : { number: NaN };
      const known = Number.isFinite(number);
      return known && unit > 0
        ? `${short(number)} ± ${short(unit, 2)}`
        : known
          ? short(number)
          : "–";
    });
    return tableRow(text, cells);
  };
  const rows = [
    row("Minimum", ({ lo, unit }) => ({ number: lo, unit })),
    row("Maximum", ({ hi, unit }) => ({ number: hi, unit })),
    row("Norm", ({ norm, normUnit }) => ({ number: norm, unit: normUnit })),
  ];
  if (found.some((of) => of?.bad)) rows.push(row("Not finite", ({ bad }) => ({ number: bad })));
  const differences = sides.slice(1).map(({ difference }) => differenceNorm(difference, planes));
  if (differences.length) {
    rows.unshift(h("tr", {}, h("th"), ...sides.map(heading)));
    rows.push(tableRow("Norm of A − …", ["", ...differences]));
  }
  rows.push(tableRow("Drawn", [`${planes.length} of ${all} inputs`]));
  return rows;
}

/** @param {{letter: string}} side */
function heading({ letter }) {
  return h("th", { scope: "col", text: letter });
}

/** @param {string} text @param {string[]} cells */
function tableRow(text, cells) {
  return h(
    "tr",
    {},
    h("th", { scope: "row", text }),
    ...cells.map((cell) => h("td", { text: cell })),
  );
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
