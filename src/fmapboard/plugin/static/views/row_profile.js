// @ts-check
/** Draws a channel of a sequence as a line over positions, one per column. */

import { valueAt } from "../data/decode.js";
import { extent } from "../draw/chart_series.js";
import { short } from "../draw/number_text.js";
import { drawLine, frame } from "../draw/plot.js";
import { h, show } from "./dom.js";

const HEIGHT = 96;

/**
 * Values of a channel, one per position; NaN where it is not finite.
 * @param {import("../draw/value_scale.js").Side} side @param {number} channel @returns {number[]}
 */
export function profile({ planes, lo, hi }, channel) {
  return Array.from(
    { length: planes.width },
    (_, x) => valueAt(planes, channel, 0, x, lo[channel], hi[channel]).value,
  );
}

export function createProfile() {
  const canvas = h("canvas", { class: "profile", role: "img" });
  const element = h("div", {}, h("h3", {}, h("span", { text: "Over positions" })), canvas);

  /**
   * @param {import("../draw/scene.js").MapsScene} scene @param {number} channel
   * @param {number} width @param {string[]} colours of the columns
   */
  function draw(scene, channel, width, colours) {
    const lines = (scene.rows ? scene.columns : []).map(({ side }) =>
      side ? profile(side, channel) : [],
    );
    const values = lines.length ? extent(lines) : null;
    show(element, Boolean(values));
    if (!values) return;
    const block = scene.picture.block;
    const last = Math.max(...lines.map((line) => line.length)) - 1;
    const plot = frame(canvas, width, HEIGHT, [0, last * block], values);
    lines.forEach((line, i) =>
      drawLine(
        plot,
        line.map((_, x) => x * block),
        line,
        colours[i],
      ),
    );
    canvas.setAttribute(
      "aria-label",
      `channel ${channel} over positions, ${short(values[0])} to ${short(values[1])}`,
    );
  }
  return { element, draw };
}
