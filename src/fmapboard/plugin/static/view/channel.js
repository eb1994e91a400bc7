// @ts-check
/** One channel enlarged: its maps, numbers and history, and what excites it most. */

import * as plots from "../chart/plot.js";
import { origin, sideName } from "../model/compare.js";
import { spanOf } from "../model/look.js";
import { cropsOf } from "../model/patches.js";
import { BETWEEN, flags, isDifference, mapsOf, partName } from "../model/scene.js";
import { explanation } from "../model/terms.js";
import { drawnOf } from "../model/value_scale.js";
import { deadWord, inWordsOf, kindOf, short, stepText, tileText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { differenceRange, drawnRange, placeText, tokensOf } from "../picture/captions.js";
import { isDrawn } from "../picture/grid_tiles.js";
import { paint as paintTiles, pictureTile } from "../picture/painter.js";
import { valueAt } from "../server/decode.js";
import { html, useState } from "../vendor/preact_htm.js";
import { Chart, Key, coloursOf, ofColumns } from "./charts.js";
import { Button, ChannelHead, Toggle, typed } from "./controls.js";
import { Painted } from "./hooks.js";
import { reading } from "./grid.js";
import { channelChange } from "./layers.js";
import { Bar } from "./head.js";
import { putPoint } from "./point.js";

/** @import {App} from "../app.js" */
/** @import {Crop, Flags, LayerPatches, MapsScene, Model, Part} from "../model/model.js" */
/** @import {PatchesShown, Point, Question, Side} from "../model/model.js" */
/** @import {Maps} from "../server/server.js" */

/** Heights of the history and of the values of a sequence, and longer side of a crop, CSS px. */
const [HISTORY, PROFILE, CROP] = [110, 96, 76];

/** @param {{app: App, model: Model}} props */
export function Channel({ app, model }) {
  const { state, scene } = model;
  const { channel } = state;
  if (scene?.kind !== "maps") return null;
  if (channel === null || channel >= scene.channels) {
    return html`
      <section class="channel" aria-label=${inWordsOf("Channel")}>
        <p class="note">
          ${inWordsOf("Click any channel or press ] to enlarge it and read its values.")}
        </p>
      </section>
    `;
  }
  const of = { app, model, scene, channel };
  const parts = scene.columns.map((_, i) => mapsOf(i));
  if (scene.parts.some(isDifference)) parts.push(BETWEEN);
  return html`
    <section class="channel open" aria-label=${inWordsOf("Channel")}>
      <${ChannelHead} app=${app} name=${headingOf(tileText(scene.maps.header, channel))}>
        <${Button} text="Film strip" keys="m"
          label=${inWordsOf("This channel at all steps in a row")}
          press=${() => app.toggleFilm()} />
      <//>
      <div class="channel-body">
        <div class="pictures">
          ${parts.map(
            (part) => html`<${ChannelPicture} key=${partName(part)}
            part=${part} ...${of} />`,
          )}
        </div>
        <${Text} ...${of} />
        ${scene.rows && html`<${Profile} colours=${ofColumns()} ...${of} />`}
        ${
          !scene.ownScale &&
          html`<${Bar} range=${drawnRange(scene, channel)} palette=${state.colours}
            title=${drawnOf(scene, state)} />`
        }
        ${
          // A sequence cannot be laid over an image.
          model.hasInput &&
          !scene.rows &&
          html`
            <div class="row overlay">
              <${Toggle} text="Over input" title="Lay the map over the network's input (o)"
                isOn=${model.overlay > 0} press=${() => app.toggleOverlay()} />
              ${
                model.overlay > 0 &&
                html`<input type="range" min="0" max="100" step="5" class="slider"
                  aria-label="Opacity over the input image" value=${model.overlay}
                  onInput=${typed((percent) => app.update({ overlay: Number(percent) }))} />`
              }
            </div>
          `
        }
        ${model.patches && html`<${Patches} shown=${model.patches} />`}
        <${Numbers} ...${of} />
        <${History} ...${of} />
      </div>
    </section>
  `;
}

// The parts of images that excite the open channel most, with their values.

/** @param {{shown: PatchesShown}} props */
function Patches({ shown: { found, problem, channel, step } }) {
  if (!found) return html`<p class="note">${problem}</p>`;
  const { header } = found;
  const crops = cropsOf(found, channel);
  const note = noteText(found, channel);
  const each = header.one_per_image ? ", one crop per image" : "";
  return html`
    <div data-part="patches">
      <h3>
        <span ...${explanation("patches")}>
          ${
            crops.length && !(crops[0].value > 0)
              ? "Largest values, none above 0"
              : "Excited " + "most by"
          }
        </span>
        <span class="value">${header.images} images${each}, step ${step}</span>
      </h3>
      <div class="patches">
        ${crops.map((crop, i) => html`<${Patch} key=${i} found=${found} crop=${crop} rank=${i} />`)}
      </div>
      ${note && html`<p class="note">${note}</p>`}
    </div>
  `;
}

/**
 * What is not shown, and why; "" for nothing.
 * @param {LayerPatches} found @param {number} channel
 */
function noteText({ header, arrays, picture }, channel) {
  const { searched, channels, lost_at: lost } = header;
  if (channel >= searched) {
    return `Only channels 0…${searched - 1} of ${channels} were searched.`;
  }
  if (!picture) return "TensorBoard does not keep the picture of these patches.";
  const nan = arrays.nan?.values[channel] ?? 0;
  const whole = lost ? `The field is given as the whole image: ${lost}.` : "";
  return [nan ? `${nan} NaN values were left out.` : "", whole].filter(Boolean).join(" ");
}

/** @param {{found: LayerPatches, crop: Crop, rank: number}} props `rank` from 0 */
function Patch({ found: { header, picture }, crop, rank }) {
  const [height, width] = header.picture.cell;
  const scale = CROP / Math.max(width, height);
  const [wide, high] = [width, height].map((side) => `${Math.round(side * scale)}px`);
  const [top, left, bottom, right] = crop.field;
  const at = crop.place.length ? ` at (${crop.place.join(", ")})` : "";
  const text =
    `${rank + 1}. ${crop.name}: ${short(crop.value)}${at}; ` +
    `rows ${top}…${bottom - 1}, columns ${left}…${right - 1} of ${crop.size.join("×")} px`;
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    [canvas.width, canvas.height] = [width, height];
    const from = /** @type {const} */ ([crop.left, crop.top, width, height]);
    if (picture) canvas.getContext("2d")?.drawImage(picture, ...from, 0, 0, width, height);
  };
  return html`
    <figure title=${text} style=${{ width: wide }}>
      <${Painted} role="img" aria-label=${text} style=${{ width: wide, height: high }}
        paint=${paint} of=${[picture, crop]} />
      <figcaption>${short(crop.value)}</figcaption>
    </figure>
  `;
}

