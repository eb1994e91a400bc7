// @ts-check
/**
 * What the tiles of a layer's channels show: their maps or kernels, and what is written below or
 * beside them.
 */

import { channelIn } from "../model/kernel_cells.js";
import { LARGE_MARK, flags, loudest, partName } from "../model/scene.js";
import { short, ticks } from "../model/words.js";
import { once } from "../server/cache.js";
import { channelsOf, placeOf } from "../server/kernels.js";
import { outline, write } from "./canvas.js";
import { commonFaults, faultOf, rangeText, tokensOf } from "./captions.js";
import { pointLines } from "./crosshair.js";
import { BETWEEN, CAPTION_LINE, GAP, NUMBERS, corner, visible, widthOf } from "./layouts.js";
import {
  BELOW,
  LINE,
  caption,
  captionSize,
  cellLines,
  longest,
  markTile,
  paint,
  regionsOf,
} from "./painter.js";
import { pixelsOf } from "./pixels.js";

/** @import {GridScene, KernelsScene, MapsScene, Part, Point, StateMark} from "../model/model.js" */
/** @import {Kernels} from "../server/server.js" */
/** @import {Box, Fixed, Layout, Look, Tile, Where} from "./picture.js" */

/**
 * False for a tile that its column has no picture for.
 * @param {GridScene} scene @param {Part} part
 */
export function isDrawn(scene, part) {
  const { side, difference } = scene.columns[part.column];
  return Boolean(part.isDifference ? difference : side);
}

/** Widths of a fault's mark and of a channel's number at a row, CSS px. */
const [FAULT, CHANNEL] = [5, 32];
/** Minimum distance between two position labels, CSS px. */
const TICK = 90;

/**
 * @param {CanvasRenderingContext2D} context of a canvas of the size of `where`
 * @param {GridScene} scene @param {Layout} of @param {Where} where @param {Look} look
 * @param {Point|null} point that is looked at
 */
export function paintGrid(context, scene, of, where, look, point = null) {
  context.font = look.font;
  const cells = visible(of, where);
  const size = rangeSize(context, scene, of);
  const tiles = cells.flatMap((cell) =>
    tilesOf(context, scene, of, cell, where, look, point, size),
  );
  if (scene.kind === "kernels" && scene.arranged.columns) {
    const axes = axesOf(context, scene, of, where, look);
    const chosen = chosenOf(scene, of, cells, where, look);
    return paint(context, where, look, [...tiles, ...chosen], { fixed: axes });
  }
  const regions = of.rows ? [] : faultRegions(scene, of, cells, where);
  paint(context, where, look, tiles, { regions });
  if (!of.rows || scene.kind === "kernels") return;
  positions(context, scene, of, where, look);
  context.fillStyle = look.background;
  context.fillRect(0, 0, of.left - 2, where.height); // hides rows that are scrolled to the left
  numbers(context, scene, of, cells, where, look);
  if (point) pointLines(context, of, where, point);
}

/**
 * The box of some tiles of a cell.
 * @param {Layout} of @param {Where} where @param {number} cell @param {number} part the first tile
 */
function boxOf(of, where, cell, part = 0, to = part) {
  const { left, top } = corner(of, cell, part);
  const width = corner(of, cell, to).left - left + of.tileWidth;
  return { left: left - (where.left ?? 0), top: top - where.top, width, height: of.tileHeight };
}

/**
 * Lines between the depth slices of a kernel.
 * @param {Kernels} of @param {Box} box @param {Look} look
 */
function sliceLines({ depth }, box, look) {
  const width = Math.ceil(box.width / 100);
  return Array.from({ length: depth - 1 }, (_, i) => {
    const left = Math.round(box.left + ((i + 1) * box.width) / depth - width / 2);
    return { box: { ...box, left, width }, colour: look.background };
  });
}

/** Width of a tile of which the caption is. @param {Layout} of */
const captionWidth = (of) => (of.parts === 1 ? widthOf(of) : of.tileWidth);

/** The longest ranges below the tiles of a scene. */
const longestOf = once((/** @type {GridScene} */ scene) =>
  longest(
    scene.parts.flatMap((part) =>
      scene.order
        .filter((channel) => !writtenFault(scene, part, channel))
        .map((channel) => rangeText(scene, part, channel)),
    ),
  ),
);

/**
 * The size of the ranges below all tiles.
 * @param {CanvasRenderingContext2D} context @param {GridScene} scene @param {Layout} of
 */
