// @ts-check
/** Describes kernels under the pointer, and moves between the output channels they belong to. */

import { outputChannels } from "../data/kernels.js";
import {
  cellOf,
  channelOf,
  kernelName,
  partName,
  position,
  weightText,
} from "../draw/kernel_scene.js";
import { rangeText } from "../draw/kernel_paint.js";

/** @typedef {import("../draw/kernel_scene.js").KernelCells} KernelCells */
/** @typedef {ReturnType<typeof import("../draw/tile_layout.js").hit>} Hit */

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
 * @param {import("../draw/scene.js").Scene} scene @param {number} cell
 */
export function channelAt(scene, cell) {
  const plane = scene.order[cell];
  return scene.kind === "kernels" && scene.grid ? channelOf(scene.grid.of, plane) : plane;
}

/**
 * Scrolls a column of a matrix of kernels into view, if a channel is a column there.
 * @param {import("../draw/scene.js").Scene} scene @param {HTMLElement} scroller
 * @param {number} left of the column, CSS px @param {import("../draw/tile_layout.js").Layout} of
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
 * @param {import("../draw/scene.js").Scene} scene @param {number} channel
 */
export function cellOfChannel(scene, channel) {
  const kernels = scene.kind === "kernels" ? scene.grid : null;
  return kernels ? cellOf(kernels, channel) : scene.order.indexOf(channel);
}
