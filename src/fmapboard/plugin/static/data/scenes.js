// @ts-check
/** Builds the scene of the state from the answers that have arrived, and keeps the last one. */

import { buildScene } from "../draw/scene.js";
import { mainSide, otherSide } from "../state/compare.js";
import { indexOf } from "../state/steps.js";

/** @typedef {import("../draw/scene.js").History} History */
/** @typedef {import("../draw/scene.js").Scene} Scene */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./answers.js").Layer} Layer */

/** How many kept steps are searched for kernels; the first logged step always has them. */
const KERNELS_WITHIN = 12;

export class Scenes {
  /** @param {import("./tab_data.js").Source} source */
  constructor(source) {
    this.source = source;
    /** @type {Scene|null} */
    this.scene = null;
    this.sceneKey = "";
  }

  /**
   * The last step, not after the asked one, that has kernels: they are logged less often than maps.
   * @param {Question|null} asked @param {Layer|undefined} layer of it @returns {Question|null}
   */
  kernels(asked, layer) {
    if (!asked || !layer) return null;
    const now = indexOf(layer.steps, asked.step);
    const back = [...Array(KERNELS_WITHIN).keys()].map((away) => now - away).filter((i) => i > 0);
    for (const i of [...back, 0]) {
      const question = { ...asked, step: layer.steps[i], ts: layer.wall_times[i] };
      const entry = this.source.maps(question);
      // Stop at the first step that has kernels, or whose answer has not arrived.
      if (!entry.value || entry.value.kernels) return question;
    }
    return { ...asked, step: layer.steps[0], ts: layer.wall_times[0] };
  }

  /**
   * The requested scene, or the previous one while the requested one is being loaded.
   * @param {State} state @param {Layer|undefined} layer @param {History|null} history
   * @returns {{scene: Scene|null, stale: boolean, error: Error|null}}
   */
  show(state, layer, history) {
    const layersOf = (/** @type {string} */ run) => this.source.layers(run).value?.layers;
    let question = mainSide(state, layer);
    let other = otherSide(state, layer, layersOf);
    if (state.role === "kernels") {
      const theirs = other && layersOf(other.run)?.find((each) => each.key === other?.key);
      [question, other] = [this.kernels(question, layer), this.kernels(other, theirs ?? undefined)];
    }
    const entry = question && this.source.maps(question);
    const otherEntry = other && this.source.maps(other);
    const sortQuestion = mainSide({ ...state, step: state.sort_step ?? state.step }, layer);
    const needsSort = state.sort === "strength" || state.sort === "similarity";
    const sortEntry = needsSort && sortQuestion ? this.source.maps(sortQuestion) : null;
    const error = entry?.error ?? otherEntry?.error ?? null;
    if (!question || error) return { scene: null, stale: false, error };
    if (!entry?.value || (otherEntry && !otherEntry.value)) {
      return { scene: this.scene, stale: true, error };
    }
    const key = JSON.stringify([
      question,
      other,
      state.scale,
      state.locked,
      state.colours === "signed",
      state.sort,
      state.sort_step,
      state.show,
      Boolean(history && (state.locked || state.sort === "change")) && history?.steps,
      Boolean(sortEntry?.value),
    ]);
    if (key !== this.sceneKey) {
      this.sceneKey = key;
      this.scene = buildScene({
        state,
        question,
        otherQuestion: other,
        maps: entry.value,
        otherMaps: otherEntry?.value ?? null,
        history,
        sortMaps: sortEntry?.value ?? null,
      });
    }
    return { scene: this.scene, stale: false, error: null };
  }
}
