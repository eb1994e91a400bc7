// @ts-check
/** The colour bars of kernels: of the weights, and of their differences. */

import { explanation } from "../model/terms.js";
import { sideName } from "../model/compare.js";
import { partName, roundingOf } from "../model/kernel_scene.js";
import { isDifference } from "../model/scene.js";
import { LETTERS } from "../model/state.js";
import { drawnOf, stepsText } from "../model/value_scale.js";
import { deadWord, short } from "../model/words.js";
import { theme } from "../picture/canvas.js";
import { barLabels, differenceRange, drawnRange, marksIn } from "../picture/captions.js";
import { FAULT_COLOURS, LEGEND, MARK_COLOURS, css, ramp } from "../server/palettes.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";

/** @typedef {import("../model/scene.js").KernelsScene} KernelsScene */
/** @typedef {{peak: number, palette: string, title: string}} KernelBarFacts of a scale -peak … peak */

/**
 * Scales of what is drawn; null for what is not.
 * @param {KernelsScene} scene
 * @returns {{weights: KernelBarFacts|null, differences: KernelBarFacts|null}}
 */
export function kernelBars({ grid, picture }) {
  if (!grid) {
    const palette = picture?.palette === "rgb" ? "rgb" : "signed";
    return { weights: { peak: picture?.peak ?? 0, palette, title: "weights" }, differences: null };
  }
  const palette = grid.colour ? "rgb" : "signed";
  const between = grid.parts.filter((part) => part.difference);
  const names = between.map((part) => partName(grid, part)).join(", ");
  const title = grid.colour ? "weights of the three inputs" : "weights, all kernels";
  return {
    weights: between.length < grid.parts.length ? { peak: grid.peak, palette, title } : null,
    differences: between.length
      ? {
          peak: grid.differencePeak,
          palette,
          title: `${names}, each ± ${short(roundingOf(grid), 2)}`,
        }
      : null,
  };
}

// The colour bar with its values, and the meaning of the colours of marks.

/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */

/** What a title of a difference says of the inputs of its sides. */
const INPUTS = Object.freeze({
  same: "",
  loading: "",
  different: ", different inputs",
  unknown: ", inputs not known",
});

/** Red, green and blue above one another, each while the other two are 0. */
const RGB = ["rgb(0 128 128), rgb(255 128 128)", "rgb(128 0 128), rgb(128 255 128)"]
  .concat("rgb(128 128 0), rgb(128 128 255)")
  .map((ends, i) => `linear-gradient(to right, ${ends}) 0 ${50 * i}% / 100% 34% no-repeat`)
  .join(", ");

/** A CSS gradient of a palette; "rgb" for kernels. @param {string} name */
export function gradient(name) {
  if (name === "rgb") return RGB;
  return `linear-gradient(to right, ${ramp(name, 17).map(css).join(", ")})`;
}

/** Width of a bar that is not on the page yet, CSS px. */
const NARROW = 120;

/** Measures texts. @type {CanvasRenderingContext2D|null} */
let pen = null;

/** Width of a text of the scale, CSS px. @param {string} text */
function widthOf(text) {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return text.length * 7;
  pen.font = theme().font;
  return pen.measureText(text).width + 1;
}

/** @typedef {{range: readonly [number, number], palette: string, title: string}} BarFacts */

/** A colour bar with its scale below. @param {BarFacts} facts */
export function Bar({ range: [lo, hi], palette, title }) {
  const room = useRef(/** @type {HTMLElement|null} */ (null));
  const [width, setWidth] = useState(NARROW);
  useLayoutEffect(() => setWidth(room.current?.clientWidth || NARROW));
  const labels = useMemo(() => barLabels(lo, hi, width, widthOf), [lo, hi, width]);
  const text = Number.isNaN(lo) ? "no finite value" : `${short(lo)} to ${short(hi)}`;
  return html`
    <div class="bar" role="img" aria-label=${`${title}: ${text}`}>
      <span class="ramp-title" hidden=${!title}>${title}</span>
      <div class="ramp-room" ref=${room}>
        <div class=${palette === "rgb" ? "ramp rgb" : "ramp"}
          style=${{ background: gradient(palette) }} />
        <div class="ramp-scale">
          ${labels.map(
            ({ text: value, left, end }) =>
              html`<span class=${end ? "end" : null} style=${{ left: `${left}px` }}>${value}</span>`,
          )}
        </div>
      </div>
    </div>
  `;
}

/**
 * The bars of a scene: of the maps, or of each column with a scale of its own, and of differences.
 * @param {Model} model @param {number|null} hovered channel @returns {BarFacts[]}
 */
function barsOf({ scene, state, sides }, hovered) {
  if (scene?.kind === "kernels") {
    return Object.values(kernelBars(scene)).flatMap((of) =>
      of ? [{ range: [-of.peak, of.peak], palette: of.palette, title: of.title }] : [],
    );
  }
  if (scene?.kind !== "maps") return [];
  /** @type {BarFacts[]} */
  const bars = [];
  const palette = state.colours;
  const c = hovered ?? state.channel ?? scene.order[0] ?? 0;
  const whose = scene.wholeLayer ? "whole layer" : `channel ${c}`;
  const hasMaps = !isDifference(scene.parts[0]);
  if (hasMaps && !scene.ownScale) {
    bars.push({
      range: drawnRange(scene, c),
      palette,
      title: `${whose}, ${drawnOf(scene, state)}`,
    });
  }
  scene.columns.forEach((column, i) => {
    if (!hasMaps || !scene.ownScale || !column.side) return;
    const title = `${LETTERS[i]}: ${whose}${stepsText([column], state.locked)}`;
    bars.push({ range: drawnRange(scene, c, i), palette, title });
  });
  if (scene.parts.some(isDifference)) {
    const all = scene.columns.map((each) => each.question);
    const names = scene.columns.flatMap(({ difference, question }) =>
      difference ? [question ? sideName(question, all) : ""] : [],
    );
    const pair = `${sideName(scene.question, all)} − ${names.length > 1 ? "each other column" : names[0]}`;
    const of = state.scale === "layer" ? "whole layer" : `channel ${c}`;
    const title = `${pair}, ${of}${INPUTS[sides?.inputs ?? "same"]}`;
    bars.push({ range: differenceRange(scene, c), palette: "signed", title });
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

/** The colour of dead channels in words. @param {MapsScene} scene */
function deadText({ question, maps }) {
  const follower = question.role === "feature_maps" && maps.header.activation;
  return follower ? `${deadWord()} after its ${follower.type}: 0 there` : deadWord();
}

/** @param {{model: Model, hovered: number|null}} props `hovered` is the channel under the pointer */
export function Legend({ model, hovered }) {
  const { scene } = model;
  const maps = scene?.kind === "maps" ? scene : null;
  const found = maps ? marksIn(maps) : new Set();
  const marks = MARKS.filter(({ name }) => found.has(name));
  return html`
    <div class="legend">
      <div class="legend-bars">
        ${barsOf(model, hovered).map((facts, i) => html`<${Bar} key=${i} ...${facts} />`)}
      </div>
      <ul class="marks" aria-label="Marks in the pictures" hidden=${!marks.length}>
        ${marks.map(
          ({ name, term, kind, style }) => html`
            <li key=${name} ...${explanation(term)}>
              <i class=${kind} style=${style} />
              <span>${name === "dead" && maps ? deadText(maps) : name}</span>
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}