/**
 * The text that a head of attention looks at: the ground of a token is the stronger, the more.
 * @param {{scene: MapsScene, channel: number}} props
 */
function Text({ scene, channel }) {
  const names = tokensOf(scene);
  if (!names.length) return null;
  const values = profile(scene.a, channel);
  const [lo, hi] = drawnRange(scene, channel);
  return html`
    <p class="shaded" aria-label="Tokens of the text">
      ${names.map((name, i) => {
        const share = (70 * (values[i] - lo)) / (hi - lo);
        const ground = `color-mix(in srgb, var(--accent) ${share}%, transparent)`;
        return html`<span style=${{ background: ground }} title=${short(values[i])}>${name}</span>`;
      })}
    </p>
  `;
}

// A channel of a sequence as a line over positions, one per column.

/** Values of a channel, one per position. @param {Side} side @param {number} channel */
export function profile(side, channel) {
  return Array.from({ length: side.planes.width }, (_, x) => valueAt(side, channel, 0, x).value);
}

/**
 * @param {{scene: MapsScene, channel: number, colours: string[]}} props `colours` of the columns
 */
function Profile({ scene, channel, colours }) {
  const lines = scene.columns.map(({ side }) => (side ? profile(side, channel) : []));
  const values = plots.extent(lines);
  if (!values) return null;
  const { block } = scene.picture;
  const last = Math.max(...lines.map((line) => line.length)) - 1;
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const width = canvas.parentElement?.clientWidth ?? 0;
    const plot = plots.frame(canvas, width, PROFILE, [0, last * block], values);
    lines.forEach((line, i) => {
      const positions = line.map((_, x) => x * block);
      plots.drawLine(plot, positions, line, colours[i]);
    });
  };
  const name = tileText(scene.maps.header, channel);
  const label = `${name} over positions, ${short(values[0])} to ${short(values[1])}`;
  return html`
    <div>
      <h3><span>Over positions</span></h3>
      <${Painted} class="profile" role="img" aria-label=${label} paint=${paint} />
    </div>
  `;
}

