// @ts-check
/** Answers of the server that several tests share. */

/** @type {import("../../src/fmapboard/plugin/static/server/server.js").Layer} */
export const LAYER = {
  key: "fmapboard/conv",
  name: "",
  layer: "conv",
  label: "conv",
  call: 1,
  type: "Conv2d",
  kernel_shape: null,
  position: 0,
  channels: 8,
  values: 1000,
  drawn: 8,
  samples: 1,
  transposed_stride: null,
  shape: "",
  unit: "channel",
  followed_by: [],
  roles: ["feature_maps"],
  activation: null,
  steps: [],
  wall_times: [],
  steps_written: 0,
  error: null,
};

/**
 * @typedef {import("../../src/fmapboard/plugin/static/server/server.js").MapsPicture} MapsPicture
 */

/** A picture of two maps of 1 × 3 px. @type {MapsPicture} */
export const TILES_PICTURE = {
  role: "feature_maps",
  channels: 2,
  drawn: 2,
  samples: 1,
  tile: [1, 3],
  columns: 1,
  padding: 0,
  block: 1,
  view: "",
  palette: "grey",
  scale: "channel",
};

/** A picture of two sequences of three positions. @type {MapsPicture} */
export const ROWS_PICTURE = { ...TILES_PICTURE, layout: "rows" };

/** Words of the states by code, and their meanings. */
export const STATES = [
  "not recorded",
  "fine",
  "≥ 10 % off",
  "unchanged",
  "≥ 10 % constant",
  "≥ 10 % dead",
  "≥ 50 % constant",
  "≥ 50 % dead",
  "large",
  "large, ≥ 50 % dead",
  "non-finite",
].map((word) => ({ word, what: `what ${word} means` }));
