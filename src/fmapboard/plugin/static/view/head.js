// @ts-check
/** Above the channels: the layer's title, the network's input, and what the colours mean. */

import { roundingOf } from "../model/kernel_cells.js";
import { SIGNS, isOfDifferences } from "../model/run_states.js";
import { isDifference, partName } from "../model/scene.js";
import { LETTERS } from "../model/state.js";
import { explanation } from "../model/terms.js";
import { drawnOf, stepsText } from "../model/value_scale.js";
import {
  callName,
  counted,
  deadWord,
  inWordsOf,
  kindOf,
  short,
  stepText,
  tileText,
  typeText,
  wordOf,
} from "../model/words.js";
import { onPage, textWidth, theme } from "../picture/canvas.js";
import { barLabels, differenceRange, drawnRange, marksIn } from "../picture/captions.js";
import { markTile, paint as paintTiles } from "../picture/painter.js";
import { isNanPicture } from "../picture/pixels.js";
import {
  FAULT_COLOURS,
  LEGEND,
  MARK,
  MARK_COLOURS,
  OFF_COLOUR,
  css,
  ramp,
} from "../server/palettes.js";
import { depthsOf } from "../server/decode.js";
import { indexOf } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { typed } from "./controls.js";
import { Painted } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {KernelsScene, MapsScene, Model, Ranges, Scene} from "../model/model.js" */
/** @import {Layer} from "../server/server.js" */
/** @import {BarFacts} from "./view.js" */

/** @param {{picture: ImageBitmap, label: string, isOld?: boolean}} props */
export function Thumbnail({ picture, label, isOld = false }) {
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const { width, height } = picture;
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    if (!context) return;
    if (!isNanPicture(picture)) return context.drawImage(picture, 0, 0);
    const [look, box] = [theme(), { left: 0, top: 0, width, height }];
    paintTiles(context, { ...box, ratio: 1 }, look, [markTile(box, MARK.NAN, NaN, look)]);
  };
  const name = isOld ? "thumbnail old" : "thumbnail";
  return html`
    <${Painted} class=${name} role="img" aria-label=${label} title=${label}
      ...${{ paint, of: [picture] }} />
  `;
}

/**
 * @param {{app: App, model: Model, hovered: number|null}} props `hovered` is the channel under the
 *   pointer
 */
export function Head({ app, model, hovered }) {
  const { layer, scene, steps, state, stepWords, input, hasInput, sides } = model;
  const last = useRef(/** @type {ImageBitmap|null} */ (null));
  if (input || !hasInput) last.current = input;
  const asked = steps[indexOf(steps, state.step)];
  const isReduced = scene?.kind === "maps" && scene.picture.block > 1;
  const own = sides?.each[0]?.input ? null : last.current; // columns have their own
  return html`
    <header class="head">
      ${own && html`<${Thumbnail} picture=${own} isOld=${!input} label="The network's input" />`}
      <div class="title">
        <h1>${layer ? callName(layer) : ""}</h1>
        <p class="facts" ...${isReduced ? explanation("block") : {}}>
          ${layer ? described(layer, scene, asked, stepWords) : ""}
        </p>
        <${Depth} ...${{ app, scene }} />
      </div>
      <${Legend} ...${{ model, hovered }} />
    </header>
  `;
}

/** Chooses the slice of a volume. @param {{app: App, scene: Scene|null}} props */
function Depth({ app, scene }) {
  const depths = scene?.kind === "maps" ? depthsOf(scene.maps, scene.question.role) : [];
  if (scene?.kind !== "maps" || depths.length < 2) return null;
  const last = depths.length - 1;
  const middle = depths.indexOf(scene.picture.depth ?? 0);
  const at = scene.question.depth === undefined ? middle : Math.round(scene.question.depth * last);
  const choose = (/** @type {string} */ value) =>
    app.update({
      depth: Number(value) === middle ? null : Math.round((100 * Number(value)) / last),
    });
  return html`
    <label class="row depth">
      <span class="label">depth slice ${depths[at]} of 0…${depths[last]}</span>
      <input type="range" class="slider" min="0" max=${last} value=${at} onInput=${typed(choose)} />
    </label>
  `;
}

/**
 * Facts about the layer and its picture. @param {Layer} layer
 * @param {Scene|null} scene @param {number|undefined} asked step
 * @param {Record<string, string>} words for steps
 */