/**
 * The channel over the steps.
 * @param {{app: App, model: Model, scene: MapsScene, channel: number}} props
 */
function History({ app, model, scene, channel }) {
  const { series: all, steps, stepWords: words } = model;
  const curves = all.flatMap((series) => {
    const of = (/** @type {string} */ stat) => {
      const { values, shape } = series.history?.arrays[`${series.role}.${stat}`] ?? {};
      return values && shape && channel < shape[1] ? plots.column(values, shape[1], channel) : null;
    };
    const [low, high, mean, std] = [of("minimum"), of("maximum"), of("mean"), of("std")];
    const at = series.history?.steps ?? [];
    const bad = of("nonfinite")?.map((count) => (count > 0 ? NaN : 0)) ?? low ?? [];
    return low && high ? [{ series, at, low, high, mean, std, bad }] : [];
  });
  const values = plots.extent(curves.flatMap(({ low, high }) => [low, high]));
  const span = spanOf(all);
  if (!values || !span) return null;
  const unit = kindOf(words);
  const paint = (/** @type {HTMLCanvasElement} */ canvas, /** @type {number} */ width) => {
    const plot = plots.frame(canvas, width, HISTORY, span, values, false, words);
    curves.forEach(({ series, at, low, high, mean, std, bad }, i) => {
      const { line, band } = coloursOf(all, series);
      if (i === 0) plots.drawBand(plot, at, low, high, band);
      if (mean && std) {
        const edge = (/** @type {number} */ sign) =>
          mean.map((m, k) => Math.min(high[k], Math.max(low[k], m + sign * std[k])));
        plots.drawBand(plot, at, edge(-1), edge(1), band);
      }
      if (mean) plots.drawLine(plot, at, mean, line);
      plots.drawNonfinite(plot, at, bad);
    });
    for (const at of new Set(scene.columns.map(({ question }) => question?.step))) {
      if (at !== undefined) plots.drawNow(plot, at, theme().text);
    }
  };
  const name = tileText(scene.maps.header, channel);
  const label = `${name} over ${unit}s, ${short(values[0])} to ${short(values[1])}`;
  const texts = [{ text: "range, mean ± std of the whole batch" }];
  return html`
    <${Chart} title=${`Over ${unit}s`} terms="batch std" ...${{ app, steps, texts, label, paint }}>
      <${Key} all=${all} />
    <//>
  `;
}

const ROWS = /** @type {[string, string][]} */ ([
  ["minimum", "Minimum"],
  ["maximum", "Maximum"],
  ["mean", "Mean"],
  ["std", "Std"],
  ["nan", "NaN"],
  ["positive_infinity", "+Inf"],
  ["negative_infinity", "−Inf"],
]);

