// @ts-check
/** The columns: headings that say where each stems from, and the controls of those beside A. */

import { ROLE_NAMES, decades, groupOf, layerText, matchText } from "../model/compare.js";
import { SAME } from "../model/state.js";
import { inWordsOf, percent, runText, short, stepText } from "../model/words.js";
import { number } from "../server/decode.js";
import { html, useLayoutEffect, useMemo, useRef } from "../vendor/preact_htm.js";
import { Button, Choice, Icon, Toggle, usePopover } from "./controls.js";
import { Thumbnail } from "./head.js";
import { RunName, RunPicker } from "./runs.js";

/** @import {App} from "../app.js" */
/** @import {Column, Model, Ranked} from "../model/model.js" */
/** @import {ModelProps} from "./view.js" */

/** Controls of column B: its run, step, sample and role. @param {ModelProps} props */
function Controls({ app, model }) {
  const { isOpen, around, opener } = usePopover();
  return html`
    <div class="column-controls" ...${around}>
      <button type="button" title="Change column B" aria-label="Change column B" ...${opener}>
        <${Icon} name="open" />
      </button>
      <${Button} icon="close" label="Remove column B" press=${() => app.compare("off")} />
      ${isOpen && html`<${Panel} ...${{ app, model }} />`}
    </div>
  `;
}

/** @param {ModelProps} props */
function Panel({ app, model }) {
  const { state, runs, columns } = model;
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => element.current?.querySelector("button")?.focus(), []);
  const column = state.compare ?? SAME;
  const layer = columns[0]?.match?.layer ?? model.layer;
  const change = (/** @type {Partial<Column>} */ patch) =>
    app.update({ compare: { ...SAME, ...app.state.compare, ...patch } });
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
    const label = field === "role" ? "What column B shows" : `${text} of column B`;
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
    <div class="column-panel" role="group" aria-label="Column B" ref=${element}>
      <div class="row spread">
        <span class="label">Run</span>
        <${RunPicker} label="Run of column B"
          choose=${(/** @type {string} */ run) => change({ run })}
          runs=${runs.map((each) => each.run)} chosen=${column.run}
          same=${`same run (${runText(state.run)})`} />
      </div>
      ${list("step", "follows the slider", layer?.steps ?? [], stepName)}
      ${list("sample", "same sample", samples, (sample) => `sample ${sample}`)}
      ${list("role", "same kind", roles, (role) => ROLE_NAMES[role] ?? role)}
    </div>
  `;
}

/**
 * A column in one line: its input image, and where it stems from.
 * @param {ModelProps & {i: number}} props
 */
function Side({ app, model, i }) {
  const of = model.sides?.each[i];
  const from = of ? [...of.place, of.follows, of.match].filter(Boolean).join(" · ") : "Loading…";
  return html`
    <div class="side" role="group" data-inputs=${of?.inputs ?? "loading"}
      aria-label=${of ? `${of.letter} ${of.text}`.trim() : "column, loading"}>
      ${of?.letter && html`<b>${of.letter}</b><i class="dot" />`}
      ${
        of?.input &&
        html`<${Thumbnail} picture=${of.input} label=${`network's input of ${of.text}`} />`
      }
      ${of && html`<${RunName} run=${of.run} />`}
      <span class="place">${from}</span>
      ${i > 0 && html`<${Controls} ...${{ app, model }} />`}
    </div>
  `;
}

/** @param {{app: App, model: Model}} props */
export function Sides({ app, model }) {
  const { sides, state } = model;
  const isAsked = state.compare !== null && state.role !== "kernels";
  if (!sides && !isAsked) return null;
  const shown = [0, 1].filter((i) => sides?.each[i] || (i > 0 && isAsked));
  const isOwn = model.scene?.ownScale ?? false;
  const own = () => app.update({ own_scale: isOwn ? 0 : 1 });
  return html`
    <div class="sides" data-inputs=${sides?.inputs ?? "loading"}>
      ${shown.map((i) => html`<${Side} key=${i} ...${{ app, model, i }} />`)}
      <div class="row spread" hidden=${!sides?.notes.length}>
        <p class="differs" role="status">${inWordsOf(sides?.notes.join(" ") ?? "")}</p>
        ${
          sides?.hasScaleNote &&
          html`<${Toggle} class="toggle own-scale" text="Own scales" isOn=${isOwn} press=${own}
            title="Each column between its own extremes, or both on A's scale" />`
        }
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
  nonfinite: ["Not finite on a side", "share of values that are NaN or infinite on a side"],
  size: [
    "By how many times larger one column's values are: 10 times or more",
    "ratio of the root mean squares",
  ],
  maps: [
    "By the drawn maps, same input image",
    "root mean square of the difference, relative to that of the maps: 0 the same, 1.41 " +
      "unrelated, 2 opposite",
  ],
  statistics: [
    "By the statistics of the batch, because the inputs or sizes differ",
    "root mean square of the differences of the channels' means and standard deviations, " +
      "relative to these",
  ],
  none: ["Not compared", ""],
});

/** @param {{app: App, model: Model}} props */
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
          html`<${Entry} key=${row.key} ...${{ app, row, layer: state.layer }} />`,
        ];
      }),
    [rows, state.layer],
  );
  if (!ranking) return null;
  const progress = error?.message ?? (done < total ? `compared ${done} of ${total} layers …` : "");
  return html`
    <section class="ranked" aria-label="Layers by difference">
      <div class="row">
        <h2>Layers by difference of B from A</h2>
        <span class="said" role="status">${progress}</span>
        <span class="space" />
        <${Button} icon="close" label="Close the ranking"
          press=${() => app.update({ rank: false })} />
      </div>
      <ol class="ranks">${list}</ol>
    </section>
  `;
}

/** @param {{app: App, row: Ranked, layer: string}} props */
function Entry({ app, row, layer }) {
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
        <span class="rank-value">${valueText(row)}</span>
      </button>
    </li>
  `;
}

/** @param {Ranked} row */
function valueText(row) {
  const { difference } = row;
  if (!difference?.measure) return "–";
  if (difference.nonfinite) return `${percent(difference.nonfinite)} not finite`;
  if (groupOf(row) === "size") {
    const ratio = number(difference.ratio ?? NaN);
    const [large, small] = ratio > 1 ? ["B", "A"] : ["A", "B"];
    const times = 10 ** decades(row);
    return Number.isFinite(times) ? `${large} ${short(times, 2)} × ${small}` : `${small} is 0`;
  }
  const value = number(difference.value ?? NaN);
  const rounding = number(difference.rounding ?? 0);
  return value <= 2 * rounding ? `≤ ${short(2 * rounding, 2)} (rounding)` : short(value, 3);
}
