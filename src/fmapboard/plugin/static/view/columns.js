// @ts-check
/** The columns: headings that say where each stems from, and the controls of those beside A. */

import { ROLE_NAMES, decades, groupOf, layerText, matchText } from "../model/compare.js";
import { leftToRight } from "../model/scene.js";
import { LETTERS, MOST, SAME, changed } from "../model/state.js";
import { percent, runText, short, stepText } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { number } from "../server/decode.js";
import { html, useLayoutEffect, useMemo, useRef } from "../vendor/preact_htm.js";
import { Button, Choice, Icon, usePopover } from "./controls.js";
import { Thumbnail } from "./head.js";
import { RunName, RunPicker } from "./runs.js";

/** @import {App, Model} from "../app.js" */
/** @import {Ranked} from "../model/compare.js" */
/** @import {Column} from "../model/state.js" */

/** @typedef {{app: App, model: Model, i: number}} Props `i` is the place in `state.columns` */

/** Controls of one column beside the main one: its run, step, sample and role. @param {Props} props */
function Controls({ app, model, i }) {
  const { isOpen, around, opener } = usePopover();
  const letter = LETTERS[i + 1];
  const label = `Change column ${letter}`;
  const remove = () =>
    app.update({
      columns: app.state.columns.filter((_, at) => at !== i),
      rank: app.state.rank === i + 1 ? 0 : Math.min(app.state.rank, i + 1),
    });
  return html`
    <div class="column-controls" ...${around}>
      <button type="button" title=${label} aria-label=${label} ...${opener}>
        <${Icon} name="open" />
      </button>
      <${Button} icon="close" label=${`Remove column ${letter}`} press=${remove} />
      ${isOpen && html`<${Panel} ...${{ app, model, i }} />`}
    </div>
  `;
}

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
  const roles = (layer?.roles ?? []).filter((each) => each !== "kernels");
  const samples = [...Array(layer?.samples ?? 1).keys()];
  const stepName = (/** @type {number} */ step) => `pinned to step ${stepText(step)}`;
  /**
   * A list of what the column can have of its own; null if there is nothing to choose from.
   * @param {"step"|"sample"|"role"} field @param {string} same entry for that of the main column
   * @param {readonly any[]} all values @param {(value: any) => string} name of a value
   */
  const list = (field, same, all, name) => {
    const value = column[field];
    const isOwn = value !== SAME[field];
    if (all.length < 2 && !isOwn && field !== "step") return null;
    const text = { step: "Step", sample: "Sample", role: "Kind" }[field];
    const label = field === "role" ? `What column ${letter} shows` : `${text} of column ${letter}`;
    const gone = isOwn && !all.includes(value) ? [[value, `${name(value)} (not here)`]] : [];
    const options = [[SAME[field], same], ...gone, ...all.map((each) => [each, name(each)])];
    const choose = (/** @type {unknown} */ to) => change({ [field]: to });
    return html`
      <div class="row spread">
        <span class="label">${text}</span><${Choice} ...${{ label, options, value, choose }} />
      </div>
    `;
  };
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
      ${list("step", "follows the slider", layer?.steps ?? [], stepName)}
      ${list("sample", "same sample", samples, (sample) => `sample ${sample}`)}
      ${list("role", "same kind", roles, (role) => ROLE_NAMES[role] ?? role)}
    </div>
  `;
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

// The list of layers by how much a column differs from the main one.

/** Value at which the bar of a row is full: two unrelated maps with mean 0. */
const FULL = Math.SQRT2;
/** Power of 10 of the ratio at which the bar is full. */
const DECADES = 6;

const HEADINGS = Object.freeze({
  nonfinite: [
    "Not finite on a side",
    "share of values that are NaN or infinite on at least one side",
  ],
  size: [
    "By how many times larger one column's values are: 10 times or more",
    "ratio of the root mean squares; the difference relative to them is then about 1.41, whatever the maps show",
  ],
  maps: [
    "By the drawn maps, same input image",
    "root mean square of the difference, relative to that of the maps: 0 the same, 1.41 unrelated, 2 opposite",
  ],
  statistics: [
    "By the statistics of the batch, because the inputs or sizes differ",
    "root mean square of the differences of the channels' means and standard deviations, relative to these",
  ],
  none: ["Not compared", ""],
});

/** @param {{app: App, model: import("../app.js").Model}} props */
export function RankedLayers({ app, model: { ranking, state } }) {
  const { rows, done, total, error } = ranking ?? { rows: [], done: 0, total: 0, error: null };
  const list = useMemo(
    () =>
      rows.flatMap((row, i) => {
        const group = groupOf(row);
        const [text, what] = HEADINGS[group];
        const isFirst = i === 0 || groupOf(rows[i - 1]) !== group;
        return [
          isFirst && html`<li key=${group} class="rank-group" title=${what}>${text}</li>`,
          html`<${Entry} key=${row.key} ...${{ app, row, layer: state.layer, rank: state.rank }} />`,
        ];
      }),
    [rows, state.layer, state.rank],
  );
  if (!ranking) return null;
  const progress = error?.message ?? (done < total ? `compared ${done} of ${total} layers …` : "");
  return html`
    <section class="ranked" aria-label="Layers by difference">
      <div class="row">
        <h2>Layers by difference from A</h2>
        <${Choice} label="Column that is compared with A"
          options=${state.columns.map((_, i) => [i + 1, LETTERS[i + 1]])}
          value=${state.rank} choose=${app.set("rank")} />
        <span class="said" role="status">${progress}</span>
        <span class="space" />
        <${Button} icon="close" label="Close the ranking" press=${() => app.update({ rank: 0 })} />
      </div>
      <ol class="ranks">${list}</ol>
    </section>
  `;
}

/** @param {{app: App, row: Ranked, layer: string, rank: number}} props */
function Entry({ app, row, layer, rank }) {
  const { key, match, difference } = row;
  const value = number(difference?.value ?? 0);
  const bad = difference?.nonfinite ?? 0;
  const share = groupOf(row) === "size" ? decades(row) / DECADES : (value || 0) / FULL;
  const notes = [match ? matchText(match) : "no such layer in the other run"];
  if (difference?.why) notes.push(difference.why);
  if (difference && difference.step !== difference.other_step) {
    notes.push(
      `steps ${stepText(difference.step ?? 0)} and ${stepText(difference.other_step ?? 0)}`,
    );
  }
  const said = bad ? `non-finite: ${percent(bad)} of the values on at least one side` : null;
  return html`
    <li>
      <button type="button" aria-current=${key === layer ? "true" : null}
        onClick=${() => app.update({ layer: key })}>
        <span class="rank-name">${layerText(key)}</span>
        <span class="rank-note">${notes.filter(Boolean).join("; ")}</span>
        <i class="rank-bar" aria-hidden="true" data-state=${bad ? "nonfinite" : null} title=${said}
          style=${{ "--share": String(bad || Math.min(1, share)) }} />
        <span class="rank-value">${valueText(row, LETTERS[rank])}</span>
      </button>
    </li>
  `;
}

/** @param {Ranked} row @param {string} letter of the ranked column */
function valueText(row, letter) {
  const { difference } = row;
  if (!difference?.measure) return "–";
  if (difference.nonfinite) return `${percent(difference.nonfinite)} not finite`;
  if (groupOf(row) === "size") {
    const ratio = number(difference.ratio ?? NaN);
    const [large, small] = ratio > 1 ? [letter, "A"] : ["A", letter];
    const times = 10 ** decades(row);
    return Number.isFinite(times) ? `${large} ${short(times, 2)} × ${small}` : `${small} is 0`;
  }
  const value = number(difference.value ?? NaN);
  const rounding = number(difference.rounding ?? 0);
  return value <= 2 * rounding ? `≤ ${short(2 * rounding, 2)} (rounding)` : short(value, 3);
}