/** The numbers of the channel on each side. @param {{scene: MapsScene, channel: number}} props */
function Numbers({ scene, channel }) {
  const all = scene.columns.map((each) => each.question);
  /** @type {{maps: Maps, question: Question, letters: string}[]} */
  const sides = [];
  for (const { maps, question, letter } of scene.columns) {
    if (!maps || !question) continue;
    // The numbers are of the whole batch: two samples share them.
    const same = sides.find((each) => each.maps === maps && each.question.role === question.role);
    if (same) same.letters += `, ${letter}`;
    else sides.push({ maps, question, letters: letter });
  }
  const rows = ROWS.flatMap(([stat, text]) => {
    const values = sides.map(
      ({ maps, question }) => maps.arrays[`${question.role}.${stat}`]?.values[channel] ?? NaN,
    );
    const isCount = !["minimum", "maximum", "mean", "std"].includes(stat);
    if (isCount && !values.some((value) => value > 0)) return [];
    const cells = values.map((value) => (isCount ? stepText(value || 0) : short(value, 4)));
    return [{ text, terms: stat === "std" ? stat : "", cells }];
  });
  const changes = sides.map(({ maps, question }) => channelChange(maps, question.role, channel));
  const states = sides.map(({ maps, question }) => stateText(flags(maps, question.role, channel)));
  rows.push({ text: "Change", terms: "change", cells: changes });
  rows.push({ text: "State", terms: "nonfinite large dead constant", cells: states });
  const batch = explanation("batch");
  const heads = sides.map(({ question, letters }) => {
    const name = sides.length > 2 ? letters : `${letters}: ${sideName(question, all)}`;
    return html`<th scope="col" title=${origin(question)}>${name}</th>`;
  });
  const isOne = sides.length === 1;
  return html`
    <table class="numbers"
      title="Over all images of the batch and all positions, as measured in training">
      <tr>
        ${isOne ? html`<td />` : html`<td ...${batch}>whole batch</td>`}
        ${isOne ? html`<th scope="col" ...${batch}>whole batch</th>` : heads}
      </tr>
      ${rows.map(
        ({ text, terms, cells }) => html`
          <tr key=${text}>
            <th scope="row" ...${terms ? explanation(terms) : {}}>${text}</th>
            ${cells.map((cell) => html`<td>${cell}</td>`)}
          </tr>
        `,
      )}
    </table>
  `;
}

/** A text with a capital. @param {string} text */
const headingOf = (text) => text[0].toUpperCase() + text.slice(1);

/** The faults of a channel in words. @param {Flags} of */
function stateText(of) {
  const faults = [
    of.nan + of.positive + of.negative > 0 && "non-finite",
    of.large && "large",
    of.dead && deadWord() + (of.after && ` after its ${of.after}`),
    of.constant && "constant",
  ];
  return faults.filter(Boolean).join(", ") || "no fault found";
}

// The enlarged map of a channel, with the value under the pointer.

/** Height of the row of pixels of a sequence, CSS px. */
const STRIP = 44;
/** Minimum width of a picture with its caption, CSS px. */
const MIN_WIDTH = 120;

/** What is said of the inputs of a difference, nothing if they are the same. */
const INPUTS = /** @type {Record<string, string>} */ ({
  different: " of different inputs",
  unknown: ", inputs not known",
});

