// @ts-check
/** Where the pictures on the screen stem from, and what must be said about that on them. */

import { matchText, origin } from "./compare.js";
import { LETTERS } from "./state.js";
import { scaleNote } from "./value_scale.js";
import { runText, stepText } from "./words.js";
import { samePixels } from "../server/decode.js";

/** @import {Inputs} from "../server/decode.js" */
/** @import {Source} from "../server/source.js" */
/** @import {Placed, Question} from "./compare.js" */
/** @import {Scene} from "./scene.js" */

/**
 * One column as it is drawn.
 * @typedef {object} SideFacts
 * @property {string} letter "" if there is only one column
 * @property {string} run
 * @property {string} text run, step, sample and role
 * @property {string} place step, sample and role
 * @property {string} follows whether its step follows the slider, in words; "" for the main column
 * @property {string} match how the layer was found, if not by its name
 * @property {ImageBitmap|null} input the network's input image at exactly this step
 * @property {Inputs} inputs compared with those of the main column
 * @property {string[]} notes what the heading does not tell, in words
 */

/** What a column says of its input. @type {Readonly<Record<Inputs, string>>} */
const BRIEF = Object.freeze({
  same: "",
  different: "different input image",
  unknown: "input image not known",
  loading: "",
});
/** @type {Readonly<Record<Inputs, string>>} */
const NOTES = Object.freeze({
  same: "",
  different:
    "Different input images: a difference of these maps also shows that the images differ.",
  unknown:
    "The input image of at least one side is not stored: whether both saw the same image is not known.",
  loading: "",
});
/** @type {readonly Inputs[]} */
const SERIOUS = ["different", "unknown", "loading", "same"];

/**
 * The columns of a scene; null if the headline tells everything about its one picture.
 * @param {Source} source @param {Scene|null} scene
 * @param {Placed[]} drawn what the columns beside the main one show
 * @param {number|undefined} headline step of the slider
 */
export function sidesOf(source, scene, drawn, headline) {
  if (!scene) return null;
  const { question } = scene;
  const notes = [];
  if (headline !== undefined && question.step !== headline) {
    notes.push(
      `The slider is at step ${stepText(headline)}; this picture is of step ${stepText(question.step)}.`,
    );
  }
  if (!drawn.length && !notes.length) return null;
  const several = drawn.length > 0;
  const first = several ? inputOf(source, question) : { picture: null, loading: false };
  const main = {
    letter: several ? LETTERS[0] : "",
    run: question.run,
    text: origin(question),
    place: placeOf(question),
    follows: "",
    match: "",
    input: first.picture,
    inputs: /** @type {Inputs} */ ("same"),
    notes: [],
  };
  const others = drawn.map((each, i) => other(source, scene, each, i + 1, first));
  const inputs = SERIOUS.find((kind) => others.some((each) => each.inputs === kind)) ?? "same";
  if (NOTES[inputs]) notes.push(NOTES[inputs]);
  const ofScale = scene.kind === "maps" ? scaleNote(scene) : "";
  if (ofScale) notes.push(ofScale);
  return { each: [main, ...others], inputs, notes, hasScaleNote: Boolean(ofScale) };
}

/** @typedef {NonNullable<ReturnType<typeof sidesOf>>} Sides */

/**
 * @param {Source} source @param {Scene} scene @param {Placed} of @param {number} i
 * @param {Found} first input of the main column @returns {SideFacts}
 */
function other(source, { question: main, columns }, of, i, first) {
  const { question, run, column } = of;
  const found = of.match ? matchText(of.match) : "";
  const follows = column.step === null ? "follows the slider" : "pinned";
  const facts = { letter: LETTERS[i], run, match: found, follows };
  const built = columns[i];
  if (!question) {
    const place = column.step === null ? "" : `step ${stepText(column.step)}`;
    const text = [runText(run), place].filter(Boolean).join(" · ");
    return { ...facts, text, place, input: null, inputs: "same", notes: [of.why] };
  }
  const second = inputOf(source, question);
  const notes = [];
  if (built?.why) notes.push(built.why);
  if (built?.note) notes.push(built.note);
  notes.push(...aboutStep(of, question, main));
  const inputs = built?.why ? "same" : compared(main, question, first, second);
  if (BRIEF[inputs]) notes.push(BRIEF[inputs]);
  const [text, place] = [origin(question), placeOf(question)];
  return { ...facts, text, place, input: second.picture, inputs, notes };
}

/** @param {Placed} of @param {Question} question @param {Question} main */
function aboutStep({ column }, question, main) {
  const asked = column.step ?? main.step;
  if (asked !== question.step)
    return [`different step: step ${stepText(asked)} has no pictures here`];
  return isSame(question, main) ? ["the same picture as A"] : [];
}

/** @param {Question} question */
function placeOf(question) {
  return origin(question).slice(runText(question.run).length + " · ".length);
}

/** @param {Question} a @param {Question} b */
function isSame(a, b) {
  const ofOne = a.run === b.run && a.step === b.step && a.sample === b.sample;
  return ofOne && a.role === b.role && a.key === b.key;
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
 * @param {Source} source @param {Question} side
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
 * @param {Source} source @param {Question} side @returns {Found}
 */
export function inputOf(source, side) {
  if (side.role === "kernels") return { picture: null, loading: false }; // of no input
  const series = inputSeries(source, side);
  if (!series) return { picture: null, loading: source.layers(side.run).loading };
  const entry = source.input(side.run, series, side.step);
  return { picture: entry?.value ?? null, loading: Boolean(entry?.loading) };
}
