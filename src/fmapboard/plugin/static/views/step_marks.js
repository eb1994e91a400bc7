// @ts-check
/** Marks below the step slider: in a tall row those of the layer, below it the whole network's. */

import { stepText } from "../draw/number_text.js";
import { FAULT_COLOURS } from "../draw/palettes.js";
import { inWordsOf } from "../state/dead_word.js";
import { prepare, theme } from "../draw/theme.js";
import { callName } from "../state/call_names.js";
import { faultsOf, faultsOfLayer } from "../state/health_states.js";
import { indexOf } from "../state/steps.js";

/** @typedef {import("../data/answers.js").FaultName} FaultName */

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
 * @param {HTMLCanvasElement} canvas @param {number} width CSS px
 * @param {import("../data/tab_data.js").Model} model
 */
export function paintStepMarks(canvas, width, { steps, layer, health }) {
  const context = prepare(canvas, width, HEIGHT);
  context.clearRect(0, 0, width, HEIGHT);
  const at = (/** @type {number} */ step) =>
    Math.round(THUMB / 2 + along(steps, step) * (width - THUMB));
  const faults = health ? faultsOf(health) : [];
  for (const { step, kind } of faults) {
    context.fillStyle = FAULT_COLOURS[kind];
    context.fillRect(at(step) - 1, OWN + 1, 3, HEIGHT - OWN - 1);
  }
  const own = health && layer ? faultsOfLayer(health, layer.key) : new Map();
  for (const step of layer?.steps ?? []) {
    const kind = own.get(step);
    context.fillStyle = kind ? FAULT_COLOURS[/** @type {FaultName} */ (kind)] : theme().strong;
    context.fillRect(at(step) - (kind ? 2 : 0), 0, kind ? 5 : 1, kind ? OWN : OWN - 2);
  }
  const said = faults.slice(0, 3).map(({ step, kind, layers }) => {
    const others = layers.length > 1 ? ` and ${layers.length - 1} more` : "";
    return `step ${stepText(step)}: ${inWordsOf(kind)} in ${callName(layers[0])}${others}`;
  });
  canvas.setAttribute(
    "aria-label",
    `faults of the network: ${said.join("; ") || "none"}${faults.length > 3 ? "; …" : ""}`,
  );
}
