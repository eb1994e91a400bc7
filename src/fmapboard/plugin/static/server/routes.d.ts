/** What the server's routes answer. Written by tests/helpers/answer_types.py: do not edit. */

import type { PatchesHeader, RecordHeader, Role } from "./server.js";

/** A float in a JSON answer: non-finite values are spelled. */
export type JsonFloat = number | "NaN" | "Infinity" | "-Infinity";

/** Where an array is behind the JSON, bytes. */
export type ArrayEntry = { offset: number; shape: number[] };

/** Where bytes are behind the JSON. */
export type Bytes = { offset: number; length: number };

/** `data/runs`. */
export interface RunsAnswer {
  /** those with records of the tab, in natural order. */
  runs: RunEntry[];
  /** the log directories, as given to TensorBoard. */
  logdir: string;
  /** name of that directory, whose own run TensorBoard calls "."; "" if there are several. */
  root: string;
  /** false if TensorBoard keeps its default of 10 steps, because there were no records of the tab when it started. */
  keeps_enough: boolean;
  /** true if there are no runs, but files of fmapboard that TensorBoard has not read. */
  is_unread: boolean;
  /** true if every logged step is kept, by a server that is not TensorBoard. */
  keeps_all: boolean;
}

/** `data/layers`: the layers of a run in network order, and its inputs. */
export interface LayersAnswer {
  /** name of the run. */
  run: string;
  /** what the overview series tells of a layer is not read from its records. */
  layers: Layer[];
  /** one series per model and drawn sample. */
  inputs: InputSeries[];
  /** of all layers, ascending. */
  steps: number[];
  /** their times, s. */
  wall_times: number[];
  /** step -> what it shows, in words, of `visualize`. */
  step_words: Record<string, string>;
  /** number of logged steps. */
  steps_written: number;
  /** the newest logged step if TensorBoard has not read it yet, otherwise null. */
  unread: number | null;
}

/** `data/health`: what is known of each layer, and its state and brightness at each step. */
export interface HealthAnswer {
  /** name of the run. */
  run: string;
  /** the kept ones, ascending. */
  steps: number[];
  /** their times, s. */
  wall_times: number[];
  /** number of logged steps. */
  written: number;
  /** in network order. */
  layers: HealthRow[];
  /** kind of state -> row -> first logged step of the state that lasts. */
  since: Record<string, Record<string, number>>;
  /** step -> what it is called, of images and checkpoints. */
  step_words: Record<string, string>;
  /** where the first non-finite value was. */
  first_nonfinite: FirstFault | null;
  /** words of each state, by code. */
  states: StateWords[];
  /** row -> the severe states of the layer in words, with the largest share of its channels that were dead or constant. */
  severe: Record<string, string>;
  /** rows of the layers that have no value but 0 at any kept step: in a run of differences, those of layers that do not differ. */
  zero_rows: number[];
  /** the drawn maps are those of fixed images in a pass of their own, in eval mode. */
  is_of_probe: boolean;
  /** its pictures have other colours than the images before they were normalized. */
  input_is_stretched: boolean;
  /** step -> why its record cannot be read. */
  errors: Record<string, string>;
  /** float [steps, layers], NaN where a number is not known; empty if there are more than `MAX_NUMBERS` cells. */
  arrays: Record<string, ArrayEntry>;
  /** of `health.states`, uint8 [steps, layers]. */
  codes: ArrayEntry;
  /** brightness. */
  shading: Shading;
}

/** `data/health_step`: the numbers and the states of all layers at a step. */
export interface HealthStepAnswer {
  /** the last kept one up to the requested one. */
  step: number;
  /** of each layer, the step of its numbers: its last one up to the requested one, or its first one if all are later. */
  steps: number[];
  /** of the layers with feature maps; null for the others. */
  keys: (string | null)[];
  /** of each layer. */
  channels: number[];
  /** row -> step since which the weights have been the same, of layers whose weights had not changed at their step. */
  unchanged: Record<string, number>;
  /** why the record of `step` cannot be read. */
  error: string | null;
  /** layers that are not among the rows. */
  others: WeightsOnly[];
  /** float [layers], NaN where a number is not known. */
  arrays: Record<string, ArrayEntry>;
  /** of each layer, uint8 [layers]. */
  codes: ArrayEntry;
}

