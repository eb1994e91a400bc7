// @ts-check
/** Palettes of stored pictures (250 levels and 6 marks) and of the tab (256 colours). */

/** @import {FaultName, Rgb} from "./server.js" */

export const VALUES = 250;

/** Codes of pixels that are not plain values, as they are stored. */
export const MARK = Object.freeze({
  PADDING: 250,
  NAN: 251,
  POSITIVE_INFINITY: 252,
  NEGATIVE_INFINITY: 253,
  CONSTANT: 254,
  DEAD: 255,
});

/** @type {Readonly<Record<number, Rgb>>} */
export const MARK_COLOURS = Object.freeze({
  250: [0, 0, 32],
  251: [255, 0, 255],
  252: [255, 0, 0],
  253: [0, 0, 255],
  254: [0, 225, 225],
  255: [255, 128, 0],
});

/**
 * Colours of the states of layers and channels, as CSS.
 * @type {Readonly<Record<FaultName, string>>}
 */
export const FAULT_COLOURS = Object.freeze({
  nonfinite: "#ff00ff",
  large: "#c62828",
  dead: "#ff8000",
  constant: "#00b4b4",
  unchanged: "#6b93e6",
});

/** Of channels that are 0 for one image, which is no fault. */
export const OFF_COLOUR = "#7388ab";

/** Marks of single pixels and of whole channels, with the fault, a term of the glossary. */
// prettier-ignore
export const LEGEND = Object.freeze(/** @type {const} */ ([
  { code: MARK.NAN, name: "NaN", term: "nonfinite" },
  { code: MARK.POSITIVE_INFINITY, name: "+Inf", term: "nonfinite" },
  { code: MARK.NEGATIVE_INFINITY, name: "−Inf", term: "nonfinite" },
  { code: MARK.CONSTANT, name: "constant", term: "constant" },
  { code: MARK.DEAD, name: "dead", term: "dead" },
]));

/** @type {Readonly<Record<string, readonly Rgb[]>>} */
// prettier-ignore
const ANCHORS = Object.freeze({
  grey: [[0, 0, 0], [255, 255, 255]],
  viridis: [
    [68, 1, 84], [72, 40, 120], [62, 73, 137], [49, 104, 142], [37, 130, 142],
    [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37],
  ],
  magma: [
    [0, 0, 4], [24, 15, 61], [68, 15, 118], [114, 31, 129], [158, 47, 127],
    [205, 64, 113], [241, 96, 93], [253, 150, 104], [254, 202, 141], [252, 253, 191],
  ],
  signed: [
    [8, 48, 107], [33, 102, 172], [67, 147, 195], [146, 197, 222], [209, 229, 240],
    [247, 247, 247],
    [253, 219, 199], [244, 165, 130], [214, 96, 77], [178, 24, 43], [110, 0, 30],
  ],
  // On a dark page: 0 is dark there, too.
  signedOnDark: [
    [190, 222, 255], [128, 184, 250], [82, 140, 220], [58, 100, 164], [55, 76, 108],
    [58, 58, 58],
    [108, 68, 58], [164, 82, 60], [220, 104, 78], [248, 150, 122], [255, 204, 186],
  ],
});

/** Rounds half to even, as numpy does. @param {number} x */
function round(x) {
  const down = Math.floor(x);
  const rest = x - down;
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down;
}

/**
 * `count` evenly spaced colours of a palette.
 * @param {string} name @param {number} count
 * @returns {Rgb[]}
 */
export function ramp(name, count) {
  const anchors = ANCHORS[name];
  if (!anchors) throw new Error(`no palette ${name}; there are ${Object.keys(ANCHORS).join(", ")}`);
  return Array.from({ length: count }, (_, i) => {
    const at = (i * (anchors.length - 1)) / (count - 1);
    const low = Math.min(Math.floor(at), anchors.length - 2);
    const mix = (/** @type {number} */ c) =>
      round(anchors[low][c] + (anchors[low + 1][c] - anchors[low][c]) * (at - low));
    return /** @type {Rgb} */ ([mix(0), mix(1), mix(2)]);
  });
}

/** Pixel value (0…255) of each of the 250 stored levels. */
export const PIXEL_OF_LEVEL = Uint8Array.from({ length: VALUES }, (_, level) =>
  Math.ceil((level * 256) / VALUES),
);

/** The colours of the 250 levels of a stored picture. @param {string} name @returns {Rgb[]} */
export function stored(name) {
  if (name !== "grey") return ramp(name, VALUES);
  return Array.from(PIXEL_OF_LEVEL, (grey) => /** @type {Rgb} */ ([grey, grey, grey]));
}

/** A colour as a little-endian pixel of ImageData. @param {Rgb} rgb */
export function packed([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Packed colours of the marks by code; 0 (transparent) for other indices. */
export const MARK_TABLE = (() => {
  const colours = new Uint32Array(256);
  for (const [code, rgb] of Object.entries(MARK_COLOURS)) colours[Number(code)] = packed(rgb);
  return colours;
})();

/**
 * The mark of NaN or an infinity, otherwise 0: a constant or dead channel has a value.
 * @param {Uint8Array|null} marks @param {number} i
 */
export function badMark(marks, i) {
  const mark = marks ? marks[i] : 0;
  return mark >= MARK.NAN && mark <= MARK.NEGATIVE_INFINITY ? mark : 0;
}

/** A colour as CSS and canvas expect it. @param {Rgb} rgb */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** The colour of `#1a66c9`, as the style sheet writes it. @param {string} hex @returns {Rgb} */
export function rgbOf(hex) {
  const number = parseInt(hex.slice(1), 16) || 0;
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** A packed colour between two. @param {Rgb} from @param {Rgb} to @param {number} share 0…1 */
export function mixed(from, to, share) {
  const mix = (/** @type {0|1|2} */ c) => Math.round(from[c] + share * (to[c] - from[c]));
  return packed([mix(0), mix(1), mix(2)]);
}
