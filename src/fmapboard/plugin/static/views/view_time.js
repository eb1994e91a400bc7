// @ts-check
/** The step slider, which applies to the whole tab. */

import { button, h, icon, say } from "./dom.js";
import { clock, stepText } from "../draw/number_text.js";
import { indexOf, keptText } from "../state/steps.js";
import { shareOf } from "../draw/chart_series.js";
import { prepare, theme } from "../draw/theme.js";

/** @param {import("../app.js").App} app */
export function createTime(app) {
  const slider = h("input", {
    type: "range",
    min: "0",
    step: "1",
    class: "slider",
    "aria-label": "Step",
  });
  const now = h("output", { class: "step" });
  const kept = h("span", { class: "kept" });
  const play = button({ icon: "play", label: "Play", key: "space", press: () => app.play() });
  const marks = h("canvas", { class: "step-marks", "aria-hidden": "true" });
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
    button({ icon: "previous", label: "Step before", key: "←", press: () => app.stepBy(-1) }),
    play,
    button({ icon: "next", label: "Step after", key: "→", press: () => app.stepBy(1) }),
    button({
      icon: "last",
      label: "Newest step, and follow it",
      key: "End",
      press: () => app.stepTo("last"),
    }),
    ticks,
    h("span", { class: "label", text: "Step" }),
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
    slider.setAttribute("aria-valuetext", asked === undefined ? "none" : `step ${asked}`);
    say(now, asked === undefined ? "–" : stepText(asked));
    now.title = shown === undefined ? "" : clock(model.scene?.maps.wallTime ?? NaN);
    say(
      kept,
      `· ${keptText(steps.length, model.written)}${model.state.step === null ? " · newest" : ""}`,
    );
    kept.title =
      "TensorBoard keeps a sample of the logged steps in memory: the first and the last " +
      "always, others at random. --samples_per_plugin images=…,feature_maps=… keeps more.";
    paintMarks(marks, slider.clientWidth, model);
    if (playing !== model.playing) {
      playing = model.playing;
      play.replaceChildren(icon(playing ? "pause" : "play"));
      play.setAttribute("aria-label", playing ? "Pause" : "Play");
    }
  }
  return { element, draw };
}

const THUMB = 16;

/**
 * Draws a mark below the slider per kept step of the layer: orange if channels are dead, magenta
 * if values are not finite, otherwise grey.
 * @param {HTMLCanvasElement} canvas @param {number} width CSS px
 * @param {import("../app.js").Model} model
 */
function paintMarks(canvas, width, { steps, layer, history }) {
  const context = prepare(canvas, width, 7);
  context.clearRect(0, 0, width, 7);
  const bad = history ? shareOf(history, "feature_maps.nonfinite") : [];
  const dead = history ? shareOf(history, "feature_maps.dead") : [];
  const faults = new Map(
    (history?.steps ?? []).map((step, i) => [step, { bad: bad[i] > 0, dead: dead[i] >= 0.1 }]),
  );
  const own = new Set(layer?.steps);
  const look = theme();
  steps.forEach((step, i) => {
    if (!own.has(step)) return;
    const of = faults.get(step);
    const faulty = of?.bad || of?.dead;
    context.fillStyle = of?.bad ? "#ff00ff" : of?.dead ? "#ff8000" : look.strong;
    const x = THUMB / 2 + (steps.length > 1 ? i / (steps.length - 1) : 0) * (width - THUMB);
    context.fillRect(Math.round(x) - (faulty ? 2 : 0), 0, faulty ? 4 : 1, faulty ? 7 : 4);
  });
}