/** `data/findings`: the findings of a run, ranked, and what they were looked for in. */
export interface FindingsAnswer {
  /** name of the run. */
  run: string;
  /** number of layers. */
  layers: number;
  /** number of kept steps. */
  steps: number;
  /** number of logged steps. */
  written: number;
  /** the newest logged step if TensorBoard has not read it yet, otherwise null. */
  unread: number | null;
  /** those of the checks, in the words of `fmapboard check`. */
  findings: Line[];
  /** the cause of them, or that there is none. */
  line: Verdict;
  /** of the run of differences that `fmapboard diff` writes; null of others. */
  difference: ModelDifference | null;
}

/** `data/verdicts`: how runs are, by the judgements that were stored of them. */
export interface VerdictsAnswer {
  /** without those of runs that `findings` has to judge. */
  verdicts: RunLine[];
}

/** `data/maps`: header, arrays and pictures of a layer at a step. */
export interface MapsAnswer {
  /** of the record, as stored, with the `tokens` that another record has. */
  header: RecordHeader;
  /** number of the step. */
  step: number;
  /** s. */
  wall_time: number;
  /** of the record, and as `ROLE.code` the code of each channel's state, see `health.states`. */
  arrays: Record<string, ArrayEntry>;
  /** one per role and sample. */
  pictures: SamplePicture[];
  /** roles of the pictures that are not kept. */
  missing: string[];
}

/** `data/sheet`. */
export interface SheetAnswer {
  /** one per requested layer that exists. */
  rows: SheetRow[];
  /** float [rows, steps]: `height` and `width` of each map, px, 0 where the channel is not drawn; `lo` and `hi`, the ends of its scale, and `least` and `most`, its range, NaN there. `pixels`, uint8, has one map after the other: palette indices between its own ends. A map that is smaller than a cell is sent as it is stored; one row of pixels as the least and the largest of parts. */
  arrays: Record<string, ArrayEntry>;
}

/** `data/sheet_input`: the network's input at each step. */
export interface SheetInputAnswer {
  /** true if it was the same image at all steps that are kept; null if there are not two. */
  same: boolean | null;
  /** px of each cell, from its left, that the image takes. */
  width: number;
  /** px of each cell, from its top, that the image takes. */
  height: number;
  /** for each step, whether its image is kept. */
  kept: boolean[];
  /** `pixels` uint8 [steps, cell, cell, 3], RGB. */
  arrays: Record<string, ArrayEntry>;
}

/** `data/history`. */
export interface HistoryAnswer {
  /** the steps that can be shown, ascending. */
  steps: number[];
  /** their times, s. */
  wall_times: number[];
  /** the steps at which the layer's kernels were drawn. */
  kernels: DrawnKernels[];
  /** the steps at which they had hardly changed since they were drawn. */
  unchanged: number[];
  /** the channel that stands for the layer at all steps, see `shown_channels`. */
  shown: number | null;
  /** name of a statistic -> float [steps, drawn], NaN where a step has no value; `code` is that of the channel's state, see `health.states`; `left_out` and `left_out_of_layer` say why a locked scale leaves out the step, see `film_scale`; `weights.change` is [steps, 1] if it is that of the whole layer. Where not all channels are drawn, `layer.minimum`, `layer.maximum` and `layer.nonfinite` [steps, 1] are of all of them. */
  arrays: Record<string, ArrayEntry>;
}

/** `data/difference`: pairs of layers, in the requested order. */
export interface DifferenceAnswer {
  layers: LayerDifference[];
}

/** `data/numbers`: scalars and histograms of a layer, by tag without the model's name. */
export interface NumbersAnswer {
  scalars: Record<string, ScalarChart>;
  histograms: Record<string, HistogramChart>;
  /** tags of the scalars that are estimates, of the newest step; null if none is one. */
  estimates?: string[];
  /** the least and the largest usual update ratio. */
  usual_updates: [number, number];
}

/** `data/attribution`: the attribution series of a run in network order; may be empty. */
export interface AttributionAnswer {
  run: string;
  series: AttributionSeries[];
}

/** `data/patches`: the layers with patches; may be empty. */
export interface PatchesAnswer {
  run: string;
  series: PatchesSeries[];
}

