// @ts-check
/** A chart over steps with a heading and the values at the current step; a click chooses a step. */

import { pickSteps } from "../draw/plot.js";
import { h } from "./dom.js";

/** @typedef {ReturnType<typeof createChart>} Chart */

/** @param {string} title @param {import("../app.js").App} app @param {Node|null} more below the heading */
export function createChart(title, app, more = null) {
  const canvas = h("canvas", { role: "img", class: "chart" });
  const value = h("span", { class: "value" });
  const heading = h("span", { text: title });
  const element = h("section", {}, h("h3", {}, heading, value), more, canvas);
  /** @type {number[]} */
  let steps = [];
  pickSteps(
    canvas,
    () => steps,
    (step) => app.update({ step }),
  );
  return {
    element,
    canvas,
    value,
    heading,
    setSteps: (/** @type {number[]} */ now) => {
      steps = now;
    },
  };
}
