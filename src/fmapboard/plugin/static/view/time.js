// @ts-check
/** The step slider, which applies to the whole tab, with the faults of each step below it. */

import { faultsOf, faultsOfLayer } from "../model/health_states.js";
import { asOf } from "../model/renewal.js";
import { explanation } from "../model/terms.js";
import { callName, clock, counted, inWordsOf, stepText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf, keptText } from "../server/steps.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";
import { Button } from "./controls.js";

/** @typedef {import("../server/answers.js").FaultName} FaultName */
/** @typedef {import("../model/look.js").Model} Model */

const THUMB = 16;
const HEIGHT = 10;
/** Height of the row of marks of the layer; below it are those of the whole network, CSS px. */
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

/** @param {HTMLCanvasElement} canvas @param {number} width CSS px @param {Model} model */
function paintMarks(canvas, width, { steps, layer, health }) {
  const context = prepare(canvas, width, HEIGHT);
  context.clearRect(0, 0, width, HEIGHT);
  const at = (/** @type {number} */ step) =>
    Math.round(THUMB / 2 + along(steps, step) * (width - THUMB));
  for (const { step, kind } of health ? faultsOf(health) : []) {
    context.fillStyle = FAULT_COLOURS[kind];
    context.fillRect(at(step) - 1, OWN + 1, 3, HEIGHT - OWN - 1);
  }
  const own = health && layer ? faultsOfLayer(health, layer.key) : new Map();
  for (const step of layer?.steps ?? []) {
    const kind = own.get(step);
    context.fillStyle = kind ? FAULT_COLOURS[/** @type {FaultName} */ (kind)] : theme().strong;
    context.fillRect(at(step) - (kind ? 2 : 0), 0, kind ? 5 : 1, kind ? OWN : OWN - 2);
  }
}

/** The marks in words. @param {Model} model */
function marksText({ health }) {
  const faults = health ? faultsOf(health) : [];
  const said = faults.slice(0, 3).map(({ step, kind, layers }) => {
    const others = layers.length > 1 ? ` and ${layers.length - 1} more` : "";
    return `step ${stepText(step)}: ${inWordsOf(kind)} in ${callName(layers[0])}${others}`;
  });
  return `faults of the network: ${said.join("; ") || "none"}${faults.length > 3 ? "; …" : ""}`;
}

const KEEPS_MORE =
  "The last step is the newest one that TensorBoard has read. To keep more steps, start it with " +
  "fmapboard serve, or with --samples_per_plugin images=500,feature_maps=500.";

const HOLDS_MORE =
  "This report holds pictures of these steps; fmapboard report --steps N holds those of more.";

/** @param {{app: import("../app.js").App, model: Model}} props */
export function Time({ app, model }) {
  const { steps, state, scene, stepWords, playing, unread } = model;
  const marks = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const slider = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    if (marks.current && slider.current) {
      paintMarks(marks.current, slider.current.clientWidth, model);
    }
  });
  const i = indexOf(steps, state.step);
  const asked = steps[i];
  const word = stepWords[asked];
  const at = scene ? clock(scene.maps?.wallTime ?? NaN) : "";
  const age = asOf(app.report ? null : model.listedAt, app.renewal.live, Date.now());
  const newest = state.step === null ? " · newest" : "";
  const kept =
    unread === null
      ? keptText(steps.length, model.written)
      : `${counted(steps.length, "step")} read so far, the log goes up to step ${stepText(unread)}`;
  const explained = app.report
    ? { title: HOLDS_MORE }
    : explanation("kept live", `${kept}${age}\n${KEEPS_MORE}`);
  const moved = (/** @type {{currentTarget: HTMLInputElement}} */ { currentTarget }) => {
    const to = Number(currentTarget.value);
    app.update({ step: to >= steps.length - 1 ? null : steps[to] });
  };
  return html`
    <div class="time" role="group" aria-label="Step">
      <${Button} icon="previous" label="Previous step" keys="←" press=${() => app.stepBy(-1)} />
      <${Button} icon=${playing ? "pause" : "play"} label=${playing ? "Pause" : "Play"} keys="space"
        press=${() => app.play()} />
      <${Button} icon="next" label="Next step" keys="→" press=${() => app.stepBy(1)} />
      <div class="slider-room">
        <input type="range" min="0" max=${Math.max(0, steps.length - 1)} step="1" class="slider"
          aria-label="Step"
          aria-valuetext=${asked === undefined ? "none" : (word ?? `step ${asked}`)}
          disabled=${steps.length < 2} value=${Math.max(0, i)} ref=${slider} onInput=${moved} />
        <canvas class="step-marks" role="img" aria-label=${marksText(model)} ref=${marks} />
      </div>
      <div class="now">
        <span title=${[word, at && `Logged at ${at}`].filter(Boolean).join("\n")}>
          <span class="label" hidden=${Boolean(word)}>Step ${""}</span>
          <output class="step">${asked === undefined ? "–" : (word ?? stepText(asked))}</output>
          <span class="newest">${unread === null && newest + age}</span>
        </span>
        <span class="kept" ...${explained}>${kept}</span>
      </div>
    </div>
  `;
}
