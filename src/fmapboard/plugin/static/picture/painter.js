// @ts-check
/**
 * The painter of all pictures: tiles, what is written and drawn over them, and what stays in place.
 */

import { faultColour, inWordsOf, short } from "../model/words.js";
import { FAULT_COLOURS, LEGEND } from "../server/palettes.js";
import { outline, write } from "./canvas.js";
import { drawCrosshair } from "./crosshair.js";
import { paintTiles, pixelsOf, tileCanvas } from "./pixels.js";

/** @import {AnyScene, Part, StateMark} from "../model/model.js" */
/** @import {FaultName} from "../server/server.js" */
/** @import {Box, Fixed, Look, Outline, Region, Text, Tile, Where} from "./picture.js" */

/** Space between a tile and its caption, for its border and that of a selected cell, CSS px. */
export const BELOW = 6;
/** Type sizes of texts, CSS px. */
const [TEXT, SMALL] = [13, 11];
/** A small text may be this much wider than its place, and is then squeezed. */
const SQUEEZED = 1.2;
/** Height of a line of text, CSS px. */
export const LINE = 15;

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {Where} where @param {Omit<Look, "palette">} look @param {Tile[]} tiles
 * @param {{fixed?: Fixed[], regions?: Region[]}} over
 */
export function paint(context, where, look, tiles, { fixed = [], regions = [] } = {}) {
  paintTiles(context, where, look.background, tiles);
  context.font = look.font;
  for (const tile of tiles) drawTile(context, tile, look);
  for (const region of regions) drawRegion(context, region, where);
  for (const { box, draw } of fixed) {
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    context.fillStyle = look.background;
    context.fill();
    draw();
    context.restore();
  }
}

/**
 * All of a tile but its pixels.
 * @param {CanvasRenderingContext2D} context @param {Tile} tile @param {Omit<Look, "palette">} look
 */
export function drawTile(context, tile, look) {
  const { box, image, hatch } = tile;
  if (image) {
    context.imageSmoothingEnabled = Boolean(tile.isSmooth);
    context.imageSmoothingQuality = "high";
    if (tile.isGrey) context.filter = "grayscale(1)";
    context.globalAlpha = tile.alpha ?? 1;
    context.drawImage(image, box.left, box.top, box.width, box.height);
    context.globalAlpha = 1;
    context.filter = "none";
  }
  if (hatch) hatched(context, box, hatch);
  if (tile.isCrossed) crossed(context, box, look.muted);
  for (const mark of tile.marks ?? []) {
    context.fillStyle = mark.colour;
    context.fillRect(mark.box.left, mark.box.top, mark.box.width, mark.box.height);
  }
  for (const text of tile.texts ?? []) label(context, text, look);
  for (const line of tile.lines ?? []) drawLine(context, line, box);
  if (tile.point) drawCrosshair(context, box, tile.point, tile.map ?? null);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Outline} line
 * @param {Box} box without one of its own
 */
export function drawLine(context, line, box) {
  const around = line.box ?? box;
  context.setLineDash(line.dash ?? []);
  outline(context, around, line.colour, line.thick, line.away);
  context.setLineDash([]);
  if (line.corner) fillCorner(context, around.left, around.top, line.corner, line.colour);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Text} text
 * @param {Omit<Look, "palette">} look
 */
export function label(
  context,
  { text, x, y, colour, align = "left", baseline = "top", width, isBold, isSmall },
  look,
) {
  context.textBaseline = baseline;
  const font = isSmall ? `${SMALL}px` : isBold ? `600 ${TEXT}px` : `${TEXT}px`;
  context.font = look.font.replace("13px", font);
  write(context, text, x, y, colour, align, width);
}

/**
 * The texts of most characters, of which one is the widest: to measure each takes too long.
 * @param {string[]} texts
 */
export function longest(texts) {
  const most = Math.max(...texts.map(({ length }) => length));
  return texts.filter(({ length }) => length > most - 2);
}

/**
 * Whether captions are shown below tiles, and in which size: all or none, in one size.
 * @param {CanvasRenderingContext2D} context @param {string[]} texts the longest ones
 * @param {number} place width of it, CSS px
 */
export function captionSize(context, texts, place) {
  const width = Math.max(0, ...texts.map((text) => context.measureText(text).width));
  return { isShown: (width * SMALL) / TEXT <= SQUEEZED * place, isSmall: width > place };
}

/**
 * What is below a tile: texts as far as there is space, and then its fault, or its range at the
 * right. @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number}} place
 * @param {{text: string, colour: string, isNeeded?: boolean}[]} names
 * @param {StateMark|null} fault
 * @param {string} range @param {Look} look @param {boolean} isSmall the range
 */
