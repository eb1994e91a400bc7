// @ts-check
/** Saves the attribution view as a PNG file: both pictures of each layer, with what they show. */

import { stepText } from "../draw/number_text.js";
import { captionTexts, controlText, effectText, headingText } from "./attribution_text.js";
import { offer, sheet } from "./save.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../state/attribution.js").Row} Row */
/** @typedef {import("../state/attribution.js").Tile} Tile */

const WIDTH = 1200;
const MARGIN = 10;
/** Longer side of a picture, px. */
const SIDE = 220;
const GAP = 8;
/** Width of a layer: two pictures and the space behind them. */
const CELL = 2 * SIDE + GAP + 26;
/** Heights of the title, of a line of text, of a layer's heading, and of its captions. */
const [TITLE, LINE, HEADING, CAPTIONS] = [34, 15, 20, 44];

/** Offers the file for download. @param {Model} model @returns {Promise<string>} what happened */
export async function saveAttribution({ state, attribution }) {
  const rows = attribution?.rows ?? [];
  if (!attribution || !rows.length) return "Nothing to save";
  if (attribution.loading) return "Not saved: pictures are being loaded";
  const { step } = rows[0].now;
  const run = runText(state.run);
  const title = `Attribution · ${run} · step ${stepText(step)} · sample ${attribution.sample}`;
  const lines = linesOf([effectText(rows), controlText(rows), LEGEND]);
  const columns = Math.max(1, Math.min(rows.length, Math.floor((WIDTH - MARGIN) / CELL)));
  const high = Math.max(...rows.map((row) => sizeOf(row.now)[1]));
  const head = TITLE + lines.length * LINE + 14;
  const height = head + Math.ceil(rows.length / columns) * (HEADING + high + CAPTIONS);
  const { canvas, context, look } = sheet(WIDTH, height, title);
  context.font = look.font;
  context.fillStyle = look.muted;
  lines.forEach((text, i) => context.fillText(text, MARGIN, TITLE + 8 + i * LINE));
  rows.forEach((row, i) => {
    const left = MARGIN + (i % columns) * CELL;
    const top = head + Math.floor(i / columns) * (HEADING + high + CAPTIONS);
    context.fillStyle = look.text;
    context.font = look.font.replace("11px", "600 12px");
    context.fillText(headingText(row.series), left, top + 12, CELL - GAP);
    context.font = look.font;
    [row.now, row.first].forEach((tile, k) => {
      if (tile) paintTile(context, row, tile, left + k * (SIDE + GAP), top + HEADING, look);
    });
  });
  return offer(canvas, `${run}_attribution_step${step}`);
}

/**
 * A picture and its captions.
 * @param {CanvasRenderingContext2D} context @param {Row} row @param {Tile} tile one of its two
 * @param {number} left px @param {number} top px @param {{text: string, muted: string}} look
 */
function paintTile(context, row, tile, left, top, look) {
  const [wide, high] = sizeOf(tile);
  context.fillStyle = look.text;
  if (!tile.picture) {
    context.fillText(tile.problem, left, top + 12, SIDE);
    return;
  }
  context.drawImage(tile.picture, left, top, wide, high);
  const [when, norm] = captionTexts(row, tile, tile.picture);
  context.fillText(when, left, top + high + 14, SIDE);
  context.fillStyle = look.muted;
  context.fillText(norm, left, top + high + 14 + LINE, SIDE);
}

/** Size of a picture in the file, px. @param {Tile} tile @returns {[number, number]} */
function sizeOf({ picture }) {
  if (!picture) return [SIDE, SIDE];
  const scale = SIDE / Math.max(picture.width, picture.height);
  return [Math.round(picture.width * scale), Math.round(picture.height * scale)];
}

const LEGEND =
  "From grey, the input, to yellow, the maximum of the picture. An even grey picture: the map is " +
  "negligible or not finite.";
/** Longest line, in characters, that fits into the width. */
const CHARACTERS = 190;

/** Texts as lines of words. @param {string[]} texts @returns {string[]} */
function linesOf(texts) {
  return texts.filter(Boolean).flatMap((text) => {
    const lines = [""];
    for (const word of text.split(" ")) {
      const last = lines[lines.length - 1];
      if (last && last.length + word.length >= CHARACTERS) lines.push(word);
      else lines[lines.length - 1] = last ? `${last} ${word}` : word;
    }
    return lines;
  });
}
