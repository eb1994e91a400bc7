// @ts-check
/** Draws all channels of a layer, or its kernels, on a canvas as large as the visible part. */

import { layerText, origin } from "../model/compare.js";
import * as weights from "../model/kernel_scene.js";
import { columnOf, isDifference, partName } from "../model/scene.js";
import { short } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { faultOf, positionText, rangeText, valueText } from "../picture/captions.js";
import { paintKernels, weightRange } from "../picture/kernel_tiles.js";
import { ROW_SHARE, corner, hit, kernelLayout, layoutFor } from "../picture/layouts.js";
import { paintMaps } from "../picture/map_tiles.js";
import { valueAt } from "../server/decode.js";
import { kernelsOf, outputChannels } from "../server/kernels.js";
import { within } from "../server/steps.js";
import { html, useLayoutEffect, useState } from "../vendor/preact_htm.js";
import { ChannelHead, reveal } from "./controls.js";
import { Painted, useScrolled } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {Difference, KernelCells, MapsScene, Model, Part} from "../model/model.js" */
/** @import {Hit} from "./view.js" */

const HELP =
  "Channels of the layer. The up and down arrows move by a row, brackets by a channel, Enter " +
  "opens a channel.";

/**
 * `hovered` is the channel or plane under the pointer, `hover` says another one.
 * @param {{app: App, model: Model, hovered: number|null, hover: (channel: number|null) => void}}
 *   props
 */
export function Grid({ app, model, hovered, hover }) {
  const { scene, state } = model;
  const shown = scene?.kind === "none" ? null : scene;
  const kernels = shown?.kind === "kernels" ? shown.grid : null;
  const maps = shown?.kind === "maps" ? shown : null;
  const [said, say] = useState("");
  const { scroller, layout, pointedAt, again, view } = useScrolled({
    place: ({ width, height, ratio }) =>
      shown && layoutFor(shown, state.tile, width, height, ratio),
    paint(context, placed, window) {
      const look = { ...theme(), palette: state.colours };
      const marks = { selected: state.channel, hovered, chosen: state.channels };
      const where = { ...window, ...marks };
      if (maps) paintMaps(context, maps, placed, where, look, state.pixel);
      else if (kernels) paintKernels(context, kernels, placed, where, look);
    },
    inputs: [model, hovered],
    hit,
    pointed: readOut,
    click(at, event) {
      if (!shown) return;
      const plane = shown.order[at.cell]; // a channel, except of kernels
      app.pick(kernels ? weights.channelOf(kernels.of, plane) : plane, at, event);
    },
  });

  /** Describes what is under the pointer now; without a pointer, the selected channel. */
  function readOut() {
    const at = shown && pointedAt();
    const chosen = app.state.channel;
    if (kernels) say(at ? describeKernel(kernels, at) : describeChosen(kernels, chosen));
    else if (maps && at) say(describe(maps, at));
    else say(maps && chosen !== null && chosen < maps.channels ? spoken(maps, chosen) : "");
    const channel = at && shown ? shown.order[at.cell] : null;
    if (channel !== hovered) requestAnimationFrame(() => hover(channel));
  }

  function revealChannel() {
    const [{ current: placed }, { current: element }, { channel }] = [layout, scroller, state];
    if (!placed || !element || !shown || channel === null) return;
    const cell = kernels ? weights.cellOf(kernels, channel) : shown.order.indexOf(channel);
    if (cell < 0) return;
    const { left, top } = corner(placed, cell);
    // In a matrix of kernels a channel is a column, unless it is a row.
    if (kernels?.columns && kernels.down !== "outputs")
      reveal(element, "Left", left - placed.left, left + placed.cellWidth);
    else reveal(element, "Top", top - 10, top + placed.cellHeight);
    again();
  }
  useLayoutEffect(revealChannel, [state.layer, state.channel, state.sort]);
  useLayoutEffect(readOut, [model]);

  /**
   * Moves the selection by channels, or by rows of the grid.
   * @param {number} by @param {boolean} rows
   */
  function move(by, rows) {
    const all = kernels?.cells.map((plane) => weights.channelOf(kernels.of, plane)) ?? [];
    const outputs = [...new Set(all)].filter((each) => each >= 0).sort((a, b) => a - b);
    const order = maps ? maps.order : outputs;
    if (!order.length) return;
    const now = order.indexOf(app.state.channel ?? -1);
    const step = rows && !kernels ? by * (layout.current?.columns ?? 1) : by;
    app.update({ channel: order[now < 0 ? 0 : within(now + step, order.length)] });
  }

  /** Size of a tile on the screen, CSS px. */
  function shownTile() {
    const { current: placed } = layout;
    if (placed?.rows) return placed.tileHeight * ROW_SHARE;
    return placed ? Math.max(placed.tileWidth, placed.tileHeight) : 64;
  }
  app.page.grid = { move, shownTile };

  const why = model.problem || scene?.why || "";
  return html`
    <p class="note" role="status" hidden=${!why}>${why}</p>
    ${view("grid", HELP, !shown)}
    <div class="status" aria-live="polite">${said}</div>
  `;
}

