/** Types of the modules in `server`. */

import type {
  AttributionAnswer,
  DifferenceAnswer,
  FindingsAnswer,
  HealthAnswer,
  HealthRow,
  HealthStepAnswer,
  HistoryAnswer,
  LayerPatchesAnswer,
  LayersAnswer,
  MapsAnswer,
  NumbersAnswer,
  PatchesAnswer,
  RunsAnswer,
  Shading,
  SheetAnswer,
  SheetInputAnswer,
  TokensAnswer,
  VerdictsAnswer,
} from "./routes.js";

/** Of a picture. */
export type Role = "feature_maps" | "inputs" | "gradients_of_maps" | "kernels";

/**
 * One layer of `data/layers`, as `api.js` completes it: `behind` is the layer that an activation
 * follows.
 */
export type Layer = Omit<import("./routes.js").Layer, "steps" | "wall_times"> & {
  steps: number[];
  wall_times: number[];
  behind?: string;
};

export type FaultName = "nonfinite" | "large" | "dead" | "constant" | "unchanged";

/** Header of a stored record, as far as the tab reads it (`fmapboard.formats.tab_records`). */
export type RecordHeader = {
  format: number;
  type?: string;
  kernel_shape?: number[] | null;
  shape?: string;
  unit?: string;
  pictures: Picture[];
  activation?: { label: string; type: string };
  change_since?: Record<string, number>;
  kernels?: KernelsPicture;
  tokens?: string[][];
};

export type Picture = MapsPicture | KernelsPicture;

/**
 * A picture of one map per channel: `tile` is [height, width] of a map in px, `block` the values
 * per side averaged into one pixel, `view` how the tensor was read as maps, "" for [N, C, H, W].
 */
export type MapsPicture = {
  role: Exclude<Role, "kernels">;
  channels: number;
  drawn: number;
  samples: number;
  tile: number[];
  columns: number;
  padding: number;
  block: number;
  view: string;
  palette: string;
  scale: string;
  layout?: "rows";
  slices?: number[];
  depth?: number;
};

/**
 * `outputs` and `inputs` are [drawn, all] of the weight's axes, the scale is -`peak` … `peak`. An
 * earlier picture has the `step` at which it was drawn.
 */
export type KernelsPicture = {
  role: "kernels";
  step?: number;
  peak: number;
  palette: string;
  padding: number;
  tile: number[];
  outputs: number[];
  inputs: number[];
  groups?: number;
  transposed?: boolean;
  layout?: "rows";
};

/**
 * Header of a record of patches (`fmapboard.formats.tab_records`): channels up to `searched`, `k`
 * crops of each, and where these are in the pictures, px.
 */
export type PatchesHeader = {
  searched: number;
  channels: number;
  k: number;
  one_per_image: boolean;
  images: number;
  names: string[];
  lost_at: string | null;
  picture: {
    rows: number;
    cell: [number, number];
    left: number;
    top: number;
    across: number;
    down: number;
  };
};

export type ListedLayers = Omit<LayersAnswer, "layers"> & { layers: Layer[] };

/** Routes that answer in JSON. */
export type JsonAnswers = {
  runs: RunsAnswer;
  layers: ListedLayers;
  numbers: NumbersAnswer;
  findings: FindingsAnswer;
  verdicts: VerdictsAnswer;
  difference: DifferenceAnswer;
  attribution: AttributionAnswer;
  patches: PatchesAnswer;
};

/** Routes that answer in JSON with arrays behind it. */
export type BinaryAnswers = {
  maps: MapsAnswer;
  history: HistoryAnswer;
  health: HealthAnswer;
  health_step: HealthStepAnswer;
  layer_patches: LayerPatchesAnswer;
  sheet: SheetAnswer;
  sheet_input: SheetInputAnswer;
  tokens: TokensAnswer;
};

/** A list is sent as repeated values. */
export type Query = Record<string, string | number | readonly string[]>;

export type Answering = (path: string, query: Query, signal: AbortSignal) => Promise<Response>;

/** `epoch`: number of the reload. */
export type Entry<T> = {
  value: T | undefined;
  error: Error | null;
  epoch: number;
  loading: boolean;
};

/**
 * Requests that are asked for together, between `begin` and `end`: at most `most` are in flight,
 * the others wait in the order of the last pass; `changed` is called after each answer or error.
 */
export type Pass = { most: number; changed: (prefetched: boolean) => void };

/**
 * A request that is in flight, or waits for others of its pass, with `sent` null. `needed`: asked
 * for since the last `begin`; `prefetch`: requested ahead of time.
 */
export type Pending = {
  of: Pass;
  entry: Entry<unknown>;
  send: () => void;
  sent: AbortController | null;
  needed: boolean;
  prefetch: boolean;
};

