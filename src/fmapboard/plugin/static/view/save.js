// @ts-check
/** Saves a view as a PNG file, with a title and what its colours mean. */

import { ROLE_NAMES, layerText, origin } from "../model/compare.js";
import { keptUnit } from "../model/film_scale.js";
import { download } from "../model/host.js";
import { isDifference } from "../model/scene.js";
import { stepsText } from "../model/value_scale.js";
import { counted, inWordsOf, runText, short, stepText, tileText } from "../model/words.js";
import { onPage, prepare, theme, write } from "../picture/canvas.js";
import { paintFilm } from "../picture/film_tiles.js";
import { paintGrid } from "../picture/grid_tiles.js";
import { layoutFor, stripLayout } from "../picture/layouts.js";
import { css, ramp } from "../server/palettes.js";
import {
  captionTexts,
  controlText,
  deadText,
  dotsText,
  effectText,
  headingText,
  methodText,
  scaleText,
  subjectText,
} from "./attribution.js";
import { overInput } from "./grid.js";
import { kernelBars } from "./head.js";

/** @import {FilmSource} from "../model/film_strips.js" */
/** @import {MapsScene, Model, Tile} from "../model/model.js" */
/** @import {FilmLayout} from "../picture/picture.js" */
/** @import {Bar, BarFacts} from "./view.js" */

/** Widths of a picture and of a film strip, and the margin, px. */
const [WIDTH, FILM_WIDTH, MARGIN] = [1200, 2000, 10];
const MAX_PIXELS = 60e6;
const MAX_SIDE = 16000;

/** Offers a picture for download. @param {OffscreenCanvas} canvas @param {string} name */
async function offer(canvas, name) {
  const blob = await canvas.convertToBlob().catch(() => null);
  if (!blob) return "The picture is too large to save";
  const url = URL.createObjectURL(blob);
  download(url, `${name.replace(/[^\w.-]+/g, "_")}.png`);
  window.setTimeout(() => URL.revokeObjectURL(url), 60000);
  return "Saved";
}

/** An empty canvas, and what writes on it. @param {number} width px @param {number} height px */
function blank(width, height) {
  const canvas = new OffscreenCanvas(1, 1);
  const context = prepare(canvas, width, height, 1);
  const look = theme();
  context.fillStyle = look.background;
  context.fillRect(0, 0, width, height);
  /**
   * @param {string} text @param {number} left @param {number} y @param {string} colour
   * @param {number} size of bold text, px
   */
  const say = (text, left, y, colour = look.muted, size = 0) => {
    context.font = size ? look.font.replace("13px", `600 ${size}px`) : look.font;
    write(context, text, left, y, colour, "left", Math.max(1, width - left - MARGIN));
  };
  const title = (/** @type {string} */ text, top = 0) => say(text, MARGIN, top + 22, look.text, 14);
  return { canvas, context, look, say, title };
}

// All channels of a layer, or its kernels.

/**
 * Heights of the title, of a column's heading with its input image, of a note, and of the order,
 * px.
 */
const [HEAD, COLUMN, INPUT, LINE, ORDER] = [64, 48, 40, 16, 18];
const RAMP = 200;
/** Height that a matrix of kernels about fits. */
const WINDOW = 900;

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function savePicture(model) {
  const { scene, state, sides } = model;
  if (!scene || scene.kind === "none") return "Nothing to save";
  const { run, key, step } = scene.question;
  const name = `${run}_${layerText(key)}_step${step}`;
  // The columns say themselves where they stem from.
  const titled = `${layerText(key)}${
    scene.columns.length > 1 ? "" : ` · ` + `${origin(scene.question)}`
  }`;
  const isMaps = scene.kind === "maps";
  let tile = state.tile || (isMaps ? (scene.rows ? 64 : 128) : 0);
  const laidOut = () => layoutFor(scene, tile, WIDTH, isMaps ? 0 : WINDOW, 1);
  let placed = laidOut();
  while (placed.height * Math.max(WIDTH, placed.width) > MAX_PIXELS && tile > 8) {
    tile /= 2;
    placed = laidOut();
  }
  const [width, height] = [Math.max(WIDTH, Math.ceil(placed.width)), Math.ceil(placed.height)];
  const [columns, notes] = [sides?.each ?? [], sides?.notes ?? []];
  const { meaning } = scene.sorting;
  const head = HEAD + columns.length * COLUMN + notes.length * LINE + (meaning ? ORDER : 0);
  const { canvas, context, look, say, title } = blank(width, head + height);
  title(titled);
  let end = MARGIN;
  const kernelBar = (/** @type {BarFacts} */ { range: [lo, hi], title: name, palette }) => ({
    ...{ palette, text: `${name}: ${short(lo)} … ${short(hi)}` },
  });
  const bars = isMaps ? mapBars(scene, model) : kernelBars(scene).map(kernelBar);
  for (const { palette, text } of bars) {
    const stripes = rampsOf(palette);
    stripes.forEach((colours, row) =>
      colours.forEach((colour, i) => {
        context.fillStyle = css(colour);
        context.fillRect(end + i, 34 + (10 * row) / stripes.length, 1, 10 / stripes.length);
      }),
    );
    say(text, end + RAMP + 10, 43);
    end += RAMP + 40 + context.measureText(text).width;
  }
  columns.forEach(({ letter, text, match, follows, input }, i) => {
    const top = HEAD - 10 + i * COLUMN;
    const wide = input ? (INPUT * input.width) / input.height : 0;
    if (input) context.drawImage(input, MARGIN, top, wide, INPUT);
    const left = input ? wide + 2 * MARGIN : MARGIN;
    const first = [letter, text, follows, match].filter(Boolean).join(" · ");
    say(first, left, top + 14, look.text, 13);
  });
  notes.forEach((note, i) =>
    say(note, MARGIN, HEAD + columns.length * COLUMN + i * LINE, look.text),
  );
  if (meaning) say(meaning, MARGIN, head - 8);
  const inner = new OffscreenCanvas(1, 1);
  const below = prepare(inner, width, height, 1);
  const where = { top: 0, width, height, ratio: 1, selected: null, hovered: null };
  const colours = { ...look, palette: state.colours, ...overInput(model) };
  paintGrid(below, scene, placed, where, colours);
  context.drawImage(inner, 0, head);
  return offer(canvas, name);
}

