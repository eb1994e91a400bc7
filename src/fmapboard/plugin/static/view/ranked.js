// @ts-check
/** The list of layers by how much a column differs from the main one. */

import { layerText, matchText } from "../model/compare.js";
import { decades, groupOf } from "../model/ranking.js";
import { LETTERS } from "../model/state.js";
import { percent, short, stepText } from "../model/words.js";
import { number } from "../server/container.js";
import { button, choice, h, say, show } from "./dom.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
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

/** @param {App} app */
export function createRanked(app) {
  const title = h("h2");
  const which = choice("Column that is compared with A", (value) =>
    app.update({ rank: Number(value) }),
  );
  const progress = h("span", { class: "said", role: "status" });
  const list = h("ol", { class: "ranks" });
  const element = h(
    "section",
    { class: "ranked", "aria-label": "Layers by difference" },
    h(
      "div",
      { class: "row" },
      title,
      which.element,
      progress,
      h("span", { class: "space" }),
      button({ icon: "close", label: "Close the ranking", press: () => app.update({ rank: 0 }) }),
    ),
    list,
  );
  let before = "";

  /** @param {Model} model */
  function draw({ ranking, state }) {
    show(element, Boolean(ranking));
    if (!ranking) return;
    say(title, "Layers by difference from A");
    which.fill(
      state.columns.map((_, i) => [String(i + 1), LETTERS[i + 1]]),
      String(state.rank),
    );
    const { rows, done, total, error } = ranking;
    say(progress, error?.message ?? (done < total ? `compared ${done} of ${total} layers …` : ""));
    const now = JSON.stringify([rows, state.layer, state.rank]);
    if (now === before) return;
    before = now;
    const entries = rows.flatMap((row, i) => {
      const group = groupOf(row);
      const isFirst = i === 0 || groupOf(rows[i - 1]) !== group;
      const [text, what] = HEADINGS[group];
      const heading = h("li", { class: "rank-group", title: what, text });
      return [...(isFirst ? [heading] : []), entry(app, row, state)];
    });
    const focused = list.contains(document.activeElement);
    list.replaceChildren(...entries);
    if (focused) /** @type {HTMLElement|null} */ (list.querySelector("[aria-current]"))?.focus();
  }
  return { element, draw };
}

/** @param {App} app @param {Ranked} row @param {import("../model/state.js").State} state */
function entry(app, row, { layer, rank }) {
  const { key, match, difference } = row;
  const bar = h("i", { class: "rank-bar", "aria-hidden": "true" });
  const value = number(difference?.value ?? 0);
  const bad = difference?.nonfinite ?? 0;
  const share = groupOf(row) === "size" ? decades(row) / DECADES : (value || 0) / FULL;
  bar.style.setProperty("--share", String(bad || Math.min(1, share)));
  if (bad) {
    bar.dataset.state = "nonfinite";
    bar.title = `non-finite: ${percent(bad)} of the values on at least one side`;
  }
  const notes = [match ? matchText(match) : "no such layer in the other run"];
  if (difference?.why) notes.push(difference.why);
  if (difference && difference.step !== difference.other_step) {
    notes.push(
      `steps ${stepText(difference.step ?? 0)} and ${stepText(difference.other_step ?? 0)}`,
    );
  }
  return h(
    "li",
    {},
    h(
      "button",
      {
        type: "button",
        "aria-current": key === layer && "true",
        on: { click: () => app.update({ layer: key }) },
      },
      h("span", { class: "rank-name", text: layerText(key) }),
      h("span", { class: "rank-note", text: notes.filter(Boolean).join("; ") }),
      bar,
      h("span", { class: "rank-value", text: valueText(row, LETTERS[rank]) }),
    ),
  );
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
