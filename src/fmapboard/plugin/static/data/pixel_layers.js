// @ts-check
/** Measures how strongly each layer of a run responds at a point, a few requests at a time. */

import { framePixels } from "../draw/film_pixels.js";
import { ownRanges } from "../draw/film_scale.js";
import { byResponse, responseAt } from "../draw/pixel_rank.js";
import { pictureOf } from "./decoded_maps.js";
import { createFrames } from "./film_frames.js";

/** @typedef {import("../draw/crosshair.js").Point} Point */
/** @typedef {import("../draw/scene.js").MapsScene} MapsScene */
/** @typedef {import("./answers.js").Layer} Layer */
/** @typedef {import("./film_frames.js").Frame} Frame */

/**
 * A layer at a point.
 * @typedef {import("../draw/pixel_rank.js").Response & {layer: Layer, height: number, width: number,
 *   block: number, pixels: Uint32Array}} LayerResponse
 */

/**
 * @typedef {object} Ranked
 * @property {LayerResponse[]} layers
 * @property {number} asked layers that have this picture at this step
 * @property {number} done of these
 * @property {string[]} left what was left out and why, in words
 */

export class PixelLayers {
  /** @param {import("./tab_data.js").Source} source @param {() => void} changed */
  constructor(source, changed) {
    this.source = source;
    this.frames = createFrames(changed, 3, 96e6);
    /** Measured layers of one picture and point. @type {Map<string, LayerResponse|string>} */
    this.measured = new Map();
    this.measuredOf = "";
    this.epoch = source.epoch;
  }

  /**
   * What is known now; requests the rest.
   * @param {import("./tab_data.js").Model} model @param {MapsScene} scene @param {Point} point
   * @returns {Ranked}
   */
  rank({ state, layers }, scene, point) {
    const { run, step, role, sample } = scene.question;
    const of = JSON.stringify([run, step, role, sample, point, state.colours]);
    if (of !== this.measuredOf) this.measured.clear();
    this.measuredOf = of;
    if (this.epoch !== this.source.epoch) this.frames.retry();
    this.epoch = this.source.epoch;
    const asked = [];
    let absent = 0;
    for (const layer of layers) {
      const at = layer.steps.indexOf(step);
      const isDrawn = !layer.error && at >= 0 && layer.roles.some((each) => each === role);
      if (!isDrawn) absent += 1;
      else {
        const question = { run, key: layer.key, step, ts: layer.wall_times[at], role, sample };
        asked.push({ layer, question });
      }
    }
    for (const { layer, question } of asked) {
      if (this.measured.has(layer.key)) continue;
      const frame = this.frames.get(question);
      const error = this.frames.error(question);
      if (frame) this.measured.set(layer.key, measure(layer, frame, scene, point, state.colours));
      else if (error) this.measured.set(layer.key, `could not be loaded: ${error.message}`);
    }
    this.frames.want(
      asked.filter(({ layer }) => !this.measured.has(layer.key)).map(({ question }) => question),
    );
    /** @type {LayerResponse[]} */
    const found = [];
    /** @type {Map<string, number>} */
    const left = new Map(absent ? [["have no such picture at this step", absent]] : []);
    for (const each of this.measured.values()) {
      if (typeof each === "string") left.set(each, (left.get(each) ?? 0) + 1);
      else found.push(each);
    }
    return {
      layers: byResponse(found),
      asked: asked.length,
      done: this.measured.size,
      left: [...left].map(([why, count]) => `${count} ${why}`),
    };
  }

  /** Stops all requests. */
  rest() {
    this.frames.want([]);
  }
}

/**
 * @param {Layer} layer @param {Frame} frame @param {MapsScene} scene @param {Point} point
 * @param {string} palette @returns {LayerResponse|string} a string says why it cannot be measured
 */
function measure(layer, { maps, side }, scene, point, palette) {
  const picture = pictureOf(maps, scene.question.role);
  if (!side || picture?.role === "kernels" || !picture) return "are no longer kept at this step";
  if ((picture.layout === "rows") !== scene.rows) {
    return scene.rows ? "are images, not sequences" : "are sequences, not images";
  }
  const { height, width } = side.planes;
  if (height * width === 1) return "have maps of one pixel, so no place";
  const found = responseAt(side, point);
  if (!found.compared && !found.nonfinite) return "are constant in all channels";
  const how = /** @type {const} */ ({ scale: "channel", zeroCentred: palette === "signed" });
  const pixels =
    found.channel < 0
      ? new Uint32Array(0)
      : framePixels(side, found.channel, ownRanges(side, how), palette);
  return { ...found, layer, height, width, block: picture.block, pixels };
}
