// @ts-check
/** Marks below the step slider: in a tall row those of the layer, below it the whole network's. */

import { faultsOf, faultsOfLayer } from "../model/health_states.js";
import { asOf } from "../model/renewal.js";
import { callName, clock, counted, inWordsOf, stepText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf, keptText } from "../server/steps.js";
import { button, h, icon, say } from "./dom.js";
import { explain } from "./help.js";

// Marks below the step slider: in a tall row those of the layer, below it the whole network's.

/** @typedef {import("../server/answers.js").FaultName} FaultName */

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
 * @param {import("../server/source.js").Model} model
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

// The step slider, which applies to the whole tab.

const KEEPS_MORE =
  "The last step is the newest one that TensorBoard has read. To keep more steps, start it with " +
  "fmapboard serve, or with --samples_per_plugin images=500,feature_maps=500.";

const HOLDS_MORE =
  "This report holds pictures of these steps; fmapboard report --steps N holds those of more.";

/** @param {import("../app.js").App} app */
export function createTime(app) {
  const slider = h("input", {
    type: "range",
    min: "0",
    step: "1",
    class: "slider",
    "aria-label": "Step",
  });
  const label = h("span", { class: "label", text: "Step" });
  const now = h("output", { class: "step" });
  const kept = h("span", { class: "kept", title: HOLDS_MORE });
  if (!app.report) explain(kept, "kept live", KEEPS_MORE);
  const play = button({ icon: "play", label: "Play", key: "space", press: () => app.play() });
  const marks = h("canvas", { class: "step-marks", role: "img" });
  const ticks = h("div", { class: "slider-room" }, slider, marks);
  const element = h(
    "div",
    { class: "time", role: "group", "aria-label": "Step" },
    button({
      icon: "first",
      label: "First logged step",
      key: "Home",
      press: () => app.stepTo("first"),
    }),
    button({ icon: "previous", label: "Previous step", key: "←", press: () => app.stepBy(-1) }),
    play,
    button({ icon: "next", label: "Next step", key: "→", press: () => app.stepBy(1) }),
    button({
      icon: "last",
      label: "Newest step, and follow it",
      key: "End",
      press: () => app.stepTo("last"),
    }),
    ticks,
    label,
    now,
    kept,
  );
  /** @type {readonly number[]} */
  let steps = [];
  slider.addEventListener("input", () => {
    const i = Number(slider.value);
    app.update({ step: i >= steps.length - 1 ? null : steps[i] });
  });
  let playing = false;

  /** @param {import("../app.js").Model} model */
  function draw(model) {
    steps = model.steps;
    const i = indexOf(steps, model.state.step);
    const last = String(Math.max(0, steps.length - 1));
    if (slider.max !== last) slider.max = last;
    if (slider.value !== String(Math.max(0, i))) slider.value = String(Math.max(0, i));
    slider.disabled = steps.length < 2;
    slider.style.setProperty("--at", String(steps.length > 1 ? i / (steps.length - 1) : 0));
    const shown = model.scene?.question.step;
    const asked = steps[i];
    const word = model.stepWords[asked];
    slider.setAttribute("aria-valuetext", asked === undefined ? "none" : (word ?? `step ${asked}`));
    label.hidden = Boolean(word);
    say(now, asked === undefined ? "–" : (word ?? stepText(asked)));
    const at = shown === undefined ? "" : clock(model.scene?.maps.wallTime ?? NaN);
    now.title = [word, at && `Logged at ${at}`].filter(Boolean).join("\n");
    const listedAt = app.report ? null : model.listedAt;
    const age = asOf(listedAt, app.renewal.live, Date.now());
    const newest = model.state.step === null ? " · newest" : "";
    const { unread } = model;
    const all =
      unread === null
        ? `${keptText(steps.length, model.written)}${newest}${age}`
        : `${counted(steps.length, "step")} read so far, the log goes up to step ${stepText(unread)}`;
    say(kept, `· ${all}`);
    paintStepMarks(marks, slider.clientWidth, model);
    if (playing !== model.playing) {
      playing = model.playing;
      play.replaceChildren(icon(playing ? "pause" : "play"));
      play.setAttribute("aria-label", playing ? "Pause" : "Play");
    }
  }
  return { element, draw };
}
