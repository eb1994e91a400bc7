// @ts-check
/** Types of the server's answers, by route (`fmapboard.plugin.routes`); there is no code here. */

/**
 * A float in a JSON answer: TensorBoard spells non-finite values as strings.
 * @typedef {number|"NaN"|"Infinity"|"-Infinity"} JsonFloat
 */

/**
 * What a picture shows of a layer.
 * @typedef {"feature_maps"|"inputs"|"gradients_of_maps"|"kernels"} Role
 */

/**
 * `data/runs`.
 * @typedef {object} RunsAnswer
 * @property {RunEntry[]} runs runs that hold fmapboard records
 * @property {string} logdir
 * @property {string} root name of that directory, "" if there are several
 * @property {boolean} keeps_enough false if TensorBoard keeps its default of 10 steps per series
 * @property {boolean} is_unread there are no runs, but files of fmapboard that TensorBoard has not read
 */

/**
 * @typedef {object} RunEntry
 * @property {string} run name
 * @property {number} layers number of layers
 * @property {number|null} started time of the run's first event, s
 */

/**
 * `data/layers`.
 * @typedef {object} LayersAnswer
 * @property {string} run
 * @property {Layer[]} layers in network order
 * @property {InputSeries[]} inputs
 * @property {number[]} steps kept steps of all layers, ascending
 * @property {number[]} wall_times s, one per step
 * @property {Record<string, string>} [step_words] step -> what it shows, such as "image 3 (cat.jpg)",
 *   in a run of `visualize`
 * @property {number} steps_written number of logged steps
 * @property {number|null} unread newest logged step if TensorBoard has not read it yet
 */

/**
 * One layer of `data/layers`. The server leaves out steps and times that are those of the answer;
 * `layers` of `api.js` adds them.
 * @typedef {object} Layer
 * @property {string} key tag of the layer's records
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {string} layer module name
 * @property {string} label module name, and the call if it is not the first
 * @property {number} call 1 for the first call in a forward pass
 * @property {string} type module class
 * @property {number[]|null} kernel_shape
 * @property {number} position in the order of calls, from 0
 * @property {number} channels
 * @property {number} values per channel, over the whole batch
 * @property {number} drawn channels that have pictures
 * @property {number} samples per picture
 * @property {number[]|null} transposed_stride of a transposed convolution
 * @property {Role[]} roles
 * @property {string|null} activation label of the activation module that follows
 * @property {string} [behind] label of the layer that an activation directly follows; `api.js` adds it
 * @property {number[]} steps kept steps, ascending
 * @property {number[]} wall_times s, one per step
 * @property {number} steps_written number of logged steps
 * @property {boolean} step_from_first the first kept step is no longer in TensorBoard's series, but in
 *   a record of its own
 * @property {string|null} error why its newest record cannot be read
 */

/**
 * The kept pictures of one sample of the network's input.
 * @typedef {object} InputSeries
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {number} sample
 * @property {number[]} steps
 * @property {number[]} wall_times s, one per step
 */

/** @typedef {"nonfinite"|"large"|"dead"|"constant"|"unchanged"} FaultName */

/**
 * Where the first non-finite value was found, of all measured layers and parameters.
 * @typedef {object} FirstNonfinite
 * @property {number} step logged, but perhaps not kept
 * @property {string} text
 * @property {string} name as in `watch(name=…)`, "" for none
 * @property {string|null} label of the layer, which may have no pictures; null for a parameter
 * @property {string|null} shown_at key of the layer whose pictures show it, null if not known
 */

/**
 * `data/difference`.
 * @typedef {object} DifferenceAnswer
 * @property {LayerDifference[]} layers in the requested order
 */

/**
 * How much a layer differs from its counterpart. The numbers are null where they are not known.
 * @typedef {object} LayerDifference
 * @property {string} key
 * @property {string} other_key
 * @property {"same"|"different"|"unknown"|null} inputs whether both saw the same input image
 * @property {number|null} step the kept step that was compared
 * @property {number|null} other_step
 * @property {"maps"|"statistics"|null} measure what was compared
 * @property {JsonFloat|null} value relative root mean square of the difference, 0…2
 * @property {JsonFloat|null} rounding the part of it that may be rounding; null for statistics
 * @property {JsonFloat|null} [ratio] root mean square of the other side ÷ that of the main one; null
 *   if both are 0
 * @property {number|null} nonfinite share of values (channels) left out: not finite on a side
 * @property {string} why there is no value, in words
 */