/** @param {{app: App, model: Model, scene: MapsScene, channel: number, part: Part}} props */
export function ChannelPicture({ app, model, scene, channel, part }) {
  const [pointer, point] = useState(/** @type {Point|null} */ (null));
  const { state, sides, overlay } = model;
  const { column: i, isDifference: isBetween } = part;
  const several = scene.columns.length > 1;
  if (!isDrawn(scene, part)) {
    const said = `${partName(part)}: no picture`;
    return html`<figure><figcaption><span>${said}</span></figcaption></figure>`;
  }
  const { planes } = scene.a;
  const own = i ? sides?.each[i]?.input : model.input;
  const input = isBetween || overlay === 0 || scene.rows ? null : (own ?? null);
  const { side, question } = scene.columns[i];
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const figure = /** @type {HTMLElement} */ (canvas.parentElement);
    const available = figure.parentElement?.clientWidth ?? 0;
    const [width, height] = scene.rows ? [available, STRIP] : size(scene, input, available);
    figure.style.width = several ? `${Math.max(width, MIN_WIDTH)}px` : "";
    const ratio = window.devicePixelRatio || 1;
    const look = { ...theme(), background: theme().panel, palette: state.colours };
    const box = { left: 0, top: 0, width, height };
    const at = state.pixel && (scene.rows ? { ...state.pixel, v: 0.5 } : state.pixel);
    const isSmooth = scene.rows && planes.width > width * ratio;
    const tile = { ...pictureTile(scene, part, channel, box, look), isSmooth, point: at };
    const below = input ? [{ box, image: input, isSmooth: true, isGrey: true }] : [];
    const alpha = input ? overlay / 100 : 1;
    paintTiles(prepare(canvas, width, height), { top: 0, width, height, ratio }, look, [
      ...below,
      { ...tile, alpha, map: planes },
    ]);
  };
  /** @param {MouseEvent & {currentTarget: HTMLElement}} event @returns {Point} */
  const placeOf = ({ clientX, clientY, currentTarget }) => {
    const { left, top, width, height } = currentTarget.getBoundingClientRect();
    const within = (/** @type {number} */ at) => Math.min(0.9999, Math.max(0, at));
    return { u: within((clientX - left) / width), v: within((clientY - top) / height) };
  };
  let value = "";
  if (pointer) {
    const { height, width } = side?.planes ?? planes;
    const [y, x] = [Math.floor(pointer.v * height), Math.floor(pointer.u * width)];
    value = `${placeText(scene, y, x)}: ${reading(scene, part, channel, y, x)}`;
  }
  const all = scene.columns.map((each) => each.question);
  const text = isBetween
    ? `Difference${INPUTS[sides?.each[i]?.inputs ?? ""] ?? ""}`
    : question && sideName(question, all);
  const title = several ? `${partName(part)}: ${text}` : "";
  const name = tileText(scene.maps.header, channel);
  const bar = isBetween
    ? { range: differenceRange(scene, channel), palette: "signed", title: "difference" }
    : { range: drawnRange(scene, channel, i), palette: state.colours, title: partName(part) };
  return html`
    <figure>
      <figcaption><span>${title}</span><span class="value"
        aria-live="polite">${value}</span></figcaption>
      <${Painted} role="img"
        aria-label=${`${name}, ${title || `step ${scene.question.step}`}`} paint=${paint}
        onMouseMove=${(/** @type {Parameters<typeof placeOf>[0]} */ event) => point(placeOf(event))}
        onMouseLeave=${() => point(null)}
        onClick=${(/** @type {Parameters<typeof placeOf>[0]} */ event) => {
          if (state.pixel || event.altKey) putPoint(app, placeOf(event));
        }} />
      ${(isBetween || scene.ownScale) && html`<${Bar} ...${bar} />`}
    </figure>
  `;
}

/**
 * Size of a picture, CSS px.
 * @param {MapsScene} scene @param {ImageBitmap|null} input @param {number} available
 */
function size(scene, input, available) {
  const { height, width } = scene.a.planes;
  const aspect = input ? input.height / input.width : height / width;
  const ratio = window.devicePixelRatio || 1;
  const several = scene.columns.length > 1;
  const most = several ? 240 : 340;
  const wide = Math.min(several ? (available - 6) / 2 : available, most / Math.max(aspect, 0.05));
  const whole = input ? wide : (Math.max(1, Math.floor((wide * ratio) / width)) * width) / ratio;
  return [whole, whole * aspect];
}
