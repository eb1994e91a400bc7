/** Types of the modules in `model`. */

import type { App } from "../app.js";
import type {
  DrawnKernels,
  LayerDifference,
  Line,
  NumbersAnswer,
  Remark,
  Verdict,
} from "../server/routes.js";
import type {
  Inputs,
  Kernels,
  Layer,
  Maps,
  MapsPicture,
  NamedArrays,
  PatchesHeader,
  Picture,
  Planes,
  Role,
} from "../server/server.js";
import type { FilmSource } from "./film_strips.js";

export type AttributionShown = NonNullable<
  ReturnType<typeof import("./attribution_rows.js").attributionOf>
>;

/** `first` is null where it would control nothing: scores of several images. */
export type Row = ReturnType<typeof import("./attribution_rows.js").row>;

/** A picture of a series; null until it has arrived. */
export type Tile = ReturnType<typeof import("./attribution_rows.js").tile>;

/** Of all channels, see `sketches`. */
export type Sketches = { vectors: Float32Array; length: number };

/**
 * `texts` are the number that a channel is sorted by, the longest form first, and `meaning`
 * explains it; `why` says why the channels are not in the selected order.
 */
export type Sorting = {
  order: number[];
  texts: ((channel: number) => string[]) | null;
  meaning: string;
  why: string;
};

export type FoundOrder = {
  order: number[];
  values: ArrayLike<number>;
  before: string;
  after: string;
  meaning: string;
};

export type Match = { layer: Layer; by: "name" | "position" };

/**
 * A column beside the main one, null where it is not known; `why` there is nothing, "" while it is
 * loading.
 */
export type Placed = {
  column: Column;
  run: string;
  match: Match | null;
  question: Question | null;
  why: string;
};

/** Identifies a picture. */
export type Question = NonNullable<ReturnType<typeof import("./compare.js").question>>;

export type Gone = { what: "run" | "layer"; name: string; shown: string };

/** A layer of the main column. */
export type Ranked = { key: string; match: Match | null; difference: LayerDifference | null };

export type Ranking = ReturnType<typeof import("./compare.js").rank>;

export type ScaleChoice = { scale: Scale; zeroCentred: boolean };

/**
 * A fault since its first kept step; `after` is the kept step before that, `count` that of steps
 * with it.
 */
export type Onset = {
  channel: number;
  kind: Fault;
  word: string;
  step: number;
  after: number | null;
  count: number;
};

export type InputQuestion = { run: string; name: string; sample: number; step: number; ts: number };

/** A layer at one step, with the planes of one role and sample only. */
export type Frame = Awaited<ReturnType<typeof import("./film_strips.js").loadFrame>>;

/** The network's input at one step; equal pictures have equal digests. */
export type InputFrame = Awaited<ReturnType<typeof import("./film_strips.js").loadInput>>;

/**
 * What one strip is of: `letter` is "" if there is only one column, `step` null for the newest,
 * `isOther` that of the column beside the main one.
 */
export type FilmColumn = {
  letter: string;
  text: string;
  run: string;
  layer: Layer;
  role: string;
  sample: number;
  step: number | null;
  isOther: boolean;
  history: History | null;
};

/** A film, and what can be requested for it. */
export type Strip = ReturnType<FilmSource["strip"]>;

export type Front = ReturnType<typeof import("./front.js").front>;

/** Where to go, and what must be said there. */
export type Target = NonNullable<ReturnType<typeof import("./front.js").targetOf>>;

export type Theme = "light" | "dark";

export type Hatch = (x: number, y: number) => boolean;

/** Of a cell by name, NaN where not known. */
export type Numbers = (name: string) => number;

/**
 * Kernels as cells: `columns` per row, 0 if the cells fill the window row by row; `down`: what
 * changes from row to row, or from cell to cell; `isColour`: a tile's colours are the three inputs
 * of one output channel, and its plane is the first of three.
 */
export type Arranged = { columns: number; down: "outputs" | "inputs"; isColour: boolean };

/**
 * `letters` are those of the columns, "" if there is only one; history and numbers may not be
 * there yet.
 */
export type Series = {
  run: string;
  layer: Layer;
  role: string;
  letters: string;
  history: History | null;
  numbers: NumbersAnswer | null;
};

/** All that one drawing of the tab needs. */
export type Model = ReturnType<typeof import("./look.js").look>;

export type Act = (app: App, target: HTMLElement) => void | boolean;

/** Null if it is not kept. */
export type LayerPatches = {
  header: PatchesHeader;
  arrays: NamedArrays;
  picture: ImageBitmap | null;
};

export type PatchesShown = NonNullable<ReturnType<typeof import("./patches.js").patchesOf>>;

/** Lengths are px. */
export type Crop = ReturnType<typeof import("./patches.js").cropsOf>[0];

/**
 * Of the front end's own: a run that holds a difference, and one whose findings cannot be read.
 */