/** Says what is still shown while something else is being loaded. @param {{model: Model}} props */
export function Loading({ model: { stale, scene } }) {
  const isOld = stale && scene !== null;
  const text = isOld
    ? `Loading. Still shown: ${layerText(scene.question.key)} · ${origin(scene.question)}`
    : "";
  return html`<p class="loading" role="status" hidden=${!isOld}>${text}</p>`;
}

/**
 * A channel, and its column if there are several.
 * @param {MapsScene} scene @param {number} channel @param {Part} part
 */
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
 * What is under the pointer.
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

/**
 * The value at a position.
 * @param {MapsScene} scene @param {Part} part @param {number} channel @param {number} y
 * @param {number} x
 */
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

/**
 * The kernel, position and weight under the pointer.
 * @param {KernelCells} grid @param {NonNullable<Hit>} at
 */
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

/**
 * `said` describes what is pointed at.
 * @param {{grid: KernelCells, label: string, model: Model, said: (text: string) => void}} props
 */
function Tiles({ grid, label, model, said }) {
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
  return html`<${Painted} role="img" aria-label=${label} paint=${paint} of=${[model]}
    onMouseMove=${point} onMouseLeave=${() => said("")} />`;
}

/** @param {{app: App, model: Model}} props */
export function ChannelKernels({ app, model }) {
  const { scene, state } = model;
  const [value, say] = useState("");
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
    <section class=${channel === null ? "kernels" : "kernels open"}
      aria-label="Kernels of a channel">
      ${
        channel !== null &&
        html`<${ChannelHead} app=${app}
        name=${`Kernels of channel ${channel}`} />`
      }
      ${
        planes.length > 0 &&
        html`
          <div class="channel-body">
            <p class="kernel-value" aria-live="polite">${value}</p>
            ${
              grid.colour &&
              html`<${Tiles} grid=${{ ...grid, cells: planes.slice(0, 1) }}
              label=${label} model=${model} said=${say} />`
            }
            <${Tiles} grid=${each} label=${`${label}, one per input`} model=${model} said=${say} />
            <table class="kernel-numbers" title=${title}>${numberRows(grid, planes, all)}</table>
          </div>
        `
      }
      ${note && html`<p class="note">${note}</p>`}
    </section>
  `;
}

/**
 * Said instead of kernels.
 * @param {KernelCells} grid @param {number|null} channel @param {number} count of drawn kernels
 */
function instead({ of }, channel, count) {
  if (of.rowOf !== null) {
    return (
      "The weight has two axes, and its rows are no channels: the kernels are computed " +
      "from it."
    );
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
 * @param {number} all kernels, drawn or not
 */
function numberRows({ sides }, planes, all) {
  const found = sides.map(({ kernels }) => kernels && weights.measured(kernels, planes));
  /** @param {string} text @param {string[]} cells */
  const row = (text, cells) =>
    html`<tr><th scope="row">${text}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`;
  /**
   * @param {(of: ReturnType<typeof weights.measured>) => [number, number]} pick a number and its
   *   uncertainty
   */
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

/** 2-norm of a difference. @param {Difference|null} difference @param {number[]} planes */
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