export function caption(context, { left, top, width }, names, fault, range, look, isSmall) {
  const widthIn = (/** @type {string} */ text) => context.measureText(text).width;
  /** @type {Text[]} */
  const texts = [];
  let used = 0;
  for (const { text, colour, isNeeded } of names) {
    const next = used + widthIn(text) + 5;
    if (!text || (next > width && !isNeeded)) continue;
    texts.push({ text, x: left + used, y: top, colour });
    used = next;
  }
  if (fault)
    return badge(context, fault, { left: left + used, top, width: width - used }, look, texts);
  if (range) {
    const align = /** @type {const} */ ("right");
    const place = { x: left + width, y: top, align, width: width - used };
    texts.push({ ...place, text: range, colour: look.muted, isSmall });
  }
  return { texts, marks: [] };
}

/**
 * A fault's colour and its word, the brief one where there is little space.
 * @param {CanvasRenderingContext2D} context @param {StateMark} fault
 * @param {{left: number, top: number, width: number}} place @param {Look} look
 * @param {Text[]} texts that it is added to @param {boolean} squeezes the brief one into too little
 */
export function badge(context, fault, { left, top, width }, look, texts = [], squeezes = false) {
  const fits = (/** @type {string} */ text) => context.measureText(text).width + 12 <= width;
  const both = fault.isBoth ? [`large, ${fault.brief}`] : [];
  const text = [fault.word, ...both, fault.brief].find(fits) ?? (squeezes ? fault.brief : "");
  const most = squeezes ? width - 12 : undefined;
  const own = { text, x: left + 12, y: top, colour: look.text, width: most };
  const box = { left, top: top + 2, width: 8, height: 8 };
  return { texts: [...texts, own], marks: [{ box, colour: fault.colour }] };
}

/**
 * A text in lines of a width, as many as there may be.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {Box} box
 * @param {string} colour @returns {Text[]}
 */
export function wrapped(context, text, { left, top, width, height }, colour) {
  const most = Math.max(1, Math.floor(height / LINE));
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines[lines.length - 1];
    const longer = line ? `${line} ${word}` : word;
    if (!line || context.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else if (lines.length === most) {
      lines[lines.length - 1] = `${line}…`;
      break;
    } else lines.push(word);
  }
  return lines.map((line, i) => ({ text: line, x: left, y: top + LINE * i, colour, width }));
}

/**
 * Lines around a cell: chosen for the film strip, under the pointer, selected.
 * @param {{isChosen?: boolean, isHovered?: boolean, isSelected?: boolean}} which
 * @param {Look} look @param {Box} box
 */
export function cellLines({ isChosen, isHovered, isSelected }, look, box) {
  const { accent, muted } = look;
  /** @type {Outline[]} */
  const lines = [];
  if (isChosen) lines.push({ box, colour: accent, thick: 2, dash: [4, 3] });
  if (isHovered) lines.push({ box, colour: muted, thick: 1 });
  if (isSelected) lines.push({ box, colour: accent, thick: 2 });
  return lines;
}

/**
 * An empty tile.
 * @param {CanvasRenderingContext2D} context @param {Box} box @param {string} colour
 */
function crossed(context, { left, top, width, height }, colour) {
  outline(context, { left, top, width, height }, colour, 1, -1);
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(left + width, top + height);
  context.moveTo(left + width, top);
  context.lineTo(left, top + height);
  context.stroke();
}

// A picture that is one mark throughout: its word on faint lines.

/** Smallest tile with a word in it, and with lines that can be told from a colour, CSS px. */
const [WORD_FROM, LINES_FROM] = [40, 16];

/**
 * What is in place of a map that has no picture to show: a word, and its one value if it has one.
 * @param {Box} box @param {number} mark of all pixels, 0 for a value @param {number} value or NaN
 * @param {Pick<Look, "text">} look @param {string} word without a mark @returns {Tile}
 */
export function markTile(box, mark, value, look, word = "") {
  const { left, top, width, height } = box;
  const named = LEGEND.find(({ code }) => code === mark);
  const words = [named ? inWordsOf(named.name) : word, Number.isNaN(value) ? "" : short(value, 3)];
  const fitting = width < WORD_FROM ? [] : words.filter(Boolean);
  const said = LINE * fitting.length > height ? fitting.slice(0, height < LINE ? 0 : 1) : fitting;
  const place = { x: left + width / 2, width: width - 2, align: /** @type {const} */ ("center") };
  const middle = top + (height - LINE * said.length) / 2;
  const texts = said.map((text, line) => ({
    ...{ text, ...place, y: middle + LINE * line, colour: look.text },
  }));
  return { box, texts, ...(named ? { hatch: faultColour(named.term) } : {}) };
}

/**
 * A tile of a scene in a size of its own. @param {AnyScene} scene @param {Part} part
 * @param {number} channel @param {Box} box @param {Look} look @returns {Tile}
 */