function rangeSize(context, scene, of) {
  if (of.rows || (scene.kind === "kernels" && scene.arranged.columns)) return NO_RANGES;
  const letter = of.parts > 1 ? partName(scene.parts[0]) : "";
  const name = `${nameOf(scene, Math.max(...scene.order))} ${letter} `;
  const used = context.measureText(name).width;
  return captionSize(context, longestOf(scene), captionWidth(of) - used);
}

const NO_RANGES = { isShown: false, isSmall: false };

/**
 * The tiles of a cell.
 * @param {CanvasRenderingContext2D} context @param {GridScene} scene @param {Layout} of
 * @param {number} cell @param {Where} where @param {Look} look @param {Point|null} point
 * @param {ReturnType<typeof captionSize>} ranges
 */
function tilesOf(context, scene, of, cell, where, look, point, ranges) {
  const channel = scene.order[cell];
  const isHovered = channel === where.hovered;
  const isSelected = channelIn(scene, channel) === where.selected;
  const isMatrix = scene.kind === "kernels" && scene.arranged.columns > 0;
  const tiles = scene.parts.map((part, p) => {
    const box = boxOf(of, where, cell, p);
    const size = { across: of.factor, down: of.factorDown };
    /** @type {Tile} */
    const tile = { box, isCrossed: !isDrawn(scene, part) };
    const { mark = 0, ...picture } = tile.isCrossed
      ? {}
      : { ...size, ...pixelsOf(scene, part, channel, look.palette) };
    Object.assign(tile, mark ? markTile(box, mark, NaN, look) : picture);
    if (scene.kind === "kernels" && !mark) tile.marks = sliceLines(scene.a, box, look);
    if (of.rows || isMatrix) return tile;
    const isSaid = Boolean(tile.texts?.length);
    const fault = isSaid ? null : writtenFault(scene, part, channel);
    const isOfChannel = scene.kind === "maps" || scene.arranged.down === "outputs";
    const colour = isSelected && isOfChannel ? look.accent : look.text;
    const name = p ? [] : [{ text: nameOf(scene, channel), colour, isNeeded: true }];
    const letter = scene.parts.length > 1 ? partName(part) : "";
    const names = [...name, { text: letter, colour: look.muted }];
    const [away, width] = [p ? 4 : 0, captionWidth(of)];
    const below = { left: box.left + away, top: box.top + box.height + BELOW, width: width - away };
    const isRanged = ranges.isShown && !isSaid && !fault;
    const range = isRanged ? rangeText(scene, part, channel) : "";
    const said = caption(context, below, names, fault, range, look, ranges.isSmall);
    const texts = [...(tile.texts ?? []), ...said.texts];
    const marks = [...(tile.marks ?? []), ...said.marks];
    const image = (!part.isDifference && look.over?.images[part.column]) || null;
    const over = image ? { image, alpha: look.over?.alpha ?? 0, isSmooth: true } : {};
    return { ...tile, ...over, texts, marks, point, map: scene.a.planes };
  });
  if (of.rows) return tiles;
  const last = tiles[tiles.length - 1];
  if (isMatrix) {
    // The outline of a channel is around its column.
    const isOwn = isSelected && isWithin(scene);
    if (!isOwn && (isSelected || !isHovered)) return tiles;
    const box = boxOf(of, where, cell, 0, of.parts - 1);
    const colour = isSelected ? look.accent : look.text;
    last.lines = [{ box, colour, thick: 1, away: 0 }];
    return tiles;
  }
  const whole = { ...tiles[0].box, width: widthOf(of) };
  const isChosen = where.chosen?.includes(channel) ?? false;
  const sorted = scene.sorting.texts?.(channel) ?? [];
  const text = sorted.find((each) => context.measureText(each).width <= whole.width);
  const y = whole.top + whole.height + BELOW + CAPTION_LINE;
  const own = text ? [{ text, x: whole.left, y, colour: look.text }] : [];
  last.texts = [...(last.texts ?? []), ...own];
  last.lines = cellLines({ isChosen, isHovered, isSelected }, look, whole);
  return tiles;
}

/**
 * The fault that is written below a tile: one of more than half of the tiles is only said above
 * them. It has no words then, but its colour if there are tiles without a fault.
 * @param {GridScene} scene @param {Part} part @param {number} channel @returns {StateMark|null}
 */
export function writtenFault(scene, part, channel) {
  const fault = faultOf(scene, part, channel);
  // Beside each other, columns are told apart by their own marks.
  const isAlone = scene.kind === "maps" && scene.columns.length === 1;
  if (!fault || !isAlone || scene.order.length === 1) return fault;
  const { kinds, isAll } = commonFaults(scene)[part.column];
  if (!kinds.includes(fault.kind)) return fault;
  if (fault.isBoth && !kinds.includes("large")) return { ...fault, ...LARGE_MARK };
  return isAll ? null : { ...fault, word: "", brief: "" };
}

