// @ts-check
/** Types of the answers about patches (`fmapboard.plugin.routes.patches`). */

/**
 * `data/patches`.
 * @typedef {object} PatchesAnswer
 * @property {string} run
 * @property {PatchesSeries[]} series empty if the run has none
 */

/**
 * The searches of a layer's patches.
 * @typedef {object} PatchesSeries
 * @property {string} key that of the layer
 * @property {number[]} steps ascending
 * @property {number[]} wall_times s
 */

/**
 * JSON of `data/layer_patches`; its arrays are [searched, k] or [searched, k, n].
 * @typedef {object} LayerPatchesFacts
 * @property {PatchesHeader} header
 * @property {number} step
 * @property {number} page which of the layer's pictures the PNG is, from 0
 * @property {Record<string, import("./answers.js").ArrayEntry>} arrays
 * @property {import("./answers.js").Bytes} png empty if it is not kept
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