/** `data/layer_patches`: header, arrays and one picture of a layer's patches at a step. */
export interface LayerPatchesAnswer {
  /** of the record, as stored. */
  header: PatchesHeader;
  /** number of the step. */
  step: number;
  /** which picture. */
  page: number;
  /** of the record. */
  arrays: Record<string, ArrayEntry>;
  /** the picture; empty if it is not kept. */
  png: Bytes;
}

/** `data/tokens`: the pictures of a layer's tokens in the colours of three components. */
export interface TokensAnswer {
  /** those that are kept, ascending; empty if the layer has no such pictures. */
  steps: number[];
  /** their times, s. */
  wall_times: number[];
  /** a PNG per step, with one pixel per token. */
  pictures: Bytes[];
}

/** A run with records of the tab, its number of layers, and its first wall time, s. */
export interface RunEntry {
  run: string;
  layers: number;
  started: number | null;
}

/** A layer whose feature maps or kernels are drawn. */
export interface Layer {
  /** tag of its records. */
  key: string;
  /** name of the model; "" for none. */
  name: string;
  /** name of the layer, and of the call if it is not the first. */
  label: string;
  /** name of the layer. */
  layer: string;
  /** class of the module. */
  type: string;
  /** shape of the kernels; null for layers without. */
  kernel_shape: number[] | null;
  /** number of the call within the forward pass, from 1. */
  call: number;
  /** position in the order of calls. */
  position: number;
  /** number of channels. */
  channels: number;
  /** number of values per channel over the whole batch; of a record, at the first step with these layers (see the column of that name). */
  values: number;
  /** number of channels drawn; 0 if the layer has no pictures. */
  drawn: number;
  /** number of samples drawn. */
  samples: number;
  /** kinds of pictures. */
  roles: Role[];
  /** label of the activation that directly follows, or null. */
  activation: string | null;
  /** stride of a transposed convolution; null for other layers. */
  transposed_stride: number[] | null;
  /** see `records.LayerCall`. */
  followed_by: string[];
  /** of a part of a block, such as `Attention 12×64`; empty for others. */
  shape: string;
  /** what a channel is: a `channel`, a `feature` of tokens, a `unit` of an MLP. */
  unit: string;
  /** why its newest record cannot be read; null if it can. */
  error: string | null;
  /** number of its records, those that are not kept included. */
  steps_written: number;
  /** the steps that can be shown, ascending; null if they are those of the answer. */
  steps?: number[];
  /** their times, s; null as `steps`. */
  wall_times?: number[];
}

/** Where the pictures of one sample of the model's input are: steps, and wall times in s. */
export interface InputSeries {
  name: string;
  sample: number;
  steps: number[];
  wall_times: number[];
}

/** One layer call of a run. */
export interface HealthRow {
  /** name of the layer, and of the call if it is not the first. */
  label: string;
  /** name of the layer. */
  layer: string;
  /** class of the module. */
  type: string;
  /** shape of the kernels; null for layers without. */
  kernel_shape: number[] | null;
  /** number of the call within the forward pass, from 1. */
  call: number;
  /** position in the order of calls. */
  position: number;
  /** number of channels. */
  channels: number;
  /** number of values per channel over the whole batch; of a record, at the first step with these layers (see the column of that name). */
  values: number;
  /** number of channels drawn; 0 if the layer has no pictures. */
  drawn: number;
  /** number of samples drawn. */
  samples: number;
  /** kinds of pictures. */
  roles: Role[];
  /** label of the activation that directly follows, or null. */
  activation: string | null;
  /** stride of a transposed convolution; null for other layers. */
  transposed_stride: number[] | null;
  /** see `records.LayerCall`. */
  followed_by: string[];
  /** of a part of a block, such as `Attention 12×64`; empty for others. */
  shape: string;
  /** what a channel is: a `channel`, a `feature` of tokens, a `unit` of an MLP. */
  unit: string;
  /** name of the model, as in `watch(name=...)`; "" for none. */
  name: string;
  /** tag of the layer's records, or null if the layer has no pictures. */
  key: string | null;
  /** key of the layer whose pictures show this one: its own; of an activation, that of the layer it follows; otherwise that of the nearest layer with pictures before it in the order of calls, else after it; null if the run has no pictures at all. */
  shown_at: string | null;
}

/** Where the first non-finite value was, in words and with the key of the layer to look at. */
export interface FirstFault {
  step: number;
  text: string;
  name: string;
  label: string | null;
  shown_at: string | null;
}

