// @ts-check
/** Builds the scene of the state from the answers that have arrived, and keeps the last one. */

import { buildScene } from "../draw/scene.js";
import { comparesKernels } from "../state/columns.js";
import { mainSide, placed } from "../state/compare.js";
import { indexOf } from "../state/steps.js";
import { runText } from "../state/run_text.js";

/** @typedef {import("../draw/scene.js").History} History */
/** @typedef {import("../draw/scene.js").Scene} Scene */
/** @typedef {import("../state/compare.js").Placed} Placed */
/** @typedef {import("../state/compare.js").Question} Question */
/** @typedef {import("../state/state.js").State} State */
/** @typedef {import("./answers.js").Layer} Layer */

/**
 * @typedef {object} Shown
 * @property {Scene|null} scene
 * @property {boolean} stale the scene is the previous one
 * @property {Error|null} error why nothing is shown
 * @property {Error|null} lost that, or why a column is not shown
 * @property {Placed[]} columns what the columns of the state show
 * @property {Placed[]} drawn what the columns of the scene show
 */

/** How many kept steps are searched for kernels; the first logged step always has them. */
const KERNELS_WITHIN = 12;

export class Scenes {
  /** @param {import("./tab_data.js").Source} source */
  constructor(source) {
    this.source = source;
    /** @type {Scene|null} */
    this.scene = null;
    this.sceneKey = "";
    /** What the scene's columns show. @type {Placed[]} */
    this.columns = [];
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
   * What the columns beside the main one show.
   * @param {State} state @param {Layer|undefined} layer @returns {Placed[]}
   */
  placed(state, layer) {
    const { source } = this;
    const isKernels = state.role === "kernels";
    const layersOf = (/** @type {string} */ run) => source.layers(run).value?.layers;
    const runs = source.runs().value?.runs;
    const whyNone = (/** @type {string} */ run) => {
      if (runs && !runs.some((each) => each.run === run)) return `no run ${runText(run)}`;
      const { value, error } = source.layers(run);
      return value ? "" : (error?.message ?? "");
    };
    const columns = isKernels ? state.columns.filter(comparesKernels) : state.columns;
    const all = columns.map((column) => placed(column, state, layer, layersOf, whyNone));
    if (!isKernels) return all;
    return all.map((each) => ({
      ...each,
      question: this.kernels(each.question, each.match?.layer),
    }));
  }

  /** The layer of a column over all kept steps. @param {Placed} column @returns {History|null} */
  history({ run, match, question }) {
    if (!match || !question) return null;
    return this.source.history(run, match.layer, question.sample);
  }

  /**
   * The requested scene, or the previous one while the requested one is being loaded.
   * @param {State} state @param {Layer|undefined} layer @param {History|null} history
   * @returns {Shown}
   */
  show(state, layer, history) {
    const main = mainSide(state, layer);
    const question = state.role === "kernels" ? this.kernels(main, layer) : main;
    const columns = this.placed(state, layer);
    const entry = question && this.source.maps(question);
    const entries = columns.map(({ question: asked }) => asked && this.source.maps(asked));
    const others = columns.map((column, i) => ({
      question: column.question,
      maps: entries[i]?.value ?? null,
      history: state.locked ? this.history(column) : null,
      why: column.why || (entries[i]?.error?.message ?? ""),
    }));
    const sortQuestion = mainSide({ ...state, step: state.sort_step ?? state.step }, layer);
    const needsSort = state.sort === "strength" || state.sort === "similarity";
    const sortEntry = needsSort && sortQuestion ? this.source.maps(sortQuestion) : null;
    const error = entry?.error ?? null;
    const lost = error ?? entries.find((each) => each?.error)?.error ?? null;
    const more = { error, lost, columns };
    if (!question || error) return { ...more, scene: null, stale: false, drawn: [] };
    if (!entry?.value || others.some(({ maps, why }) => !maps && !why)) {
      return { ...more, scene: this.scene, stale: true, drawn: this.columns };
    }
    this.columns = columns;
    const key = JSON.stringify([
      question,
      others.map((each) => [each.question, each.why, Boolean(each.maps), each.history?.steps]),
      state.scale,
      state.locked,
      state.own_scale,
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
        maps: entry.value,
        others,
        history,
        sortMaps: sortEntry?.value ?? null,
      });
    }
    return { ...more, scene: this.scene, stale: false, drawn: columns };
  }
}
