/** Types of the modules in `picture`. */

import type { Point, Theme } from "../model/model.js";
import type { FaultName } from "../server/server.js";

/** CSS px. */
export type Box = { left: number; top: number; width: number; height: number };

/**
 * That of the page, and the palette of maps; `over` is the network's input of each column, which
 * is drawn over its maps with an opacity of `alpha`.
 */
export type Look = ReturnType<typeof import("./canvas.js").read> & { palette: string; over?: Over };
export type Over = { images: (ImageBitmap | null | undefined)[]; alpha: number };

/** Lengths are CSS px. */
export type MapLayout = ReturnType<typeof import("./health_map.js").mapLayout>;

/**
 * The worst member of each cell, [rows, columns]: its code, the brightest level with that code,
 * its index in [steps, layers].
 */
export type Binned = ReturnType<typeof import("./health_map.js").binned>;

/** Device px per CSS px. */
export type MapLook = ReturnType<typeof import("./canvas.js").theme> & {
  theme: Theme;
  ratio: number;
};

/**
 * `severe` is the word of a layer's worst state, "" if it is not severe; `worst` the code of each
 * layer.
 */
export type Names = {
  layers: readonly string[];
  steps: readonly (readonly [string, string])[];
  severe: (layer: number) => string;
  worst: Uint8Array;
};

/**
 * Cells with `parts` tiles side by side, of maps of that many px; `tile` is the longer side of a
 * tile in CSS px, 0 to about fit the window, `ratio` device px per CSS px. `rows`: sequences, each
 * cell is one row of pixels; `numbered`: a number stands at each cell, below its caption or left
 * of its row; `columns` of a matrix, 0 or nothing if lines are filled.
 */
export type LayoutRequest = {
  count: number;
  parts: number;
  mapHeight: number;
  mapWidth: number;
  tile: number;
  available: number;
  windowHeight: number;
  ratio: number;
  rows?: boolean;
  numbered?: boolean;
  columns?: number;
};

/**
 * Lengths are CSS px; `factor` and `factorDown` are device px per map px. Cells fill lines, and
 * `perBand` lines a band, of which `left` and `top` are the margins.
 */
export type Layout = {
  count: number;
  parts: number;
  columns: number;
  lines: number;
  left: number;
  top: number;
  cellWidth: number;
  cellHeight: number;
  tileWidth: number;
  tileHeight: number;
  factor: number;
  factorDown: number;
  width: number;
  height: number;
  perBand: number;
  bandHeight: number;
  rows: boolean;
};

/** The visible part of what is laid out, CSS px. */
export type Window = { top: number; left?: number; width: number; height: number };

/**
 * `count` steps of maps of that many px, a row per channel; `isSequence`: each map is one row of
 * pixels; `tile` is the longer side of a tile in CSS px, 0 to about fit the window, `ratio` device
 * px per CSS px; `wraps`: columns that the window has no place for are in further bands; without
 * `hasMaps` only kernels are shown; `isOneInput`: that of all steps, which is drawn once; in a file
 * (`isSaved`) each step has its own.
 */
export type FilmRequest = {
  count: number;
  rows: number;
  mapHeight: number;
  mapWidth: number;
  isSequence: boolean;
  tile: number;
  windowWidth: number;
  windowHeight: number;
  ratio: number;
  wraps?: boolean;
  isSaved?: boolean;
  isOneInput?: boolean;
  hasInput: boolean;
  hasMaps: boolean;
  hasKernels: boolean;
};

export type ScreenRequest = Pick<
  FilmRequest,
  "tile" | "windowWidth" | "windowHeight" | "ratio" | "wraps" | "isSaved"
>;

/** A line per channel, a column per step; below 1, `factor` shrinks the map. */
export type FilmLayout = ReturnType<typeof import("./layouts.js").film>;

/**
 * Lengths are CSS px, `line` the height of a row; `rows` are those of a page: a screenful, which is
 * asked for at once.
 */
export type SheetLayout = ReturnType<typeof import("./layouts.js").sheetLayout>;

/** A text at a place, CSS px; `width` squeezes it. */
export type Text = {
  text: string;
  x: number;
  y: number;
  colour: string;
  align?: CanvasTextAlign;
  baseline?: CanvasTextBaseline;
  width?: number | undefined;
  isBold?: boolean;
  isSmall?: boolean;
};

/** A line around the box of a tile, or another one. */
export type Outline = {
  colour: string;
  thick: number;
  away?: number;
  dash?: number[];
  corner?: number;
  box?: Box;
};

/**
 * A picture and what belongs to it: `pixels` are drawn as blocks of `across` × `down` device px,
 * an `image` in its size over them, with an opacity of `alpha`; `isCrossed` out without one;
 * `hatch` is the colour of lines over it; `point` is looked at, in a map of some px.
 */
export type Tile = {
  box: Box;
  pixels?: Uint32Array;
  width?: number;
  across?: number;
  down?: number;
  image?: CanvasImageSource;
  alpha?: number;
  isSmooth?: boolean;
  isGrey?: boolean;
  isCrossed?: boolean;
  hatch?: string;
  lines?: Outline[];
  texts?: Text[];
  marks?: { box: Box; colour: string }[];
  point?: Point | null;
  map?: { height: number; width: number } | null;
};

/** Cells in one state: the lines around them, as [left, top, right, bottom], CSS px. */
export type Region = { state: FaultName; sides: number[][] };

/** What does not scroll: it covers its box. */
export type Fixed = { box: Box; draw: () => void };

/**
 * The visible part of a picture, CSS px, and channels: `chosen` are those of the film strip.
 */
export type Where = Window & {
  ratio: number;
  selected?: number | null;
  hovered?: number | null;
  chosen?: readonly number[];
};
