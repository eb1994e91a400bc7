// @ts-check
/** A line that says where the first non-finite value of the run was found, and leads there. */

import { layerText } from "../model/compare.js";
import { kernelMeaning } from "../model/kernel_scene.js";
import { stepText } from "../model/words.js";
import { indexOf, keptFrom } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";

// A line that says where the first non-finite value of the run was found, and leads there.

/** @typedef {import("../server/routes.js").FirstFault} FirstNonfinite */
/** @typedef {import("../server/answers.js").Layer} Layer */

/**
 * The layer with pictures that is nearest to a measured one: itself, the one before its activation,
 * the one that the server names, or the last one with the longest common beginning of its name.
 * @param {Layer[]} layers in network order @param {FirstNonfinite} first
 */
export function nearestLayer(layers, { name, label, shown_at }) {
  const own = layers.filter((each) => (each.name ?? "") === name);
  if (label === null) return undefined;
  const exact =
    own.find((each) => each.label === label) ??
    own.find((each) => each.activation === label) ??
    own.find((each) => each.key === shown_at);
  if (exact) return exact;
  const parts = label.split(".");
  const shared = (/** @type {Layer} */ each) => {
    const other = each.label.split(".");
    const end = parts.findIndex((part, i) => part !== other[i]);
    return end < 0 ? parts.length : end;
  };
  const most = Math.max(0, ...own.map(shared));
  return most > 0 ? own.findLast((each) => shared(each) === most) : undefined;
}

/**
 * Step and layer that the button leads to, without the one that is shown already.
 * @param {FirstNonfinite} first @param {number} step kept
 * @param {Layer|undefined} layer with pictures @param {{step: boolean, layer: boolean}} isThere
 */
export function destination(first, step, layer, isThere) {
  const kept = step === first.step ? "" : ", the next kept one";
  const isNearest = layer && layer.label !== first.label;
  const named = layer && (isNearest || !isThere.layer);
  const parts = [
    isThere.step ? "" : `step ${stepText(step)}${kept}`,
    named ? `${layerText(layer.key)}${isNearest ? ", the nearest drawn layer" : ""}` : "",
    !layer && first.label !== null ? "which has no picture of that layer" : "",
  ];
  return parts.filter(Boolean).join(", ");
}

/**
 * @param {object} props
 * @param {Pick<import("../model/look.js").Model, "health"|"layers"|"steps"|"state">} props.model
 * @param {(target: {step: number, layer: string}) => void} props.visit
 */
export function FirstFault({ model, visit }) {
  const { health, layers, steps, state } = model;
  const first = health?.first_nonfinite;
  if (!first || !steps.length) return html`<p class="first-fault" role="status" hidden></p>`;
  const step = keptFrom(steps, first.step);
  const layer = nearestLayer(layers, first);
  const target = { step, layer: layer?.key ?? state.layer };
  const isThere = {
    step: steps[indexOf(steps, state.step)] === step,
    layer: state.layer === target.layer,
  };
  return html`
    <p class="first-fault" role="status">
      <span>Step ${stepText(first.step)}: ${first.text.replaceAll("-Inf", "−Inf")}</span>
      <button type="button" hidden=${isThere.step && isThere.layer} onClick=${() => visit(target)}>
        Show ${destination(first, step, layer, isThere)}
      </button>
    </p>
  `;
}

// A line that says which run or layer of the address does not exist, and what is shown instead.

/** @param {Pick<import("../model/look.js").Model, "gone"|"layers">} model */
export function Gone({ gone, layers }) {
  const shown = gone !== "" && layers.length > 0;
  return html`<p class="gone" role="status" hidden=${!shown}>${gone}</p>`;
}

// A line above the maps, if the overview led to another layer or step than it named.

/** @param {{note: string}} props */
export function Arrival({ note }) {
  return html`<p class="arrival" role="status" hidden=${!note}>${note}</p>`;
}

// A hint on the flag that makes TensorBoard keep more steps, if it keeps its default of 10.

const TEXT =
  "TensorBoard keeps only 10 steps of each picture: when it was started, no run here had feature maps. To keep more, restart it with ";
const FLAG = "--samples_per_plugin images=50,feature_maps=50";

/** @param {Pick<import("../app.js").Model, "keepsEnough"|"layers">} model */
export function Sampling({ keepsEnough, layers }) {
  const isShown = !keepsEnough && layers.length > 0;
  return html`<p class="sampling" hidden=${!isShown}><span>${TEXT}</span><code>${FLAG}</code></p>`;
}

// What a report says about itself: which images it shows, and what it leaves out.

/**
 * Written by `fmapboard.report`.
 * @typedef {object} ReportFacts
 * @property {string} title
 * @property {string} version of fmapboard
 * @property {string} written date and time
 * @property {string} privacy which images it contains
 * @property {string[]} left_out in words
 */

/** @param {{report: ReportFacts|null}} props null in TensorBoard */
export function ReportNote({ report }) {
  if (!report) return null;
  const { privacy, left_out: left, version, written } = report;
  return html`
    <details class="report-note">
      <summary>
        <strong>${privacy}</strong>
        <span>${left.length ? ` Left out: ${left.join("; ")}` : ""}</span>
      </summary>
      <ul>${left.map((text) => html`<li>${text}</li>`)}</ul>
      <p>Written by fmapboard ${version}, ${written}. Nothing is sent or loaded.</p>
    </details>
  `;
}

// Instructions, shown while there are no feature maps.

const CODE = `import fmapboard

with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):
    train(...)`;
const SERVE =
  "Then point TensorBoard at the log directory; fmapboard serve also keeps enough steps in memory:";

/**
 * What was looked at, in words.
 * @param {Pick<import("../app.js").Model, "isUnread"|"logdir">} model
 */
function whereText({ isUnread, logdir }) {
  if (isUnread) {
    const inLogdir = logdir ? ` in ${logdir}` : "";
    return `There are event files of fmapboard${inLogdir} that TensorBoard has not read yet.`;
  }
  return logdir
    ? `TensorBoard reads ${logdir}; no run in it holds records of fmapboard.`
    : "No run that TensorBoard reads holds records of fmapboard.";
}

/**
 * @param {object} props
 * @param {Pick<import("../app.js").Model, "isUnread"|"logdir"|"problem">} props.model
 * @param {boolean} props.shown
 * @param {() => void} props.reload
 */
export function Empty({ model, shown, reload }) {
  const { isUnread, problem } = model;
  return html`
    <main class="empty" hidden=${!shown}>
      <h1>${isUnread ? "Feature maps are being read" : "No feature maps here yet"}</h1>
      <p class="problem" role="alert" hidden=${!problem}>${problem}</p>
      <p>${whereText(model)}</p>
      <div hidden=${isUnread}>
        <p>Two lines around your training loop write them:</p>
        <pre>${CODE}</pre>
        <p>${SERVE}</p>
        <pre>fmapboard serve runs</pre>
        <p>No model at hand? This trains a small one on bundled images, in seconds:</p>
        <pre>fmapboard demo</pre>
      </div>
      <p class="note">
        This page looks again every few seconds: the first logged step appears by itself.
      </p>
      <button type="button" onClick=${reload}>Look again</button>
    </main>
  `;
}

// The line that says what the order of channels, or the arrangement of kernels, means.

/** @param {Pick<import("../model/look.js").Model, "scene">} model */
export function Order({ scene }) {
  const maps = scene?.kind === "maps" ? scene.sorting.meaning : "";
  const meaning = scene?.kind === "kernels" ? kernelMeaning(scene) : maps;
  return html`<p class="order" role="status" hidden=${!meaning}>${meaning}</p>`;
}
