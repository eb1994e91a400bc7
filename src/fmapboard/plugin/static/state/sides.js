// @ts-check
/** Where the pictures on the screen stem from, and what must be said about that on them. */

import { samePixels } from "../data/same_input.js";
import { stepText } from "../draw/number_text.js";
import { origin, whyNoOther } from "./compare.js";

/** @typedef {import("../data/same_input.js").Inputs} Inputs */
/** @typedef {import("../draw/scene.js").Scene} Scene */
/** @typedef {import("./compare.js").Question} Question */
/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} SideFacts
 * @property {string} text run, step, sample and role
 * @property {ImageBitmap|null} input the network's input image at exactly this step
 */

/**
 * @typedef {object} Sides
 * @property {SideFacts[]} each one or two
 * @property {Inputs} inputs of the two sides; "same" for one
 * @property {string[]} notes differences that the headline does not tell, in words
 */

/** @type {Readonly<Record<Inputs, string>>} */
const NOTES = Object.freeze({
  same: "",
  different:
    "Different input images: a difference of these maps also shows that the images differ.",
  unknown:
    "The input image of at least one side is not stored: whether both saw the same image is not known.",
  loading: "",
});

/**
 * The sides of a scene; null if the headline tells everything about its one picture.
 * @param {import("../data/tab_data.js").Source} source @param {State} state
 * @param {Scene|null} scene @param {import("../data/answers.js").Layer|undefined} layer
 * @param {number|undefined} headline step of the slider @returns {Sides|null}
 */
export function sidesOf(source, state, scene, layer, headline) {
  if (!scene) return null;
  const { question, otherQuestion } = scene;
  const notes = [];
  if (headline !== undefined && question.step !== headline) {
    notes.push(
      `The slider is at step ${stepText(headline)}; this picture is of step ${stepText(question.step)}.`,
    );
  }
  if (state.compare === "off") {
    if (!notes.length) return null;
    return { each: [{ text: origin(question), input: null }], inputs: "same", notes };
  }
  const first = inputOf(source, question);
  const one = { text: origin(question), input: first.picture };
  if (!otherQuestion) {
    const why = missing(source, state, layer);
    if (why) notes.push(`Nothing to compare with: ${why}.`);
    return { each: [one], inputs: "same", notes };
  }
  const second = inputOf(source, otherQuestion);
  if (state.compare !== "step" && otherQuestion.step !== question.step) {
    notes.push(
      `Different steps, ${stepText(question.step)} and ${stepText(otherQuestion.step)}: ` +
        `no picture of step ${stepText(question.step)} is kept of ${otherQuestion.run || "."}.`,
    );
  }
  if (state.compare === "step" && otherQuestion.step === question.step) {
    notes.push("Both sides are the same step.");
  }
  const inputs = compared(question, otherQuestion, first, second);
  if (NOTES[inputs]) notes.push(NOTES[inputs]);
  return { each: [one, { text: origin(otherQuestion), input: second.picture }], inputs, notes };
}

/**
 * @param {import("../data/tab_data.js").Source} source @param {State} state
 * @param {import("../data/answers.js").Layer|undefined} layer
 */
function missing(source, state, layer) {
  if (state.compare === "run") {
    const runs = source.runs().value?.runs ?? [];
    if (state.other === state.run) return "it is the same run";
    if (!runs.some((each) => each.run === state.other)) return `no run ${state.other}`;
    const { error } = source.layers(state.other);
    if (error) return error.message;
  }
  return whyNoOther(state, layer, (run) => source.layers(run).value?.layers);
}

/**
 * @param {Question} a @param {Question} b
 * @param {Found} first @param {Found} second @returns {Inputs}
 */
function compared(a, b, first, second) {
  if (a.role === "kernels") return "same"; // of no input
  if (a.run === b.run && a.step === b.step && a.sample === b.sample) return "same";
  if (first.loading || second.loading) return "loading";
  if (!first.picture || !second.picture) return "unknown";
  return samePixels(first.picture, second.picture) ? "same" : "different";
}

/** @typedef {{picture: ImageBitmap|null, loading: boolean}} Found */

/**
 * The series with the input image of exactly the step and sample of a side.
 * @param {import("../data/tab_data.js").Source} source @param {Question} side
 */
export function inputSeries(source, side) {
  const listed = source.layers(side.run).value;
  const layer = listed?.layers.find((each) => each.key === side.key);
  const series = listed?.inputs.find(
    (each) => (each.name ?? "") === (layer?.name ?? "") && each.sample === side.sample,
  );
  return series?.steps.includes(side.step) ? series : undefined;
}

/**
 * The input image of exactly the step of a side.
 * @param {import("../data/tab_data.js").Source} source @param {Question} side @returns {Found}
 */
export function inputOf(source, side) {
  if (side.role === "kernels") return { picture: null, loading: false }; // of no input
  const series = inputSeries(source, side);
  if (!series) return { picture: null, loading: source.layers(side.run).loading };
  const entry = source.input(side.run, series, side.step);
  return { picture: entry?.value ?? null, loading: Boolean(entry?.loading) };
}
