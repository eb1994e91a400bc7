// @ts-check
/** The list of layers by how much a column differs from the main one. */

import { layerText, matchText } from "../model/compare.js";
import { decades, groupOf } from "../model/ranking.js";
import { LETTERS } from "../model/state.js";
import { percent, short, stepText } from "../model/words.js";
import { number } from "../server/container.js";
import { html, useMemo } from "../vendor/preact_htm.js";
import { Button, Choice } from "./controls.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../model/ranking.js").Ranked} Ranked */

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
          options=${state.columns.map((_, i) => [String(i + 1), LETTERS[i + 1]])}
          value=${String(state.rank)}
          choose=${(/** @type {string} */ value) => app.update({ rank: Number(value) })} />
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
