// @ts-check
/** The columns: headings that say where each stems from, and the controls of those beside A. */

import { ROLE_NAMES } from "../model/compare.js";
import { leftToRight } from "../model/scene.js";
import { LETTERS, MOST, changed } from "../model/state.js";
import { runText, stepText } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";
import { Button, Choice, Icon, usePopover } from "./controls.js";
import { Thumbnail } from "./head.js";
import { RunName, RunPicker } from "./runs.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/answers.js").Role} Role */
/** @typedef {import("../model/state.js").Column} Column */
/** @typedef {{app: App, model: Model, i: number}} Props `i` is the place in `state.columns` */

/** Controls of one column beside the main one: its run, step, sample and role. @param {Props} props */
function Controls({ app, model, i }) {
  const { isOpen, around, opener } = usePopover();
  const letter = LETTERS[i + 1];
  const remove = () =>
    app.update({
      columns: app.state.columns.filter((_, at) => at !== i),
      rank: app.state.rank === i + 1 ? 0 : Math.min(app.state.rank, i + 1),
    });
  return html`
    <div class="column-controls" ...${around}>
      <button type="button" ...${named(`Change column ${letter}`)} ...${opener}>
        <${Icon} name="open" />
      </button>
      <${Button} icon="close" label=${`Remove column ${letter}`} press=${remove} />
      ${isOpen && html`<${Panel} ...${{ app, model, i }} />`}
    </div>
  `;
}

/** @param {string} label */
const named = (label) => ({ title: label, "aria-label": label });

/** @param {Props} props */
function Panel({ app, model, i }) {
  const { state, runs, columns } = model;
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => element.current?.querySelector("button")?.focus(), []);
  const letter = LETTERS[i + 1];
  const column = state.columns[i];
  const layer = columns[i]?.match?.layer ?? model.layer;
  const change = (/** @type {Partial<Column>} */ patch) =>
    app.update({ columns: changed(app.state.columns, i, patch) });
  const samples = Array.from({ length: layer?.samples ?? 1 }, (_, k) => k);
  const roles = (layer?.roles ?? []).filter((each) => each !== "kernels");
  const number = (/** @type {string} */ value) => (value === "" ? null : Number(value));
  const list = (
    /** @type {string} */ text,
    /** @type {string} */ label,
    /** @type {[string, string][]} */ options,
    /** @type {string|number|null} */ value,
    /** @type {(value: string) => void} */ choose,
  ) => html`
    <div class="row spread">
      <span class="label">${text}</span>
      <${Choice} ...${{ label, options, choose, value: String(value ?? "") }} />
    </div>
  `;
  const stepName = (/** @type {number} */ step) => `pinned to step ${stepText(step)}`;
  return html`
    <div class="column-panel" role="group" aria-label=${`Column ${letter}`} ref=${element}>
      <div class="row spread">
        <span class="label">Run</span>
        <${RunPicker} label=${`Run of column ${letter}`}
          choose=${(/** @type {string} */ run) => change({ run })}
          runs=${runs.map((each) => each.run)} chosen=${column.run}
          colourOf=${(/** @type {string} */ name) => runColour(name || state.run, runs)}
          same=${`same run (${runText(state.run)})`} />
      </div>
      ${list(
        "Step",
        `Step of column ${letter}`,
        options(column.step, layer?.steps ?? [], "follows the slider", stepName),
        column.step,
        (value) => change({ step: number(value) }),
      )}
      ${
        (samples.length > 1 || column.sample !== null) &&
        list(
          "Sample",
          `Sample of column ${letter}`,
          options(column.sample, samples, "same sample", (sample) => `sample ${sample}`),
          column.sample,
          (value) => change({ sample: number(value) }),
        )
      }
      ${
        (roles.length > 1 || column.role) &&
        list(
          "Kind",
          `What column ${letter} shows`,
          options(column.role, roles, "same kind", (each) => ROLE_NAMES[each] ?? each),
          column.role,
          (value) => change({ role: /** @type {Role|""} */ (value) }),
        )
      }
    </div>
  `;
}

/**
 * Options of a list: the main column's, all that there are, and what is selected now.
 * @template {string|number} T
 * @param {T|null} now @param {readonly T[]} all @param {string} same @param {(value: T) => string} name
 * @returns {[string, string][]}
 */
function options(now, all, same, name) {
  /** @type {[string, string][]} */
  const offered = all.map((value) => [String(value), name(value)]);
  if (now !== null && now !== "" && !all.includes(now)) {
    offered.unshift([String(now), `${name(now)} (not here)`]);
  }
  return [["", same], ...offered];
}

/** Where a column stems from, its input image, and what differs. @param {Props & {place: number}} props */
function Side({ app, model, i, place }) {
  const of = model.sides?.each[i];
  const from = of ? [of.place, of.follows].filter(Boolean).join(" · ") : "Loading…";
  // The parts of a text between dots, none of which is broken into lines.
  const parts = from
    .split(" · ")
    .flatMap((part, k) => [k ? " · " : "", html`<span class="whole">${part}</span>`]);
  return html`
    <div class=${place === 0 ? "side first" : "side"} role="group"
      aria-label=${of ? `${of.letter} ${of.text}`.trim() : "column, loading"}
      data-inputs=${of?.inputs ?? "loading"} style=${{ order: place }}>
      <div class="origin">
        <b>${of?.letter}</b>
        ${of && html`<${RunName} run=${of.run} colour=${runColour(of.run, model.runs)} />`}
        ${i > 0 && html`<${Controls} ...${{ app, model, i: i - 1 }} />`}
      </div>
      <div class="side-body">
        ${of?.input && html`<${Thumbnail} picture=${of.input} label=${`network's input of ${of.text}`} />`}
        <p class="place">${parts}</p>
      </div>
      <p class="match" hidden=${!of?.match}>${of?.match}</p>
      <p class="differs" role="status" hidden=${!of?.notes.length}>${of?.notes.join("; ")}</p>
    </div>
  `;
}

/** @param {{app: App, model: Model}} props */
export function Sides({ app, model }) {
  const { sides, state, scene } = model;
  const isAsked = state.columns.length > 0 && state.role !== "kernels";
  if (!sides && !isAsked) return null;
  const order = leftToRight(scene?.columns ?? []);
  const shown = Array.from({ length: MOST + 1 }, (_, i) => i).filter(
    (i) => sides?.each[i] || (i > 0 && i <= state.columns.length && isAsked),
  );
  const own = () => app.update({ own_scale: !app.state.own_scale });
  const count = { "--columns": shown.length };
  return html`
    <div class="sides" data-inputs=${sides?.inputs ?? "loading"} style=${count}>
      ${shown.map((i) => {
        const at = order.indexOf(i);
        return html`<${Side} key=${i} ...${{ app, model, i, place: at < 0 ? i : at }} />`;
      })}
      <div class="below-sides" style=${{ order: MOST + 1 }} hidden=${!sides?.notes.length}>
        <p class="differs all" role="status">${sides?.notes.join(" ")}</p>
        <button type="button" class="own-scale" hidden=${!sides?.hasScaleNote} onClick=${own}>
          ${state.own_scale ? "One scale for all columns" : "Own scale per column"}
        </button>
      </div>
    </div>
  `;
}
