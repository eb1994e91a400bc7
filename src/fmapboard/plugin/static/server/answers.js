// @ts-check
/** Types of what is stored and sent besides the answers (`routes.d.ts`); there is no code here. */

/** @typedef {import("./routes.js").ArrayEntry} ArrayEntry */
/** @typedef {"feature_maps"|"inputs"|"gradients_of_maps"|"kernels"} Role of a picture */

/**
 * One layer of `data/layers`, as `api.js` completes it: `behind` is the layer that an activation follows.
 * @typedef {Omit<import("./routes.js").Layer, "steps"|"wall_times"> &
 *   {steps: number[], wall_times: number[], behind?: string}} Layer
 */

/** @typedef {"nonfinite"|"large"|"dead"|"constant"|"unchanged"} FaultName */

/**
 * Header of a stored record, as far as the tab reads it (`fmapboard.formats.tab_records`).
 * @typedef {{format: number, type?: string, kernel_shape?: number[]|null, pictures: Picture[],
 *   activation?: {label: string, type: string}, change_since?: Record<string, number>}} RecordHeader
 */

/** @typedef {MapsPicture|KernelsPicture} Picture */

/**
 * A picture of one map per channel: `tile` is [height, width] of a map in px, `block` the values per side
 * averaged into one pixel, `view` how the tensor was read as maps, "" for [N, C, H, W].
 * @typedef {{role: Exclude<Role, "kernels">, channels: number, drawn: number, samples: number,
 *   tile: number[], columns: number, padding: number, block: number, view: string, palette: string,
 *   scale: string, layout?: "rows"}} MapsPicture
 */

/**
 * `outputs` and `inputs` are [drawn, all] of the weight's axes, the scale is -`peak` … `peak`.
 * @typedef {{role: "kernels", peak: number, palette: string, padding: number, tile: number[], outputs: number[],
 *   inputs: number[], groups?: number, transposed?: boolean, layout?: "rows"}} KernelsPicture
 */

/**
 * Header of a record of patches (`fmapboard.formats.tab_records`): channels up to `searched`, `k` crops of
 * each, and where these are in the pictures, px.
 * @typedef {{searched: number, channels: number, k: number, one_per_image: boolean, images: number,
 *   names: string[], lost_at: string|null, picture: {rows: number, cell: [number, number],
 *   left: number, top: number, across: number, down: number}}} PatchesHeader
 */

export {};
