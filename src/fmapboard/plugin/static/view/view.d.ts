/** Types of the modules in `view`. */

import type { App } from "../app.js";
import type { Front, Model, Series, Strip, Words } from "../model/model.js";
import type { Layout, SheetLayout } from "../picture/picture.js";
import type { RunEntry } from "../server/routes.js";
import type {
  FaultName,
  Health,
  HealthLayer,
  Layer,
  Overview,
  SheetInput,
  SheetPage,
} from "../server/server.js";

export type ModelProps = { app: App; model: Model };

/** `nothing`: there is no layer to show. */
export type BarProps = ModelProps & {
  nothing: boolean;
  busy: boolean;
  drawer: Drawer | null;
  pull: (name: Drawer) => void;
};

/** Index of a layer, and of a step. */
export type Cell = { row: number; column: number };

export type Grid = { layers: readonly HealthLayer[]; steps: readonly number[]; run: string };

/** `terms` of the glossary; `texts` with their lines and, of several, whose these are. */
export type Facts = {
  title: string;
  terms: string;
  texts: { text: string; colour?: string; dash?: readonly number[]; whose?: string }[];
  tip?: string;
  nonfinite?: boolean;
  label: string;
  paint: ((canvas: HTMLCanvasElement, width: number) => void) | null;
};

/**
 * What all charts share: the slider's step, the first and last step, the steps of the columns, the
 * series.
 */
export type At = {
  step: number;
  span: [number, number];
  pinned: number[];
  words: Words;
  all: Series[];
};

export type IconName = keyof typeof import("./controls.js").ICONS;

export type Steps = Pick<Strip, "history" | "layer" | "steps" | "words" | "unit">;

/** `rest` is the part of the column of `step` that is scrolled away. */
export type Scrolled = { step: number; rest: number; row: number };

/** What others do with a strip. */
export type PaneActs = {
  wanted: () => number[];
  pointedAt: () => ReturnType<typeof import("../picture/layouts.js").filmHit>;
  scrolledTo: () => Scrolled | null;
  follow: (to: Scrolled) => void;
  hasFocus: () => boolean;
  tile: () => number;
};

export type Hit = ReturnType<typeof import("../picture/layouts.js").hit>;

/** `ends` are words in place of numbers, where each tile has a scale of its own. */
export type BarFacts = {
  range: readonly [number, number];
  ends?: readonly string[];
  palette: string;
  title: string;
};

/** By key of the layer. */
export type Overviews = Map<string, Overview>;

export type RowProps = { row: Row; overview: Overviews; isFolded: boolean; attributes: object };

export type ChangeOf = "maps" | "weights";

export type FaultKind = FaultName | "unreadable" | "fine";

/** All numbers in words. */
export type LayerHealth = Fault & { text: string };

/** Severity: 0 none, 1 minor, 2 major, 3 non-finite values. */
export type Fault = ReturnType<typeof import("./layers.js").fault>;

/** With its layers. */
export type Row = {
  kind: "group" | "layer";
  id: string;
  text: string;
  depth: number;
  layers: Layer[];
};

/** A layer, and the parts of its name below a group. */
export type Named = { layer: Layer; rest: string[] };

/** Place of a row among its siblings, from 1. */
export type Place = { at: number; of: number };

export type ReportFacts = {
  title: string;
  version: string;
  written: string;
  privacy: string;
  left_out: string[];
};

export type FrontProps = { app: App; model: Model; front: Front };

export type Drawer = "layers" | "details";

/**
 * What keys and other views do with the views on the page; each sets its own when it is drawn.
 */
export type Acts = {
  bar: { save: () => Promise<void> };
  help: { isOpen: () => boolean; close: () => void; toggle: () => void };
  layers: { move: (by: number) => void; fold: () => void; search: () => void };
  grid: { move: (by: number, rows: boolean) => void; shownTile: () => number };
  film: {
    move: (by: number) => void;
    save: (tell: (text: string) => void) => Promise<string>;
    enter: () => void;
    shownTile: () => number;
  };
  cells?: { move: (rows: number, columns: number) => void; enter: () => void };
};

/**
 * `stateOf` is said behind the name of a run, `same` is the entry that means "the run of the main
 * column", for which `choose` gets "".
 */
export type Offer = {
  label: string;
  runs: readonly string[];
  chosen: string;
  same?: string;
  stateOf?: (run: string) => string;
  choose: (run: string) => void;
};

export type Bar = { palette: string; text: string };

/**
 * What is laid out: layers, their indices in `health.layers`, their names, and the keys of each
 * page.
 */
export type Sheet = {
  health: Health;
  layers: HealthLayer[];
  indices: number[];
  names: string[];
  onsets: readonly number[];
  layout: SheetLayout;
  keys: string[][];
  key: string;
};

/** What has arrived: a page, or why there is none. */
export type Page = SheetPage | string | null;

export type Drawn = { sheet: Sheet; pages: Page[]; input: SheetInput | null };

/** An event of a list. */
export type OfSelect = { currentTarget: HTMLSelectElement };

/**
 * What `useScrolled` shows: `place` lays it out for a window, `paint` paints what is seen of it;
 * `pointed` is called when something else may be under the pointer.
 */
export type ScrolledPicture<L extends Layout, T> = {
  place: (size: { width: number; height: number; ratio: number }) => L | null;
  paint: (context: CanvasRenderingContext2D, layout: L, where: ScrolledWindow) => void;
  inputs: readonly unknown[];
  hit: (layout: L, x: number, y: number) => T | null;
  pointed: (at: T | null) => void;
  scrolled?: () => void;
  click: (at: T, event: MouseEvent) => void;
};

/** The visible part of a picture, CSS px. */
export type ScrolledWindow = {
  top: number;
  left: number;
  width: number;
  height: number;
  ratio: number;
};
