// @ts-check
/** A line that says where the first non-finite value of the run was found, and leads there. */

import { layerText } from "../state/compare.js";
import { indexOf } from "../state/steps.js";
import { stepText } from "../draw/number_text.js";
import { html } from "../vendor/preact_htm.js";

/** @typedef {import("../data/routes.js").FirstFault} FirstNonfinite */
/** @typedef {import("../data/answers.js").Layer} Layer */

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

/** The first kept step that is not before another; the last if there is none. @param {number[]} steps @param {number} step */
export function keptFrom(steps, step) {
  return steps.find((each) => each >= step) ?? steps[steps.length - 1];
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
 * @param {Pick<import("../data/tab_data.js").Model, "health"|"layers"|"steps"|"state">} props.model
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
