// @ts-check
/** Draws all channels of a layer, or its kernels, on a canvas as large as the visible part. */

import { layerText, origin } from "../model/compare.js";
import * as weights from "../model/kernel_cells.js";
import { partName } from "../model/scene.js";
import { unitOf } from "../model/value_scale.js";
import { inWordsOf, short, tileText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { faultOf, placeText, rangeText, valueText } from "../picture/captions.js";
import { paintGrid } from "../picture/grid_tiles.js";
import { ROW_SHARE, corner, hit, layoutFor } from "../picture/layouts.js";
import { valueAt } from "../server/decode.js";
import { channelsOf, kernelsOf, placeOf } from "../server/kernels.js";
import { within } from "../server/steps.js";
import { html, useLayoutEffect, useState } from "../vendor/preact_htm.js";
import { ChannelHead, reveal } from "./controls.js";
import { Painted, useScrolled } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {AnyScene, Difference, GridScene, KernelsScene, Model, Part} from "../model/model.js" */
/** @import {Over} from "../picture/picture.js" */
/** @import {Kernels} from "../server/server.js" */
/** @import {Hit} from "./view.js" */

const HELP = "The up and down arrows move by a row, brackets by a channel, Enter opens a channel.";

/** The inputs that heads of attention lie over. @param {Model} model @returns {{over?: Over}} */
export function overInput({ scene, overlay, input, sides }) {
  if (scene?.kind !== "maps" || scene.maps.header.unit !== "head" || !overlay) return {};
  const images = scene.columns.map((_, i) => sides?.each[i]?.input ?? (i ? null : input));
  return { over: { images, alpha: 1 - overlay / 100 } };
}

/**
 * `hovered` is the channel or plane under the pointer, `hover` says another one.
 * @param {{app: App, model: Model, hovered: number|null, hover: (channel: number|null) => void}}
 *   props
 */
export function Grid({ app, model, hovered, hover }) {
  const { scene, state } = model;
  const shown = scene?.kind === "none" ? null : scene;
  const kernels = shown?.kind === "kernels" ? shown : null;
  const [said, say] = useState("");
  const { scroller, layout, pointedAt, again, view } = useScrolled({
    place: ({ width, height, ratio }) =>
      shown && layoutFor(shown, state.tile, width, height, ratio),
    paint(context, placed, window) {
      const look = { ...theme(), palette: state.colours, ...overInput(model) };
      const marks = { selected: state.channel, hovered, chosen: state.channels };
      const where = { ...window, ...marks };
      if (shown) paintGrid(context, shown, placed, where, look, kernels ? null : state.pixel);
    },
    inputs: [model, hovered],
    hit,
    pointed: readOut,
    click(at, event) {
      if (!shown) return;
      app.pick(weights.channelIn(shown, shown.order[at.cell]), at, event);
    },
  });

  /** Describes what is under the pointer now; without a pointer, the selected channel. */
  function readOut() {
    const at = shown && pointedAt();
    const chosen = app.state.channel;
    const isKnown = shown && chosen !== null && chosen < shown.channels;
    if (shown && at) say(describe(shown, at));
    else say(isKnown ? describeChosen(shown, chosen) : "");
    const channel = at && shown ? shown.order[at.cell] : null;
    if (channel !== hovered) requestAnimationFrame(() => hover(channel));
  }

  function revealChannel() {
    const [{ current: placed }, { current: element }, { channel }] = [layout, scroller, state];
    if (!placed || !element || !shown || channel === null) return;
    const cell = weights.cellOf(shown, channel);
    if (cell < 0) return;
    const { left, top } = corner(placed, cell);
    // In a matrix of kernels a channel is a column, unless it is a row.
    if (kernels?.arranged.columns && kernels.arranged.down !== "outputs")
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
    const all = kernels?.order.map((plane) => weights.channelIn(kernels, plane)) ?? [];
    const outputs = [...new Set(all)].filter((each) => each >= 0).sort((a, b) => a - b);
    const order = kernels ? outputs : (shown?.order ?? []);
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
    ${view("grid", inWordsOf(HELP), !shown)}
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
 * A channel or kernel, and its column if there are several.
 * @param {GridScene} scene @param {number} channel @param {Part} part
 */
function named(scene, channel, part) {
  const several = scene.columns.length > 1;
  const tile = tileText(scene.maps.header, channel);
  if (scene.kind === "maps") return `${tile}${several ? ` of ${partName(part)}` : ""}`;
  return `${weights.kernelName(scene, channel)}${several ? ` · ${partName(part)}` : ""}`;
}

/** Describes a channel. @param {GridScene} scene @param {number} channel @param {Part} part */
function spoken(scene, channel, part = scene.parts[0]) {
  const fault = faultOf(scene, part, channel);
  const range = rangeText(scene, part, channel) || "no picture";
  const [number] = scene.sorting.texts?.(channel) ?? [];
  const sorted = number ? ` · ${number}` : "";
  return `${named(scene, channel, part)} · ${range}${fault ? ` · ${fault.word}` : ""}${sorted}`;
}

/**
 * What is under the pointer.
 * @param {GridScene} scene @param {NonNullable<Hit>} at
 */
function describe(scene, at) {
  const channel = scene.order[at.cell];
  const part = scene.parts[at.part];
  const { side } = scene.columns[part.column];
  if (at.u === null || at.v === null || !side) return spoken(scene, channel, part);
  const y = Math.floor(at.v * side.planes.height);
  const x = Math.floor(at.u * side.planes.width);
  const place = placeText(scene, y, x);
  return `${named(scene, channel, part)} · ${place} · ${reading(scene, part, channel, y, x)}`;
}

/**
 * The value at a position; of an RGB kernel all three.
 * @param {AnyScene} scene @param {Part} part @param {number} channel @param {number} y
 * @param {number} x
 */
export function reading(scene, part, channel, y, x) {
  const { side, difference: between } = scene.columns[part.column];
  const isBetween = part.isDifference;
  if (!side) return "no picture";
  if (isBetween && !between) return "no difference";
  const valueOf = (/** @type {number} */ plane) => {
    if (!isBetween || !between) return valueText(valueAt(side, plane, y, x));
    const value = between.values[(plane * between.height + y) * between.width + x];
    if (Number.isNaN(value)) return "non-finite on at least one side";
    return valueText({ value, unit: unitOf(scene.a, plane) + unitOf(side, plane), mark: 0 });
  };
  const what = isBetween ? "difference " : "";
  const [plane, ...others] = weights.planesIn(scene, channel);
  if (scene.kind !== "kernels" || !others.length) return `${what}${valueOf(plane)}`;
  const { a } = scene;
  const { output, input } = placeOf(a, plane);
  const parts = ["red", "green", "blue"].map((paint, c) => {
    const from = channelsOf(a, output, input + c).input;
    return `${paint} (input ${from}) ${valueOf(plane + c)}`;
  });
  return what + parts.join(", ");
}

// Kernels in words, and those of the open output channel enlarged, with their numbers.

/** Describes the selected channel. @param {GridScene} scene @param {number} channel */
function describeChosen(scene, channel) {
  if (scene.kind === "maps") return spoken(scene, channel);
  const cell = weights.cellOf(scene, channel);
  if (cell < 0) return `channel ${channel} · its kernels are not drawn`;
  const isAlone = scene.a.inputs === 1 || scene.arranged.isColour;
  return isAlone ? spoken(scene, scene.order[cell]) : `channel ${channel}`;
}

/** Height that the kernels about fit, CSS px. */
const WINDOW = 320;

/**
 * `said` describes what is pointed at.
 * @param {{scene: KernelsScene, label: string, model: Model, said: (text: string) => void}} props
 */
function Tiles({ scene, label, model, said }) {
  const placedIn = (/** @type {HTMLElement} */ canvas) => {
    const available = canvas.parentElement?.clientWidth ?? 0;
    const ratio = window.devicePixelRatio || 1;
    return layoutFor(scene, 0, available, WINDOW, ratio);
  };
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const placed = placedIn(canvas);
    const width = Math.max(canvas.parentElement?.clientWidth ?? 0, placed.width);
    const size = { width, height: placed.height, ratio: window.devicePixelRatio || 1 };
    const look = { ...theme(), background: theme().panel, palette: "signed" };
    paintGrid(prepare(canvas, width, placed.height), scene, placed, { top: 0, ...size }, look);
  };
  /** @param {MouseEvent & {currentTarget: HTMLElement}} event */
  const point = ({ currentTarget, clientX, clientY }) => {
    const box = currentTarget.getBoundingClientRect();
    const at = hit(placedIn(currentTarget), clientX - box.left, clientY - box.top);
    said(at ? describe(scene, at) : "");
  };
  return html`<${Painted} role="img" aria-label=${label} paint=${paint} of=${[model]}
    onMouseMove=${point} onMouseLeave=${() => said("")} />`;
}

/** @param {{app: App, model: Model}} props */
export function ChannelKernels({ app, model }) {
  const { scene, state } = model;
  const [value, say] = useState("");
  if (scene?.kind !== "kernels") return null;
  const { channel } = state;
  const { planes, all } = channel === null ? { planes: [], all: 0 } : kernelsOf(scene.a, channel);
  const note = instead(scene.a, channel, planes.length);
  const label = `kernels of channel ${channel}`;
  const arranged = { isColour: false, columns: scene.a.rows ? 1 : 0, down: "inputs" };
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
              scene.arranged.isColour &&
              html`<${Tiles} scene=${{ ...scene, order: planes.slice(0, 1) }}
              label=${label} model=${model} said=${say} />`
            }
            <${Tiles} scene=${{ ...scene, order: planes, arranged }}
              label=${`${label}, one per input`} model=${model} said=${say} />
            <table class="kernel-numbers" title=${title}>${numberRows(scene, planes, all)}</table>
          </div>
        `
      }
      ${note && html`<p class="note">${note}</p>`}
    </section>
  `;
}

/**
 * Said instead of kernels.
 * @param {Kernels} of @param {number|null} channel @param {number} count of drawn kernels
 */
function instead(of, channel, count) {
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
 * @param {KernelsScene} scene @param {number[]} planes of the channel
 * @param {number} all kernels, drawn or not
 */
function numberRows({ columns }, planes, all) {
  const found = columns.map(({ side }) => side && weights.measured(side, planes));
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
  const differences = columns.slice(1).map(({ difference: of }) => differenceNorm(of, planes));
  const several = columns.length > 1;
  const heads = columns.map(({ letter }) => html`<th scope="col">${letter}</th>`);
  const [least, most] = [numbers((of) => [of.lo, of.unit]), numbers((of) => [of.hi, of.unit])];
  const norms = numbers((of) => [of.norm, of.normUnit]);
  return [
    several && html`<tr><th />${heads}</tr>`,
    ...[row("Minimum", least), row("Maximum", most), row("Norm", norms)],
    found.some((of) => of?.bad) && row("Not finite", bad),
    several && row("Norm of A − B", ["", ...differences]),
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
