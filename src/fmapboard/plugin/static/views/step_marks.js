// @ts-check
/** Marks below the step slider: in a tall row those of the layer, below it the whole network's. */

import { shareOf } from "../draw/chart_series.js";
import { stepText } from "../draw/number_text.js";
import { FAULT_COLOURS, LARGE } from "../draw/palettes.js";
import { prepare, theme } from "../draw/theme.js";
import { callText } from "../state/call_names.js";
import { indexOf } from "../state/steps.js";

/** @typedef {import("../data/answers.js").FaultName} FaultName */
/** @typedef {import("../draw/scene.js").History} History */

const THUMB = 16;
const HEIGHT = 10;
/** Height of the row of the layer, CSS px. */
const OWN = 6;

/**
 * Place of a step on the slider, 0…1: kept steps are evenly spaced, others lie between them.
 * @param {readonly number[]} steps kept ones @param {number} step
 */
export function along(steps, step) {
  if (steps.length < 2) return 0;
  const i = indexOf(steps, step);
  const [from, to] = [steps[i], steps[i + 1]];
  const within = to === undefined || step <= from ? 0 : (step - from) / (to - from);
  return (i + within) / (steps.length - 1);
}

/**
 * The most severe fault of a layer at each kept step, from its statistics.
 * @param {History} history @returns {Map<number, FaultName>}
 */
export function layerFaults(history) {
  const of = (/** @type {string} */ name) => shareOf(history, `feature_maps.${name}`);
  const [bad, dead, constant] = [of("nonfinite"), of("dead"), of("constant")];
  const weights = history.arrays["weights.change"];
  const still = history.steps.map((_, i) => {
    const row = weights?.values.subarray(i * weights.shape[1], (i + 1) * weights.shape[1]);
    const known = row?.filter((value) => !Number.isNaN(value));
    return Boolean(known?.length && known.every((value) => value === 0));
  });
  const ends = ["minimum", "maximum"].map((name) => history.arrays[`feature_maps.${name}`]);
  const large = history.steps.map((_, i) =>
    ends.some((end) =>
      end?.values
        .subarray(i * end.shape[1], (i + 1) * end.shape[1])
        .some((value) => Number.isFinite(value) && Math.abs(value) >= LARGE),
    ),
  );
  /** @type {Map<number, FaultName>} */
  const found = new Map();
  history.steps.forEach((step, i) => {
    if (bad[i] > 0) found.set(step, "nonfinite");
    else if (large[i]) found.set(step, "large");
    else if (dead[i] >= 0.1 && !(constant[i] >= 0.5 && dead[i] < 0.5)) found.set(step, "dead");
    else if (constant[i] >= 0.1) found.set(step, "constant");
    else if (still[i]) found.set(step, "unchanged");
  });
  return found;
}

/**
 * @param {HTMLCanvasElement} canvas @param {number} width CSS px
 * @param {import("../data/tab_data.js").Model} model
 */
export function paintStepMarks(canvas, width, { steps, layer, history, timeline }) {
  const context = prepare(canvas, width, HEIGHT);
  context.clearRect(0, 0, width, HEIGHT);
  const at = (/** @type {number} */ step) =>
    Math.round(THUMB / 2 + along(steps, step) * (width - THUMB));
  const faults = timeline?.faults ?? [];
  for (const { step, kind } of faults) {
    context.fillStyle = FAULT_COLOURS[kind];
    context.fillRect(at(step) - 1, OWN + 1, 3, HEIGHT - OWN - 1);
  }
  const own = history ? layerFaults(history) : new Map();
  for (const step of layer?.steps ?? []) {
    const kind = own.get(step);
    context.fillStyle = kind ? FAULT_COLOURS[/** @type {FaultName} */ (kind)] : theme().strong;
    context.fillRect(at(step) - (kind ? 2 : 0), 0, kind ? 5 : 1, kind ? OWN : OWN - 2);
  }
  const said = faults.slice(0, 3).map(({ step, kind, layers, layer: first }) => {
    const others = layers > 1 ? ` and ${layers - 1} more` : "";
    return `step ${stepText(step)}: ${kind} in ${callText(first)}${others}`;
  });
  canvas.setAttribute(
    "aria-label",
    `faults of the network: ${said.join("; ") || "none"}${faults.length > 3 ? "; …" : ""}`,
  );
}