/** Word of a state, and what it means. */
export interface StateWords {
  word: string;
  what: string;
}

/** Brightness of the cells: the range of values of a layer, on a logarithmic scale. */
export interface Shading {
  /** value of level 0, which smaller values have too; null if no value is known of a layer without a fault. */
  lo: number | null;
  /** value of the highest level, which larger values have too; null likewise. */
  hi: number | null;
  /** uint8 [steps, layers], 0 to `LEVELS` - 1, or `UNKNOWN_LEVEL`. */
  levels: ArrayEntry;
}

/** A layer with pictures but without feature maps, such as one of which only kernels are drawn. */
export interface WeightsOnly {
  /** of the layer. */
  key: string;
  /** the kept step that it is from. */
  step: number;
  /** of the weights, the mean over channels, NaN if it is finite for none; null if it is not recorded. */
  change: JsonFloat | null;
  /** the step that was compared with. */
  since: number | null;
  /** `UNCHANGED` if the change of each channel is exactly 0. */
  code: number;
  /** why the record cannot be read. */
  error: string | null;
}

/** A finding of a check. */
export interface Line {
  /** `warning` or `note`. */
  class: "warning" | "note";
  /** of the check. */
  kind: string;
  /** 2 for what belongs to a fault, 1 for what belongs to a suspicion. */
  severity: number;
  /** name of the model, as in `watch(name=...)`; "" for none. */
  name: string;
  /** the layer; "" if it is not about a layer. */
  label: string;
  /** that of the layer's row in the table; null if it has none. */
  index: number | null;
  /** of the layer; null if it has no pictures, or if it is not about a layer. */
  key: string | null;
  /** key of the layer whose pictures show it. */
  shown_at: string | null;
  /** first logged step with it. */
  since: number;
  /** the number that it is about; NaN for none. */
  value: JsonFloat;
  /** the finding in one sentence. */
  message: string;
  /** what it may mean, and what to do, without what it may follow from. */
  explanation: string;
  /** kind of the finding above from which it may follow; "" for none. */
  follows: string;
}

/** How the run is, in one line, and why. */
export interface Verdict {
  /** `fault`, `suspicion`, `does not learn`, `not known`, `learns` or `no training`. */
  state: "fault" | "suspicion" | "does not learn" | "not known" | "learns" | "no training";
  /** the cause, and what an experiment has shown of it or, if there is none, whether it learns; names are between backticks. */
  text: string;
  /** what the loss and the accuracy do, where `text` names a cause instead; "" if nothing is known of them. */
  progress: string;
  /** the other lines of `fmapboard why` without names of checks and functions, but for that to look at the tab. */
  rest: Remark[];
  /** name of the model; "" for none. */
  name: string;
  /** the layer call; "" if it is not about a layer. */
  label: string;
  /** of the layer; null if it has no pictures. */
  key?: string;
  /** key of the layer whose pictures show it. */
  shown_at?: string;
  /** step since which it lasts; null if nothing was found. */
  since?: number;
}

/** What `fmapboard diff` printed. */
export interface ModelDifference {
  /** which layer differs first and by how much, and how many do; names are between backticks. */
  text: string;
  /** all layers. */
  table: DifferenceTable;
}

/** How a run is, in one line; see `Verdict`. */
export interface RunLine {
  run: string;
  state: "fault" | "suspicion" | "does not learn" | "not known" | "learns" | "no training";
  text: string;
}

/** The picture of one sample. */
export interface SamplePicture {
  role: Role;
  sample: number;
  png: Bytes;
}

/** A layer's row of the contact sheet. */
export interface SheetRow {
  /** of the layer. */
  key: string;
  /** the channel that is shown, see `shown_channels`; null if it is drawn at none of the requested steps. */
  channel: number | null;
  /** name of the palette in which the maps are stored. */
  palette: string;
  /** which part of the maps is shown, such as a depth slice; "" for all. */
  view: string;
  /** why a step's record cannot be read; null if all can. */
  why?: string;
}

/** A step at which the layer's kernels were drawn, and their largest magnitude, if stored. */
export interface DrawnKernels {
  step: number;
  peak: number | null;
}

