// @ts-check
/** Types of what is stored and sent besides the answers (`routes.d.ts`); there is no code here. */

/** @typedef {import("./routes.js").ArrayEntry} ArrayEntry */

/**
 * What a picture shows of a layer.
 * @typedef {"feature_maps"|"inputs"|"gradients_of_maps"|"kernels"} Role
 */

/**
 * One layer of `data/layers`, as `api.js` completes it.
 * @typedef {Omit<import("./routes.js").Layer, "steps"|"wall_times"> & { steps: number[],
 * wall_times: number[], behind?: string, }} Layer `behind` is the label of the layer that an
 * activation directly follows
 */

/** @typedef {"nonfinite"|"large"|"dead"|"constant"|"unchanged"} FaultName */

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
 * Header of a record of patches (`fmapboard.formats.tab_records`).
 * @typedef {object} PatchesHeader
 * @property {number} searched channels, from the first one
 * @property {number} channels
 * @property {number} k crops per channel
 * @property {boolean} one_per_image
 * @property {number} images that were searched
 * @property {string[]} names of the images with a crop
 * @property {string|null} lost_at why the field is given as the whole image
 * @property {PatchesPicture} picture
 */

/**
 * Where the crops are in the pictures, px.
 * @typedef {object} PatchesPicture
 * @property {number} rows channels per picture
 * @property {[number, number]} cell [height, width] of a crop
 * @property {number} left @property {number} top
 * @property {number} across from a crop to the next one
 * @property {number} down from a channel to the next one
 */

export {};
