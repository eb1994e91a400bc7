// @ts-check
/** Lines above the views: what is gone, what was found, what is to be done. */

import { layerText } from "../model/compare.js";
import { inWordsOf, stepText } from "../model/words.js";
import { indexOf, keptFrom } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";

/** @import {App} from "../app.js" */
/** @import {Model} from "../model/model.js" */
/** @import {Layer} from "../server/server.js" */
/** @import {ReportFacts} from "./view.js" */

/**
 * The layer with pictures that is nearest: the one that the server names, or of a module the last
 * one with the longest common beginning of its name.
 * @param {Layer[]} layers @param {import("../server/routes.js").FirstFault} first
 */
export function nearestLayer(layers, { name, label, shown_at }) {
  const named = layers.find((each) => each.key === shown_at);
  if (label === null || named) return named;
  const own = layers.filter((each) => (each.name ?? "") === name);
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
 * Step and layer that the button leads to, without the one that is shown.
 * @param {import("../server/routes.js").FirstFault} first @param {number} step
 * @param {Layer|undefined} layer @param {{step: boolean, layer: boolean}} isThere
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

/** @param {{model: Model, visit: (target: {step: number, layer: string}) => void}} props */
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
      <span>${first.text}</span>
      <button type="button" hidden=${isThere.step && isThere.layer} onClick=${() => visit(target)}>
        Show ${destination(first, step, layer, isThere)}
      </button>
    </p>
  `;
}

/**
 * A line that says something, if there is something to say.
 * @param {{name: string, text: string}} props
 */
export function Notice({ name, text }) {
  return html`<p class=${name} role="status" hidden=${!text}>${text}</p>`;
}

/** The lines above the views. @param {{app: App, model: Model}} props */
export function Notices({ app, model }) {
  const { isThere, arrived } = app.overview;
  const isLed = isThere && model.state.view === "maps";
  const { message = "", note = "" } = (isLed && arrived) || {};
  const isSaid = message === model.health?.first_nonfinite?.text;
  const visit = (/** @type {{step: number, layer: string}} */ to) => app.update(to, "visit");
  return html`
    <${Notice} name="gone" text=${model.layers.length ? model.gone : ""} />
    <${FirstFault} ...${{ model, visit }} />
    <${Notice} name="arrival" text=${[!isSaid && message, note].filter(Boolean).join(" · ")} />
    <p class="sampling" hidden=${model.keepsEnough || !model.layers.length}>
      <span>${KEEP_MORE}</span><code>--samples_per_plugin images=50,feature_maps=50</code>
    </p>
  `;
}

// A hint on the flag that makes TensorBoard keep more steps, if it keeps its default of 10.

const KEEP_MORE =
  "TensorBoard keeps only 10 steps of each picture, as no run had feature maps when it was " +
  "started. Restart it with ";

// What a report says about itself: which images it shows, and what it leaves out.

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

const CODE = [
  "import fmapboard",
  "",
  'with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):',
  "    train(...)",
].join("\n");

/** What was looked at, in words. @param {Pick<Model, "isUnread"|"logdir">} model */
function whereText({ isUnread, logdir }) {
  const inLogdir = logdir ? ` in ${logdir}` : "";
  if (isUnread) return `There are event files of fmapboard${inLogdir} that have not been read yet.`;
  return `No run${inLogdir || " here"} holds records of fmapboard.`;
}

/**
 * @param {{model: Pick<Model, "isUnread"|"logdir"|"problem">, shown: boolean, reload: () => void}}
 *   props
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
        <p>Then look at them, also while they are written:</p>
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

/**
 * What the order of channels, or the arrangement of kernels, means.
 * @param {{model: Model}} props
 */
export function Order({ model: { scene } }) {
  return html`<${Notice} name="order" text=${inWordsOf(scene?.sorting.meaning ?? "")} />`;
}