/** A pair of layers, and how much they differ. */
export interface LayerDifference {
  /** of the layer. */
  key: string;
  /** of the layer of the other side. */
  other_key: string;
  /** whether both saw the same input image: `same`, `different` or `unknown`; null if a layer cannot be read. */
  inputs: "same" | "different" | "unknown" | null;
  /** why there is no measure; "" if there is one. */
  why: string;
  /** at which the layer was compared: the last one up to that of its side. */
  step: number | null;
  /** the same of the other side. */
  other_step: number | null;
  /** If both sides saw the same input image, `maps`: the root mean square of the difference between the drawn maps, divided by that of the maps (of both sides together), so that 0 means the same maps and 2 opposite ones. Otherwise, or if the maps differ in size, `statistics`: the same of the channels' means and standard deviations over the batch. This and what follows is null if it cannot be told. */
  measure: "maps" | "statistics" | null;
  /** the measure. */
  value: JsonFloat | null;
  /** the part of it that may be due to rounding, of maps. */
  rounding: JsonFloat | null;
  /** the root mean square of the other side divided by that of the first one: where it is far from 1, `value` is about 1.41 whatever the maps show. */
  ratio: JsonFloat | null;
  /** share of the values that are not finite. */
  nonfinite: number | null;
  /** of layers that can be ranked by one number: by `nonfinite` where that is above 0, by `ratio` (`size`) where one side is far larger than the other, else by the `value` of the measure; `none` without one. */
  group: "nonfinite" | "size" | "maps" | "statistics" | "none";
  /** on which the other side's maps are drawn: `first` if they are readable in most channels on the scale of the first side, else `own`; null if a layer cannot be read. */
  scale: "first" | "own" | null;
}

/** A scalar over the steps. */
export interface ScalarChart {
  steps: number[];
  values: JsonFloat[];
}

/** A histogram at each step: the edges [K + 1] of its buckets, and their counts [K]. */
export interface HistogramChart {
  steps: number[];
  edges: JsonFloat[][];
  counts: JsonFloat[][];
}

/** The pictures of the attribution of a sample at a layer. */
export interface AttributionSeries {
  /** tag of the Images series. */
  key: string;
  /** name of the model; "" for none. */
  name: string;
  /** the layer call. */
  label: string;
  /** index of the sample. */
  sample: number;
  /** the steps that can be shown, ascending. */
  steps: number[];
  /** their times, s. */
  wall_times: number[];
  /** of the layer; "" if unknown. */
  type: string;
  /** of the layer in the order of calls; 2**31 if unknown. */
  position: number;
  /** height and width of the maps; null if unknown. */
  size: [number, number] | null;
  /** what is explained: `loss`, `score` or `probe`. */
  of: "loss" | "probe" | "score";
  /** norm of the gradient at each step; null if unknown. */
  gradients: (number | null)[];
  /** what is explained at each step; null if it is a loss or unknown. */
  scores: (Score | null)[];
  /** label of the layer of which every channel is dead at each step, so that there is nothing to attribute: this one, or, where no gradient arrives, the nearest one behind it; null if there is none. */
  dead: (string | null)[];
}

/** Where the patches of a layer are: steps, and wall times in s. */
export interface PatchesSeries {
  /** tag of the layer's own records. */
  key: string;
  steps: number[];
  wall_times: number[];
}

/** A line of the text about a run: "evidence: loss 2.3 at step 0, 0.41 at step 90". */
export interface Remark {
  /** what kind of line it is. */
  label: string;
  /** the rest, a sentence without a full stop. */
  text: string;
}

/** The table. */
export interface DifferenceTable {
  /** relative error from which on a row is different. */
  tolerance: number;
  /** number of rows that were compared. */
  compared: number;
  /** number of rows that are different. */
  different: number;
  /** the first `MAX_ROWS` ones in order of execution. */
  rows: DifferenceRow[];
}

/** The score that is explained, such as that of `class 3`; `value` is null if not finite. */
export interface Score {
  name: string;
  value?: number;
}

/** A layer, or a place between two layers, as `diff` prints it. */
export interface DifferenceRow {
  /** of the layer, or of the place. */
  name: string;
  /** class of the module; "" for a place. */
  type: string;
  /** relative error of what it received; "–" if it was not compared. */
  error_in: string;
  /** relative error of what it returned, likewise. */
  error_out: string;
  /** relative error that it adds, likewise. */
  added: string;
  /** what else differs, in words. */
  note: string;
  /** it adds more than the tolerance. */
  is_different: boolean;
}