function described(layer, scene, asked, words) {
  const said = [typeText(layer)];
  if (scene?.kind === "maps") {
    const { picture } = scene;
    said.push(
      picture.drawn < picture.channels
        ? `${picture.drawn} of ${counted(picture.channels, tileText(layer))} drawn`
        : counted(picture.channels, tileText(layer)),
    );
    const [height, width] = picture.tile;
    const size = scene.rows ? counted(width, "column") : `${height}×${width} px`;
    const block = scene.rows ? `${picture.block} positions` : `${picture.block}×${picture.block}`;
    said.push(`${size}${picture.block > 1 ? `, each the mean of ${block}` : ""}`);
    if (picture.view) said.push(inWordsOf(picture.view, layer));
    if (picture.scale === "locked") {
      said.push("stored scale locked to the first step: later values may be cut off");
    }
  }
  if (scene) {
    const { step } = scene.question;
    if (asked !== undefined && asked !== step) {
      said.push(`${wordOf(words, step)}, the last before ${stepText(asked)} that was kept`);
    }
  }
  return said.join(" · ");
}

// The colour bars of kernels: of the weights, and of their differences.

/** The bars of what is drawn. @param {KernelsScene} scene @returns {BarFacts[]} */
export function kernelBars(scene) {
  const { parts, arranged, ranges, differenceRanges } = scene;
  const palette = arranged.isColour ? "rgb" : "signed";
  /** @param {Ranges} of @param {string} title @returns {BarFacts} */
  const bar = ({ lo, hi }, title) => {
    const isFinite = hi[0] > 0 || !marksOfKernels(scene).size;
    return { range: isFinite ? [lo[0], hi[0]] : [NaN, NaN], palette, title };
  };
  const between = parts.filter(isDifference);
  const rounding = `${between.map(partName).join()}, each ± ${short(roundingOf(scene), 2)}`;
  const title = arranged.isColour ? "weights of the three inputs" : "weights, all kernels";
  return [
    ...(between.length < parts.length ? [bar(ranges, title)] : []),
    ...(between.length ? [bar(differenceRanges, rounding)] : []),
  ];
}

// The colour bar with its values, and the meaning of the colours of marks.

/** Red, green and blue above one another, each while the other two are 0. */
const RGB = ["rgb(0 128 128), rgb(255 128 128)", "rgb(128 0 128), rgb(128 255 128)"]
  .concat("rgb(128 128 0), rgb(128 128 255)")
  .map((ends, i) => `linear-gradient(to right, ${ends}) 0 ${50 * i}% / 100% 34% no-repeat`)
  .join(", ");

/** A CSS gradient of a palette; "rgb" for kernels. @param {string} name */
export function gradient(name) {
  if (name === "rgb") return RGB;
  return `linear-gradient(to right, ${ramp(onPage(name), 17).map(css).join(", ")})`;
}

/** Width of a bar that is not on the page yet, CSS px. */
const NARROW = 120;

/** Width of a text of the scale, CSS px. @param {string} text */
const widthOf = (text) => textWidth(text) + 1;

/** A colour bar with its scale below. @param {BarFacts} facts */
export function Bar({ range: [lo, hi], ends, palette, title }) {
  const room = useRef(/** @type {HTMLElement|null} */ (null));
  const [width, setWidth] = useState(NARROW);
  useLayoutEffect(() => setWidth(room.current?.clientWidth || NARROW));
  const labels = useMemo(() => barLabels(lo, hi, width, widthOf), [lo, hi, width]);
  const text = Number.isNaN(lo) ? "no finite value" : `${short(lo)} to ${short(hi)}`;
  const scale = labels.map(
    ({ text: value, left, end }) =>
      html`<span class=${end ? "end" : null} style=${{ left: `${left}px` }}>${value}</span>`,
  );
  return html`
    <div class="bar" role="img" aria-label=${`${title}: ${ends?.join(" to ") ?? text}`}>
      <span class="ramp-title" hidden=${!title}>${title}</span>
      <div class="ramp-room" ref=${room}>
        <div class=${palette === "rgb" ? "ramp rgb" : "ramp"}
          style=${{ background: Number.isNaN(lo) && !ends ? "none" : gradient(palette) }} />
        <div class=${ends ? "ramp-scale apart" : "ramp-scale"}>
          ${ends ? ends.map((end) => html`<span class="end">${end}</span>`) : scale}
        </div>
      </div>
    </div>
  `;
}

/**
 * The bars of a scene, and of each column with a scale of its own.
 * @param {Model} model @param {number|null} hovered channel
 */
