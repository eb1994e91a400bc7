// @ts-check
/**
 * The painter of all pictures: tiles, what is written and drawn over them, and what stays in place.
 */

import { BORDER, outline, stateFrame, write } from "./canvas.js";
import { drawCrosshair } from "./crosshair.js";
import { paintTiles } from "./pixels.js";

/** @import {StateMark} from "../model/model.js" */
/** @import {Box, Fixed, Look, Outline, Text, Tile, Where} from "./picture.js" */

/** Space between a tile and its caption, for its border and that of a selected cell, CSS px. */
export const BELOW = 6;
/** Narrower tiles, in CSS px, have no range below them. */
export const RANGE_FROM = 88;
/** Height of a line of text, CSS px. */
export const LINE = 15;

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {Where} where @param {Omit<Look, "palette">} look @param {Tile[]} tiles
 * @param {Fixed[]} fixed
 */
export function paint(context, where, look, tiles, fixed = []) {
  paintTiles(context, where, look.background, tiles);
  context.font = look.font;
  for (const tile of tiles) {
    const { box, image, hatch, fault } = tile;
    if (image) {
      context.imageSmoothingEnabled = Boolean(tile.isSmooth);
      context.globalAlpha = tile.alpha ?? 1;
      context.drawImage(image, box.left, box.top, box.width, box.height);
      context.globalAlpha = 1;
    }
    if (hatch) hatched(context, box, hatch);
    if (tile.isCrossed) crossed(context, box, look.muted);
    if (fault) stateFrame(context, box, fault);
    for (const mark of tile.marks ?? []) {
      context.fillStyle = mark.colour;
      context.fillRect(mark.box.left, mark.box.top, mark.box.width, mark.box.height);
    }
    for (const text of tile.texts ?? []) label(context, text, look);
    for (const line of tile.lines ?? []) drawLine(context, line, box);
    if (tile.point) drawCrosshair(context, box, tile.point, tile.map ?? null);
  }
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
 * @param {CanvasRenderingContext2D} context @param {Outline} line
 * @param {Box} box without one of its own
 */
export function drawLine(context, line, box) {
  context.setLineDash(line.dash ?? []);
  outline(context, line.box ?? box, line.colour, line.thick, line.away);
  context.setLineDash([]);
}

/**
 * @param {CanvasRenderingContext2D} context @param {Text} text
 * @param {Omit<Look, "palette">} look
 */
export function label(
  context,
  { text, x, y, colour, align = "left", baseline = "top", width, isBold = false },
  look,
) {
  context.textBaseline = baseline;
  context.font = isBold ? look.font.replace("13px", "600 13px") : look.font;
  write(context, text, x, y, colour, align, width);
}

/**
 * What is below a tile: texts as far as there is space, and then its fault, or its range at the
 * right. @param {CanvasRenderingContext2D} context
 * @param {{left: number, top: number, width: number}} place
 * @param {{text: string, colour: string, isNeeded?: boolean}[]} names
 * @param {StateMark|null} fault
 * @param {string} range @param {Look} look
 */
export function caption(context, { left, top, width }, names, fault, range, look) {
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
  if (range && widthIn(range) <= width - used) {
    texts.push({ text: range, x: left + width, y: top, colour: look.muted, align: "right" });
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
  const text = [fault.word, fault.brief].find(fits) ?? (squeezes ? fault.brief : "");
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
 * @param {StateMark|null} fault has a border of its own @param {Look} look @param {Box} box
 */
export function cellLines({ isChosen, isHovered, isSelected }, fault, look, box) {
  const out = fault ? BORDER : 0;
  const { accent, muted } = look;
  /** @type {Outline[]} */
  const lines = [];
  if (isChosen) lines.push({ box, colour: accent, thick: 2, dash: [4, 3] });
  if (isHovered) lines.push({ box, colour: muted, thick: 1, away: out + 0.5 });
  if (isSelected) lines.push({ box, colour: accent, thick: out ? 1.5 : 2, away: out + 0.5 });
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

/** @param {CanvasRenderingContext2D} context @param {Box} box @param {string} colour */
function hatched(context, { left, top, width, height }, colour) {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
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