export function pictureTile(scene, part, channel, box, look) {
  const { pixels, width, mark } = pixelsOf(scene, part, channel, look.palette);
  return mark ? markTile(box, mark, NaN, look) : { box, image: tileCanvas(pixels, width) };
}

/** @param {CanvasRenderingContext2D} context @param {Box} box @param {string} colour */
function hatched(context, { left, top, width, height }, colour) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  if (Math.min(width, height) < LINES_FROM) {
    context.globalAlpha = 0.4;
    context.fillStyle = colour;
    context.fill();
    context.restore();
    return;
  }
  context.globalAlpha = 0.18;
  context.strokeStyle = colour;
  context.lineWidth = 5;
  context.beginPath();
  for (let at = -height; at < width; at += 12) {
    context.moveTo(left + at, top + height);
    context.lineTo(left + at + height, top);
  }
  context.stroke();
  context.restore();
}

// One outline around neighbouring pictures in one state.

/**
 * Lines of states: without colour, a state is told by the width of its line and the side of the
 * triangle in its top left corner, CSS px. The least severe first, so that a more severe one is
 * drawn over it.
 * @type {Readonly<Record<FaultName, {width: number, corner: number}>>}
 */
export const FRAMES = Object.freeze({
  unchanged: { width: 1, corner: 0 },
  constant: { width: 1, corner: 7 },
  dead: { width: 2, corner: 0 },
  large: { width: 2, corner: 7 },
  nonfinite: { width: 3, corner: 0 },
});

/** The frame of a state. @param {FaultName} state */
export function frameOf(state) {
  const { width, corner } = FRAMES[state];
  return { colour: FAULT_COLOURS[state], thick: width, corner, away: 0 };
}

/**
 * A triangle in a corner.
 * @param {CanvasRenderingContext2D} context @param {number} left @param {number} top
 * @param {number} side @param {string} colour
 */
function fillCorner(context, left, top, side, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(left, top);
  context.lineTo(left + side, top);
  context.lineTo(left, top + side);
  context.fill();
}

/**
 * The sides of cells that no cell in the same state touches.
 * @param {{cells: readonly number[], columns: number, count: number,
 *   stateOf: (cell: number) => FaultName|null, boxOf: (cell: number) => Box}} of `cells` are those
 *   in sight, of a grid of `count`; a box has half of the space to its neighbours
 * @returns {Region[]}
 */
export function regionsOf({ cells, columns, count, stateOf, boxOf }) {
  /** @type {Map<FaultName, number[][]>} */
  const found = new Map();
  for (const cell of cells) {
    const state = stateOf(cell);
    if (!state) continue;
    const { left, top, width, height } = boxOf(cell);
    const [right, bottom] = [left + width, top + height];
    const isEnd = (cell + 1) % columns === 0 || cell + 1 === count;
    const isSame = (/** @type {number} */ other) => stateOf(other) === state;
    const [above, below] = [cell - columns, cell + columns];
    const touches = (/** @type {number} */ upper) => {
      const { top: start, height: size } = boxOf(upper);
      return Math.abs(start + size - boxOf(upper + columns).top) < 1;
    };
    const sides = found.get(state) ?? [];
    if (cell % columns === 0 || !isSame(cell - 1)) sides.push([left, top, left, bottom]);
    if (isEnd || !isSame(cell + 1)) sides.push([right, top, right, bottom]);
    if (above < 0 || !isSame(above) || !touches(above)) sides.push([left, top, right, top]);
    if (below >= count || !isSame(below) || !touches(cell)) {
      sides.push([left, bottom, right, bottom]);
    }
    found.set(state, sides);
  }
  const states = /** @type {FaultName[]} */ (Object.keys(FRAMES));
  return states.flatMap((state) => {
    const sides = found.get(state);
    return sides ? [{ state, sides }] : [];
  });
}

/**
 * @param {CanvasRenderingContext2D} context @param {Region} region
 * @param {{width: number, height: number}} within which all of its lines are
 */
function drawRegion(context, { state, sides }, { width, height }) {
  const { colour, thick, corner } = frameOf(state);
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.lineCap = "square";
  context.beginPath();
  const half = thick / 2;
  const inside = (/** @type {number} */ at, /** @type {number} */ most) =>
    at < -half || at > most + half ? at : Math.min(most - half, Math.max(half, at));
  for (const [left, top, right, bottom] of sides) {
    context.moveTo(inside(left, width), inside(top, height));
    context.lineTo(inside(right, width), inside(bottom, height));
  }
  context.stroke();
  context.lineCap = "butt";
  if (!corner) return;
  const starts = new Set(
    sides.filter(([a, , b]) => a === b).map(([left, top]) => `${left},${top}`),
  );
  for (const [left, top, , bottom] of sides) {
    const isCorner = top === bottom && starts.has(`${left},${top}`);
    if (isCorner) fillCorner(context, left, top, corner, colour);
  }
}
