// @ts-check
/** The numbers of a cell of the map of layers × steps, requested by step where they are many. */

import { numbersAt } from "./health.js";
import { Lazy } from "./lazy.js";

/** @typedef {import("./health.js").Health} Health */
/** @typedef {import("./health.js").StepOfRun} StepOfRun */

/** @typedef {(name: string) => number} Numbers of a cell by name, NaN where not known */

/** Bytes of numbers that are kept. */
const LIMIT = 16e6;

export class CellNumbers {
  /** @param {() => void} changed called when numbers that were asked for have arrived */
  constructor(changed) {
    /** @type {Lazy<StepOfRun, import("./container.js").NamedArrays>} */
    this.lazy = new Lazy({
      key: ({ run, step, ts }) => `${run}\n${step}\n${ts}`,
      load: numbersAt,
      bytes: (found) =>
        Object.values(found).reduce((sum, array) => sum + (array?.values.byteLength ?? 0), 0),
      changed,
      most: 1,
      limit: LIMIT,
    });
  }

  /**
   * Numbers of a cell; text on why they are not there, until they have arrived.
   * @param {Health} health @param {number} at index in [steps, layers] @returns {Numbers|string}
   */
  of(health, at) {
    if (Object.keys(health.arrays).length) return numbers(health.arrays, at);
    const count = health.layers.length;
    const i = Math.floor(at / count);
    const asked = { run: health.run, step: health.steps[i], ts: health.wall_times[i] };
    this.lazy.want([asked]);
    const found = this.lazy.get(asked);
    if (found) return numbers(found, at % count);
    return this.lazy.error(asked)?.message ?? "numbers: loading …";
  }

  /** Forgets errors, so that failed requests are sent again. */
  retry() {
    this.lazy.retry();
  }
}

/** @param {import("./container.js").NamedArrays} arrays @param {number} at @returns {Numbers} */
function numbers(arrays, at) {
  return (name) => arrays[name]?.values[at] ?? NaN;
}