/**
 * A colour bar for the maps and one for the difference.
 * @param {MapsScene} scene @param {Model} model
 * @returns {Bar[]}
 */
function mapBars(scene, { state, sides }) {
  const { lo, hi } = scene.ranges;
  const several = scene.columns.filter(({ side }) => side).length;
  const between = several > 1 && !scene.ownScale ? "A's extremes" : "its own extremes";
  const isOne = scene.wholeLayer && !scene.ownScale;
  const range = isOne ? `${short(lo[0])} … ${short(hi[0])}` : `each channel between ${between}`;
  const text = inWordsOf(range) + stepsText(scene.columns[0], state.locked);
  const bars = scene.parts.every(isDifference) ? [] : [{ palette: state.colours, text }];
  if (!scene.parts.some(isDifference)) return bars;
  const { lo: least, hi: most } = scene.differenceRanges;
  const differences =
    state.scale === "layer"
      ? `${short(least[0])} … ${short(most[0])}`
      : inWordsOf("each channel between ± its largest difference");
  const mixed = sides?.inputs === "different" ? ", of different inputs" : "";
  return [...bars, { palette: "signed", text: `difference${mixed}: ${differences}` }];
}

/**
 * Colours of a bar; of RGB kernels three rows, in each of which the other two inputs are 0.
 * @param {string} palette
 */
function rampsOf(palette) {
  if (palette !== "rgb") return [ramp(onPage(palette), RAMP)];
  const greys = ramp("grey", RAMP).map(([grey]) => grey);
  return [
    greys.map((grey) => /** @type {const} */ ([grey, 128, 128])),
    greys.map((grey) => /** @type {const} */ ([128, grey, 128])),
    greys.map((grey) => /** @type {const} */ ([128, 128, grey])),
  ];
}

// Attribution: both pictures of each layer, with what they show.

/** Longer side of a picture, the space between two, and the width of a layer, px. */
const [SIDE, GAP, CELL] = [220, 8, 482];
/** Heights of the title, of a line of text, of a layer's heading, and of its captions, px. */
const [TITLE, TEXT, HEADING, CAPTIONS] = [34, 15, 20, 44];
const LEGEND =
  "From grey, the input, to yellow, the maximum of the picture. An even grey picture: the map is " +
  "negligible or not finite.";
