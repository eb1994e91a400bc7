// @ts-check
/** Where the pictures on the screen stem from, and what must be said about that on them. */

import { matchText, origin, placeOf } from "./compare.js";
import { LETTERS } from "./state.js";
import { scaleNote } from "./value_scale.js";
import { runText, stepText } from "./words.js";
import { samePixels } from "../server/decode.js";

/** @import {Inputs} from "../server/server.js" */
/** @import {Source} from "../server/source.js" */
/** @import {FoundInput, Placed, Question, Scene, SideFacts} from "./model.js" */

/**
 * What columns say of their inputs; the most serious first.
 * @type {Readonly<Record<Inputs, string>>}
 */
const INPUTS = Object.freeze({
  different: "The input images differ.",
  unknown: "Whether the input images are the same is not known: not all are stored.",
  loading: "",
  same: "",
});
const SERIOUS = /** @type {Inputs[]} */ (Object.keys(INPUTS));

/**
 * The columns of a scene; null if the headline tells everything about its one picture.
 * @param {Source} source @param {Scene|null} scene
 * @param {Placed[]} drawn columns beside the main one @param {number|undefined} headline
 */
export function sidesOf(source, scene, drawn, headline) {
  if (!scene) return null;
  const { question } = scene;
  const notes = [];
  if (headline !== undefined && question.step !== headline) {
    notes.push(
      `The slider is at step ${stepText(headline)}; this picture is of step ` +
        `${stepText(question.step)}.`,
    );
  }
  if (!drawn.length && !notes.length) return null;
  const several = drawn.length > 0;
  const first = several ? inputOf(source, question) : { picture: null, loading: false };
  const own = { letter: several ? LETTERS[0] : "", follows: "", match: "", notes: "" };
  const main = sideOf(question, { ...own, input: first.picture, inputs: "same" });
  const others = drawn.map((each) => other(source, scene, each, first));
  const inputs = SERIOUS.find((kind) => others.some((each) => each.inputs === kind)) ?? "same";
  const hasMaps = scene.kind === "maps" && !scene.parts[0].isDifference;
  const ofScale = hasMaps ? scaleNote(scene) : "";
  notes.push(...others.map((each) => each.notes), INPUTS[inputs], ofScale);
  return {
    ...{ each: [main, ...others], inputs, notes: notes.filter(Boolean) },
    hasScaleNote: Boolean(ofScale),
  };
}

/**
 * The facts with run, step, sample and role in words.
 * @param {Question} question @param {SideFacts} facts
 */
function sideOf(question, facts) {
  return { ...facts, run: question.run, text: origin(question), place: placeOf(question) };
}

/**
 * @param {Source} source @param {Scene} scene @param {Placed} of
 * @param {FoundInput} first input of the main column @returns {ReturnType<typeof sideOf>}
 */
function other(source, { question: main, columns }, of, first) {
  const { question, run, column } = of;
  const match = of.match ? matchText(of.match) : "";
  const follows = column.step === null ? "" : "pinned";
  const facts = { letter: LETTERS[1], match, follows };
  if (!question) {
    const place = column.step === null ? [] : [`step ${stepText(column.step)}`];
    const text = [runText(run), ...place].join(" · ");
    return { ...facts, run, text, place, input: null, inputs: "same", notes: noted(of.why) };
  }
  const second = inputOf(source, question);
  const { why = "", note = "" } = columns[1] ?? {};
  const asked = column.step ?? main.step;
  const isSame = isOfOne(question, main) && question.role === main.role;
  const inputs = why ? "same" : compared(main, question, first, second);
  const notes = [
    ...[why, note],
    asked === question.step ? "" : `no pictures at step ${stepText(asked)}`,
    asked === question.step && isSame && question.key === main.key ? "the same picture as A" : "",
  ];
  return sideOf(question, { ...facts, input: second.picture, inputs, notes: noted(...notes) });
}

/** What is said of column B, in a sentence; "" for nothing. @param {string[]} texts */
function noted(...texts) {
  const said = texts.filter(Boolean).join("; ");
  return said && `${LETTERS[1]}: ${said}.`;
}

/** True for pictures of one input image. @param {Question} a @param {Question} b */
function isOfOne(a, b) {
  return a.run === b.run && a.step === b.step && a.sample === b.sample;
}

/**
 * @param {Question} a @param {Question} b @param {FoundInput} first @param {FoundInput} second
 * @returns {Inputs}
 */
function compared(a, b, first, second) {
  if (a.role === "kernels" || isOfOne(a, b)) return "same"; // kernels are of no input
  if (first.loading || second.loading) return "loading";
  if (!first.picture || !second.picture) return "unknown";
  return samePixels(first.picture, second.picture) ? "same" : "different";
}

/**
 * The series with the input image of exactly a side's step and sample.
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
 * The input image of exactly a side's step.
 * @param {Source} source @param {Question} side
 * @returns {FoundInput}
 */
export function inputOf(source, side) {
  // Kernels are of no input, and the input has the middle slice of a volume only.
  if (side.role === "kernels" || side.depth !== undefined) return { picture: null, loading: false };
  const series = inputSeries(source, side);
  if (!series) return { picture: null, loading: source.layers(side.run).loading };
  const entry = source.input(side.run, series, side.step);
  return { picture: entry?.value ?? null, loading: Boolean(entry?.loading) };
}