function barsOf({ scene, state }, hovered) {
  if (scene?.kind === "kernels") return kernelBars(scene);
  if (scene?.kind !== "maps") return [];
  const bars = [];
  const palette = state.colours;
  const one = hovered ?? state.channel;
  const c = one ?? scene.order[0] ?? 0;
  const unit = tileText(scene.maps.header);
  // No numbers hold for all tiles where each has a scale of its own.
  const isAnyFinite = scene.order.some((each) => !Number.isNaN(drawnRange(scene, each)[0]));
  const isEach = one === null && state.scale !== "layer" && scene.order.length > 1 && isAnyFinite;
  const signed = ["−largest", "+largest"];
  const ends = !isEach ? {} : { ends: palette === "signed" ? signed : ["least", "largest"] };
  const isOne = state.scale !== "layer" && scene.order.length > 1;
  const whose = isEach ? `each ${unit}` : tileText(scene.maps.header, c) + (isOne ? " only" : "");
  const own = scene.wholeLayer ? "whole layer" : whose;
  const hasMaps = !scene.parts[0].isDifference;
  const hasEnds = hasMaps && scene.ownScale && !isEach; // a bar per column has other ends
  // A bar says nothing where no picture has a finite value.
  if (hasMaps && !hasEnds && (isAnyFinite || one !== null)) {
    const title = scene.ownScale ? "each map" : `${own}, ${drawnOf(scene, state)}`;
    bars.push({ range: drawnRange(scene, c), palette, title, ...ends });
  }
  scene.columns.forEach((column, i) => {
    if (!hasEnds || !column.side) return;
    const title = `${LETTERS[i]}: ${own}${stepsText(column, state.locked)}`;
    bars.push({ range: drawnRange(scene, c, i), palette, title, ...ends });
  });
  if (scene.parts.some(isDifference)) {
    const title = `A − B, ${state.scale === "layer" ? "whole layer" : whose}`;
    const symmetric = isEach ? { ends: signed } : {};
    bars.push({ range: differenceRange(scene, c), palette: "signed", title, ...symmetric });
  }
  return bars;
}

const MARKS = [
  ...LEGEND.map(({ code, name, term }) => ({
    ...{ name, term, kind: null },
    style: { background: css(MARK_COLOURS[code]) },
  })),
  { name: "large", term: "large", kind: "edge", style: { borderColor: FAULT_COLOURS.large } },
];

/** Names of the marks in the pictures of kernels. @param {Scene|null} scene */
function marksOfKernels(scene) {
  const present = LEGEND.filter(({ code }) => scene?.a?.planes.marks?.includes(code));
  return new Set(present.map(({ name }) => /** @type {string} */ (name)));
}

/** So many channels without a mark are named. */
const NAMED = 3;

/**
 * Which pictures of a column have a mark, if more than half do: then it is not written on each.
 * @param {MapsScene} scene @param {readonly (readonly number[])[]} having channels of each column
 */
function shareText({ maps, order, columns }, having) {
  const shares = having.map((channels, i) => {
    const { length } = channels;
    if (2 * length <= order.length || order.length === 1) return "";
    const others = order.filter((each) => !channels.includes(each));
    const isNamed = others.length > 0 && others.length <= NAMED;
    const share = isNamed || !others.length ? "all" : `${length} of`;
    const but = isNamed ? ` but ${others.join(", ")}` : "";
    const whose = columns.length > 1 ? ` of ${LETTERS[i]}` : "";
    const all = counted(order.length, tileText(maps.header));
    return ` · ${whose && share === "all" ? "all" : `${share} ${all}`}${whose}${but}`;
  });
  return shares.join("");
}

/**
 * @param {{model: Model, hovered: number|null}} props `hovered` is the channel under the pointer
 */
export function Legend({ model, hovered }) {
  const { scene, state, stepWords } = model;
  const maps = scene?.kind === "maps" ? scene : null;
  const counts = maps ? marksIn(maps) : null;
  const found = counts ?? marksOfKernels(scene);
  const marks = MARKS.filter(({ name }) => found.has(name));
  const follower = maps?.question.role === "feature_maps" && maps.maps.header.activation;
  const dead = follower ? `${deadWord()}: 0 after its ${follower.type}` : deadWord();
  const isOff = (/** @type {string} */ name) => name === "dead" && deadWord() !== name;
  const isOfSigns = state.colours === "signed" && isOfDifferences(state.run);
  const isOfBatch = maps && marks.length > 0 && kindOf(stepWords) !== "image";
  return html`
    <div class="legend">
      <div class="legend-bars">
        ${barsOf(model, hovered).map((facts, i) => html`<${Bar} key=${i} ...${facts} />`)}
      </div>
      ${isOfSigns && html`<span class="label">${SIGNS}</span>`}
      <ul class="marks" aria-label="Marks in the pictures" hidden=${!marks.length}>
        ${marks.map(
          ({ name, term, kind, style }) => html`
            <li key=${name} ...${explanation(term)}>
              <i class=${kind} style=${isOff(name) ? { background: OFF_COLOUR } : style} />
              <span>${name === "dead" ? dead : name}${
                maps && counts && shareText(maps, counts.get(name) ?? [])
              }</span>
            </li>
          `,
        )}
        ${isOfBatch && html`<li ...${explanation("batch")}>(whole batch)</li>`}
      </ul>
    </div>
  `;
}