/** As many words as fit into the width. */
const LINE_OF_TEXT = /.{1,190}(?: |$)/g;

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function saveAttribution({ state, attribution }) {
  const rows = attribution?.rows ?? [];
  if (!attribution || !rows.length) return "Nothing to save";
  if (attribution.loading) return "Not saved: pictures are being loaded";
  const { step } = rows[0].now;
  const run = runText(state.run);
  const dead = deadText(rows, attribution.words);
  const meaning = [effectText, scaleText, dotsText, methodText].map((text) => text(rows));
  const texts = [meaning.join(" "), controlText(rows), dead, LEGEND];
  const lines = texts.flatMap((text) => text.match(LINE_OF_TEXT) ?? []);
  const columns = Math.max(1, Math.min(rows.length, Math.floor((WIDTH - MARGIN) / CELL)));
  const pitch = HEADING + CAPTIONS + Math.max(...rows.map((row) => sizeOf(row.now)[1]));
  const head = TITLE + lines.length * TEXT + 14;
  const height = head + Math.ceil(rows.length / columns) * pitch;
  const { canvas, context, look, say, title } = blank(WIDTH, height);
  const subject = subjectText(rows[0], attribution.words);
  title(`Attribution · ${run} · ${subject} · sample ${attribution.sample}`);
  lines.forEach((text, i) => say(text, MARGIN, TITLE + 8 + i * TEXT));
  rows.forEach((row, i) => {
    const top = head + Math.floor(i / columns) * pitch;
    const start = MARGIN + (i % columns) * CELL;
    say(headingText(row.series), start, top + 12, look.text, 13);
    [row.now, row.first].forEach((tile, k) => {
      if (!tile) return;
      const left = start + k * (SIDE + GAP);
      if (!tile.picture) return say(tile.problem, left, top + HEADING + 12, look.text);
      const [wide, high] = sizeOf(tile);
      context.drawImage(tile.picture, left, top + HEADING, wide, high);
      const [when, norm] = captionTexts(row, tile, tile.picture, attribution.words);
      say(when, left, top + HEADING + high + 14, look.text);
      say(norm, left, top + HEADING + high + 14 + TEXT);
    });
  });
  return offer(canvas, `${run}_attribution_step${step}`);
}

/** Size of a picture in the file, px. @param {Tile} tile */
function sizeOf({ picture }) {
  if (!picture) return [SIDE, SIDE];
  const scale = SIDE / Math.max(picture.width, picture.height);
  return [Math.round(picture.width * scale), Math.round(picture.height * scale)];
}

// A film strip: all kept steps, wrapped into bands.

/** Height of the titles of a strip, px. */
const FILM_HEAD = 56;

/**
 * Offers the file for download: all strips, below each other.
 * @param {Model} model @param {FilmSource} source @param {(text: string) => void} tell progress
 */
export async function saveFilm(model, source, tell) {
  const { state } = model;
  const known = () => source.strips(model).strips; // with what has been loaded
  for (const strip of known()) await source.load(strip, [strip.current]); // the size of the maps
  const strips = known();
  let tile = state.tile || 96;
  const laidOut = () => {
    const wraps = { wraps: true, isSaved: true };
    const of = { tile, windowWidth: FILM_WIDTH, windowHeight: 0, ratio: 1, ...wraps };
    return strips.map((strip) => stripLayout(strip, of));
  };
  let all = laidOut();
  const heightOf = (/** @type {FilmLayout} */ of) => FILM_HEAD + Math.ceil(of.height);
  const height = () => all.reduce((sum, of) => sum + heightOf(of), 0);
  while (tile > 8 && (height() > MAX_SIDE || height() * FILM_WIDTH > MAX_PIXELS)) {
    tile /= 2;
    all = laidOut();
  }
  const widths = all.map(({ left, columns, cellWidth }) => left + columns * cellWidth + 8);
  const width = Math.ceil(Math.max(700, ...widths));
  const { canvas, context, look, say, title } = blank(width, height());
  const colours = { ...look, palette: state.colours };
  let top = 0;
  for (const [k, strip] of strips.entries()) {
    const { steps, unit, layer, order, role, locked, how } = strip;
    const { letter, run, sample } = strip.of;
    const called = [letter, runText(run), layerText(layer.key), tileText(layer, order.join(", "))];
    title(called.filter(Boolean).join(" · "), top);
    const scale = locked
      ? `one scale per ${how.scale} for all ${keptUnit(strip)}s`
      : `each ${unit} has its own scale: colours do not compare between ${unit}s`;
    const span = `${stepText(steps[0])} to ${stepText(steps[steps.length - 1])}`;
    const shown = `${ROLE_NAMES[role]} of sample ${sample} at ${counted(
      steps.length,
      `kept ` + `${unit}`,
    )}`;
    say(`${shown}, ${span} · ${scale}`, MARGIN, top + 42);
    const placed = all[k];
    for (let first = 0; first < steps.length; first += placed.columns) {
      const band = [...steps.keys()].slice(first, first + placed.columns);
      tell(`Loading ${unit} ${first + 1} of ${steps.length}…`);
      if (!(await source.load(strip, band))) return "Not saved: the film strip was left";
      const from = (first / placed.columns) * placed.bandHeight;
      const where = { top: from, width, height: placed.bandHeight, ratio: 1 };
      const painted = new OffscreenCanvas(1, 1);
      const below = prepare(painted, width, Math.ceil(placed.bandHeight), 1);
      paintFilm(below, { ...known()[k], current: -1 }, placed, where, colours);
      context.drawImage(painted, 0, top + FILM_HEAD + Math.round(from));
    }
    top += heightOf(all[k]);
  }
  const [{ layer, order }] = strips;
  const units = `${tileText(layer)}_${order.join("_")}`;
  const name = `${runText(state.run)}_${layerText(layer.key)}_film_${units}`;
  return offer(canvas, name);
}