/**
 * Outlines around tiles of faulty channels, with their captions.
 * @param {GridScene} scene @param {Layout} of @param {number[]} inSight cells @param {Where} where
 */
function faultRegions(scene, of, inSight, where) {
  const { parts } = of;
  const gap = of.cellWidth - widthOf(of);
  const all = scene.parts.map((_, part) => part);
  return regionsOf({
    ...{ cells: inSight.flatMap((cell) => all.map((part) => cell * parts + part)) },
    ...{ columns: of.columns * parts, count: of.count * parts },
    stateOf(tile) {
      const [cell, part] = [Math.floor(tile / parts), tile % parts];
      const fault = writtenFault(scene, scene.parts[part], scene.order[cell]);
      return fault?.word ? fault.kind : null;
    },
    boxOf(tile) {
      const [cell, part] = [Math.floor(tile / parts), tile % parts];
      const { left: start, top } = boxOf(of, where, cell);
      const edge = (/** @type {number} */ at) =>
        at === parts
          ? start - gap / 2 + of.cellWidth
          : at
            ? boxOf(of, where, cell, at).left - BETWEEN / 2
            : start - gap / 2;
      const [left, right] = [edge(part), edge(part + 1)];
      return { left, top: top - GAP / 2, width: right - left, height: of.cellHeight };
    },
  });
}

/** The number below a map or kernel. @param {GridScene} scene @param {number} cell */
function nameOf(scene, cell) {
  if (scene.kind === "maps") return String(cell);
  const place = placeOf(scene.a, cell);
  const { output, input } = channelsOf(scene.a, place.output, place.input);
  return scene.arranged.down === "outputs" ? String(output) : `in ${input}`;
}

// Kernels as a matrix: the outline of the selected channel, and numbers at both sides.

/** Sizes of the numbers of a matrix, CSS px: the largest at which each row or column has one. */
const FONTS = [13, 11, 10];
const STRIDES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** True if a channel is a part of a column. @param {KernelsScene} scene */
const isWithin = ({ a }) => a.transposed && a.groups > 1;

/**
 * @param {KernelsScene} scene @param {Layout} of @param {number[]} cells in sight
 * @param {Where} where @param {Look} look @returns {Tile[]}
 */
function chosenOf(scene, of, cells, where, look) {
  const chosen = cells.filter((cell) => channelIn(scene, scene.order[cell]) === where.selected);
  if (isWithin(scene) || !chosen.length) return [];
  const first = boxOf(of, where, chosen[0]);
  const last = boxOf(of, where, chosen[chosen.length - 1], 0, of.parts - 1);
  const width = last.left + last.width - first.left;
  const box = { ...first, width, height: last.top + last.height - first.top };
  return [{ box, lines: [{ colour: look.accent, thick: 2, away: 0 }] }];
}

/**
 * Numbers of the columns and rows of a matrix, as many as have space.
 * @param {CanvasRenderingContext2D} context @param {KernelsScene} scene @param {Layout} of
 * @param {Where} where @param {Look} look @returns {Fixed[]}
 */
function axesOf(context, scene, of, where, look) {
  const { a, order } = scene;
  const isFlat = a.rowOf !== null; // one column, without a number
  const isDownOutputs = scene.arranged.down === "outputs";
  const chosen = order.findIndex((plane) => channelIn(scene, plane) === where.selected);
  const y = of.top - 10;

  /** @param {boolean} isDown of the rows */
  function axis(isDown) {
    const isOutputs = isDownOutputs === isDown;
    const own = isDown ? Math.floor(chosen / of.columns) : chosen % of.columns;
    const count = isDown ? of.lines : isFlat ? 0 : of.columns;
    const size = isDown ? of.cellHeight : of.cellWidth;
    const start = isDown ? of.top - where.top : of.left - (where.left ?? 0);
    const texts = Array.from({ length: count }, (_, i) => {
      const { output, input } = placeOf(a, order[isDown ? i * of.columns : i]);
      return String(isOutputs ? output : input);
    });
    const longest = "0".repeat(Math.max(0, ...texts.map((text) => text.length)));
    const least = (/** @type {number} */ font) => {
      context.font = look.font.replace("13px", `${font}px`);
      return isDown ? font + 1 : context.measureText(longest).width + 2;
    };
    const font = FONTS.find((each) => least(each) <= size) ?? FONTS[0];
    const space = least(font) <= size ? size : isDown ? LINE : least(font) + 4;
    const every = STRIDES.find((stride) => stride * size >= space) ?? 1000;
    context.textBaseline = "middle";
    for (let i = 0; i < count; i += every) {
      const text = texts[i];
      const colour = chosen >= 0 && isOutputs && i === own ? look.accent : look.muted;
      const at = start + (i + 0.5) * size;
      if (at < (isDown ? of.top : of.left)) continue;
      if (isDown) write(context, text, of.left - 6, at, colour, "right");
      else write(context, text, at, y, colour, "center");
    }
  }

  function names() {
    const [down, across] = isDownOutputs ? ["output", "input"] : ["input", "output"];
    context.textBaseline = "middle";
    context.font = look.font;
    write(context, isFlat ? "row" : down, of.left - 6, y, look.text, "right", of.left - 8);
    if (!isFlat) write(context, across, of.left, y - LINE - 2, look.text);
  }
  const whole = { left: 0, top: 0, width: where.width, height: where.height };
  const [width, height] = [of.left - 2, of.top - 2];
  return [
    { box: { ...whole, width }, draw: () => axis(true) },
    {
      box: { ...whole, height },
      draw() {
        axis(false);
        names();
      },
    },
  ];
}