/**
 * `data/numbers`: series by tag.
 * @typedef {object} NumbersAnswer
 * @property {Record<string, ScalarSeries>} scalars
 * @property {Record<string, HistogramSeries>} histograms
 */

/** @typedef {{steps: number[], values: JsonFloat[]}} ScalarSeries */

/**
 * Per step, K counts and the K + 1 edges of their buckets.
 * @typedef {{steps: number[], edges: JsonFloat[][], counts: JsonFloat[][]}} HistogramSeries
 */

/** @typedef {{offset: number, shape: number[]}} ArrayEntry an array behind the JSON */

/** @typedef {{offset: number, length: number}} Bytes behind the JSON */

/**
 * JSON of `data/history`; its arrays are [steps, channels], lo and hi those of one sample.
 * @typedef {{steps: number[], wall_times: number[], kernels: KernelsAt[],
 *   arrays: Record<string, ArrayEntry>}} HistoryFacts
 */

/** @typedef {{step: number, peak: number|null}} KernelsAt a step that kernels were drawn at */

/**
 * JSON of `data/maps`.
 * @typedef {object} MapsFacts
 * @property {RecordHeader} header
 * @property {number} step
 * @property {number} wall_time s
 * @property {Record<string, ArrayEntry>} arrays of the record
 * @property {SamplePicture[]} pictures
 * @property {string[]} missing roles whose pictures TensorBoard no longer keeps
 */

/**
 * The picture of one sample.
 * @typedef {object} SamplePicture
 * @property {Role} role
 * @property {number} sample
 * @property {Bytes} png
 */

/**
 * Header of a stored record, as far as the tab reads it (`fmapboard.formats.tab_records`).
 * @typedef {object} RecordHeader
 * @property {number} format
 * @property {string} [type] module class
 * @property {number[]|null} [kernel_shape]
 * @property {{label: string, type: string}} [activation] that directly follows the layer
 * @property {Picture[]} pictures
 * @property {Record<string, number>} [change_since] by role or "weights": logged step compared with
 */

/** @typedef {MapsPicture|KernelsPicture} Picture */

/**
 * A picture of one map per channel.
 * @typedef {object} MapsPicture
 * @property {Exclude<Role, "kernels">} role
 * @property {number} channels
 * @property {number} drawn channels in the picture
 * @property {number} samples
 * @property {number[]} tile [height, width] of a map, px
 * @property {number} columns tiles per row
 * @property {number} padding px
 * @property {number} block values per side averaged into one pixel
 * @property {string} view how the tensor was read as maps, "" for [N, C, H, W]
 * @property {string} palette
 * @property {string} scale "channel", "layer" or "locked"
 * @property {"rows"} [layout] sequences; a grid of tiles otherwise
 */

/**
 * @typedef {object} KernelsPicture
 * @property {"kernels"} role
 * @property {number} peak largest magnitude: the scale is -peak … peak
 * @property {string} palette "rgb" or "signed"
 * @property {number} padding px
 * @property {number[]} outputs [drawn, all] of the weight's axis
 * @property {number[]} inputs [drawn, all] of the weight's axis
 * @property {number} [groups] of the convolution, if there are several
 * @property {boolean} [transposed]
 * @property {"rows"} [layout]
 */

/**
 * JSON of `data/attribution`.
 * @typedef {object} AttributionAnswer
 * @property {string} run
 * @property {AttributionSeries[]} series in network order, then by sample; empty if there is none
 */

/**
 * @typedef {object} AttributionSeries
 * @property {string} key
 * @property {string} name of the model, or ""
 * @property {string} label of the layer call
 * @property {number} sample
 * @property {string} type module class, "" if unknown
 * @property {number} position in network order
 * @property {[number, number]|null} size [height, width] of the layer's maps, null if unknown
 * @property {"loss"|"probe"|"score"} of whose gradient it is: the step's loss, the probe's, a score
 * @property {number[]} steps kept ones, and the first
 * @property {number[]} wall_times s
 * @property {(number|null)[]} gradients norm at each step, null if unknown or not finite
 * @property {boolean} first_is_restored the first step is not kept in the series itself
 */

export {};