export type RunState = Verdict["state"] | "difference" | "unreadable";

/** The verdict on a run, with the place of its cause, if it has one. */
export type RunVerdict = Pick<Line, "name" | "label" | "key" | "shown_at"> & {
  run: string;
  state: RunState;
  text: string;
  progress: string;
  rest: Remark[];
  since: number | null;
};

/** A tile of a cell: maps of a column, or their difference from those of the main one. */
export type Part = { column: number; isDifference: boolean };

/** `why` there is nothing; `history` of the layer and sample if the scale is locked. */
export type ColumnSource = {
  question: Question | null;
  maps: Maps | null;
  history?: History | null;
  why: string;
};

/** One column as it is drawn; `why` and `note` say what is missing. */
export type SceneColumn = ReturnType<typeof import("./scene.js").otherColumn>;

/** Of a layer: arrays [steps, channels], and the channel that stands for it in the whole run. */
export type History = {
  steps: number[];
  arrays: NamedArrays;
  kernels?: DrawnKernels[];
  unchanged?: number[];
  shown?: number | null;
};

/**
 * `question` and `maps` are those of the main column; `rows`: a row of pixels per channel, for
 * sequences; `wholeLayer`: one scale for all channels, selected here or used when logging.
 */
export type SceneBase = typeof import("./scene.js").BLANK & {
  question: Question;
  maps: Maps;
  picture: Picture | null;
  zeroCentred: boolean;
  rows: boolean;
  wholeLayer: boolean;
};

export type MapsScene = SceneBase & { kind: "maps"; picture: MapsPicture; a: Side };

/** Kernels, on one scale: what is a channel of maps is one of their planes. */
export type KernelsScene = SceneBase & { kind: "kernels"; a: Kernels; arranged: Arranged };

export type GridScene = MapsScene | KernelsScene;

export type AnyScene = GridScene | Strip;

export type EmptyScene = SceneBase & { kind: "none" };

export type Scene = GridScene | EmptyScene;

export type Flags = ReturnType<typeof import("./scene.js").flags>;

export type Fault = "nonfinite" | "large" | "dead" | "constant";

/** `isBoth`: dead and large. */
export type StateMark = {
  kind: Fault;
  word: string;
  brief: string;
  colour: string;
  isBoth?: boolean;
};

export type Sides = NonNullable<ReturnType<typeof import("./sides.js").sidesOf>>;

/**
 * One column as it is drawn: `letter` is "" if there is only one, `match` how the layer was found
 * if not by its name, `input` is the network's input image at exactly this step, `inputs` compares
 * it with that of the main column, and `notes` say what the heading does not tell.
 */
export type SideFacts = {
  letter: string;
  follows: string;
  match: string;
  input: ImageBitmap | null;
  inputs: Inputs;
  notes: string;
};

export type FoundInput = { picture: ImageBitmap | null; loading: boolean };

/** What a new column has of its own. */
export type Kind = "step" | "run" | "sample" | "role";

/**
 * What a column has of its own: "" or null is that of the main column; without a step it follows
 * the slider.
 */
export type Column = { run: string; step: number | null; sample: number | null; role: Role | "" };

/** Relative place in a picture, 0…1 from the top left. */
export type Point = { u: number; v: number };

/** Whose extremes the scale has. */
export type Scale = "channel" | "layer";

export type Palette = "grey" | "viridis" | "magma" | "signed";

export type Sort = "index" | "strength" | "change" | "similarity";

/** Tiles of a comparison: of all columns, differences. */
export type ShownTiles = "both" | "difference" | "all";

/** What the page shows. */
export type View = "overview" | "maps" | "film" | "attribution";

/** "auto" for pictures where they have room. */
export type FrontKind = "auto" | "pictures" | "states";

/** Of the list of findings. */
export type Findings = "closed" | "open";

/** One scale for all steps, or each step's own. */
export type FilmScale = "locked" | "step";
/** Each picture's own scale, or one per layer. */
export type SheetScale = "picture" | "row";

export type HistogramGroup = "activations" | "weights" | "gradients";

/** What the user looks at. */
export type State = typeof import("./state.js").START;

/** The drawn range of each channel. */
export type Ranges = { lo: Float64Array; hi: Float64Array };

/** Maps, values of levels 0 and 255 per channel. */
export type Side = { planes: Planes; lo: ArrayLike<number>; hi: ArrayLike<number> };

/**
 * `values` and `marks` [channels, height, width], NaN where marked; `least`, `most` and the largest
 * magnitude, `peak`, of each channel are NaN without one.
 */
export type Difference = NonNullable<ReturnType<typeof import("./value_scale.js").difference>>;

/** A new entry, one shared with the next, or as `PLACE` says. */
export type How = "visit" | "walk" | "auto";

/** `step_words` of an answer. */
export type Words = Record<string, string> | undefined;

export type Unit = "step" | "image";