// A sequence: a row of pixels per channel.

/**
 * Labels positions above the rows, per part.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {Where} where @param {Look} look
 */
function positions(context, scene, of, where, look) {
  const { block } = scene.picture;
  const all = scene.a.planes.width * block;
  const most = Math.max(1, Math.floor(of.tileWidth / TICK));
  const names = tokensOf(scene);
  const round = [0, ...ticks(0, all, most).filter((at) => at > 0 && at < all)];
  const y = of.top - where.top - 5;
  context.textBaseline = "alphabetic";
  for (let part = 0; part < of.parts; part += 1) {
    const left = corner(of, 0, part).left - (where.left ?? 0);
    let end = -Infinity; // of the name before
    for (const position of names.length ? names.keys() : round) {
      const x = left + (position / all) * of.tileWidth;
      if (x < end) continue;
      const text = names[position]?.trim() ?? short(position);
      end = names.length ? x + context.measureText(text).width - 2 : end;
      context.fillStyle = look.muted;
      if (!names.length || text) context.fillRect(Math.round(x), y, 1, 4);
      write(context, text, x + (names.length ? 1 : 3), y - (names.length ? 2 : 0), look.muted);
    }
  }
}

/**
 * The channels' numbers, those that they are sorted by, and their faults, left of the rows.
 * @param {CanvasRenderingContext2D} context @param {MapsScene} scene @param {Layout} of
 * @param {number[]} cells @param {Where} where @param {Look} look
 */
function numbers(context, scene, of, cells, where, look) {
  const boxOf = (/** @type {number} */ cell) => {
    const { left, top } = corner(of, cell);
    const size = { width: of.cellWidth, height: of.cellHeight };
    return { left: left - (where.left ?? 0), top: top - where.top, ...size };
  };
  /** @param {number} cell @param {string} colour */
  function number(cell, colour) {
    const { top, height } = boxOf(cell);
    const [channel, middle] = [scene.order[cell], top + height / 2];
    const right = of.left - FAULT - 6;
    write(context, String(channel), right, middle, colour, "right");
    const sorted = scene.sorting.texts?.(channel) ?? [];
    const text = sorted.find((each) => context.measureText(each).width <= NUMBERS);
    if (text) write(context, text, right - CHANNEL, middle, colour, "right");
  }
  context.textBaseline = "middle";
  const every = Math.ceil(LINE / of.cellHeight);
  let shown = -Infinity; // y of the last number written
  const chosen = where.selected == null ? -1 : scene.order.indexOf(where.selected);
  const isHidden = (/** @type {number} */ top) =>
    cells.includes(chosen) && Math.abs(top - boxOf(chosen).top) < LINE;
  for (const cell of cells) {
    const { top } = boxOf(cell);
    const channel = scene.order[cell];
    const fault = loudest(flags(scene.maps, scene.question.role, channel));
    context.fillStyle = fault?.colour ?? "";
    if (fault) context.fillRect(of.left - FAULT - 3, top, FAULT, of.cellHeight);
    if (cell % every === 0 && top - shown >= LINE && !isHidden(top)) {
      number(cell, look.muted);
      shown = top;
    }
    if (channel === where.hovered) outline(context, boxOf(cell), look.muted, 1, 0);
  }
  if (!cells.includes(chosen)) return;
  number(chosen, look.accent);
  outline(context, boxOf(chosen), look.accent, 2, 0);
}