/** The JSON, and a copy of the bytes behind it. */
export type Container<T> = { json: T; body: ArrayBuffer };

export type FloatArray = { shape: number[]; values: Float32Array };

export type NamedArrays = Partial<Record<string, FloatArray>>;

/**
 * Maps of C channels, h × w px each: `levels` [C, h, w], value = lo + (hi - lo) * level / 255;
 * `marks` the code of a mark or 0, null if there is none; `coarse` the uncertainty of a value in
 * levels: 1 in a grey picture without marks, otherwise 2.
 */
export type Planes = {
  channels: number;
  height: number;
  width: number;
  levels: Uint8Array;
  marks: Uint8Array | null;
  coarse: number;
};

/** What `planesOf` reads. */
export type GridFacts = Pick<MapsPicture, "drawn" | "tile" | "columns" | "padding" | "palette">;

/**
 * `wallTime` in s, `planes` by `role/sample`, `missing` roles whose pictures TensorBoard no longer
 * keeps, `bytes` approximate memory.
 */
export type Maps = {
  header: RecordHeader;
  step: number;
  wallTime: number;
  arrays: NamedArrays;
  planes: Map<string, Planes>;
  kernels: ImageBitmap | null;
  missing: string[];
  bytes: number;
};

/** Unknown: that of at least one side is not kept. */
export type Inputs = "same" | "different" | "unknown" | "loading";

/** Parts by question. */
export type Embedded = {
  answers: Record<string, string[]>;
  embedded: (name: string) => Promise<ArrayBuffer>;
};

export type HealthLayer = HealthRow & { behind?: string };

/** Scale of the brightness of cells. */
export type Scale = Omit<Shading, "levels">;

export type Health = Omit<HealthAnswer, "arrays" | "codes" | "shading"> & {
  arrays: NamedArrays;
  cells: Record<"codes" | "levels", Uint8Array>;
  scale: Scale;
};

/** Null if it was not logged. */
export type Known = number | null;

/**
 * The state (a code of `health_states.js`) and the numbers of one layer, and the kept step that
 * they are from; numbers that were not logged are NaN or null. `counted`: the numbers of NaN and
 * infinities are no lower bounds. `change` is the mean over the channels, of maps in standard
 * deviations or of weights relative to their norm, since a logged step. `error` says why the
 * record cannot be read.
 */
export type Overview = {
  key: string;
  step: number;
  code: number;
  channels: number;
  error?: string;
  minimum: number;
  maximum: number;
  mean: number;
  std: number;
  nan: Known;
  positive_infinity: Known;
  negative_infinity: Known;
  counted: boolean;
  channels_nonfinite: Known;
  channels_constant: Known;
  channels_dead: Known;
  dead_known: boolean;
  change: Known;
  change_of: "maps" | "weights" | null;
  change_since: Known;
  weights_unchanged_since: Known;
};

/** `ts` is the step's time, s. */
export type StepOfRun = { run: string; step: number; ts?: number };

export type SheetInput = Omit<SheetInputAnswer, "arrays"> & { pixels: Uint8Array; cell: number };

/** `name` of the model, `cell` in device px. */
export type Asked = { run: string; name: string; steps: readonly number[]; cell: number };

/** Arrays are [rows, steps], `starts` says where each map begins in `pixels`. */
export type SheetPage = ReturnType<typeof import("./health.js").pageOf>;

/**
 * How the kernels of a picture are arranged. *Outputs* and *inputs* are the axes of the weight: of
 * a regular convolution [out, in / groups], of a transposed one [out / groups, in]; `outputs` and
 * `inputs` are drawn. A kernel is `width` wide, all `depth` slices of a 3-D one side by side;
 * `rows` are kernels of sequences. `rowOf` is the number of weights of a row, if the weight has
 * two axes: an *output* is then an entry of its first axis, such as an expert, of which the first
 * `width` weights are drawn. `rgb`: one tile per output, its three inputs as red, green and blue.
 * `perRow` is the number of tiles per row of the picture, `padding` in px, `peak` the magnitude of
 * the strongest colour.
 */
export type Arrangement = {
  outputs: number;
  inputs: number;
  allOutputs: number;
  allInputs: number;
  groups: number;
  transposed: boolean;
  height: number;
  width: number;
  depth: number;
  rows: boolean;
  rowOf: number | null;
  rgb: boolean;
  perRow: number;
  padding: number;
  peak: number;
};

/**
 * The weight of a pixel is `lo + (hi - lo) * level / 255` as in a `Side`; planes are in the order
 * of `planeOf`.
 */
export type Kernels = Arrangement & { planes: Planes; lo: Float64Array; hi: Float64Array };

export type Rgb = readonly [number, number, number];
