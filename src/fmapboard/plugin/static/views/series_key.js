// @ts-check
/** Colours and dashes of the curves of several columns, and their key above a chart. */

import { runColour } from "../draw/run_colours.js";
import { theme } from "../draw/theme.js";
import { layerText, ROLE_NAMES } from "../state/compare.js";
import { h, show } from "./dom.js";
import { mount } from "./mount.js";
import { RunName } from "./run_name.js";

/** @typedef {import("../data/routes.js").RunEntry} RunEntry */
/** @typedef {import("../state/series.js").Series} Series */

/** Dashes of further series of one run, px. @type {readonly number[][]} */
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

/**
 * Colour of a series: the run's if there are several series, otherwise the theme's.
 * @param {readonly Series[]} all @param {Series} series @param {readonly RunEntry[]} runs
 */
export function coloursOf(all, series, runs) {
  if (all.length < 2) return { line: theme().accent, band: theme().band };
  const line = runColour(series.run, runs);
  return { line, band: `color-mix(in srgb, ${line} 20%, transparent)` };
}

/**
 * Dashes of a series: another one for each series of the same run.
 * @param {readonly Series[]} all @param {Series} series
 */
export function dashOf(all, series) {
  const ofRun = all.filter(({ run }) => run === series.run);
  return DASHES[Math.max(0, ofRun.indexOf(series)) % DASHES.length];
}

/**
 * Colour of each column of a scene.
 * @param {import("../draw/scene.js").MapsScene} scene @param {readonly RunEntry[]} runs
 */
export function ofColumns({ columns }, runs) {
  if (columns.length < 2) return [theme().accent];
  const plain = [theme().accent, theme().second, theme().text, theme().muted];
  const names = columns.map(({ question }) => question?.run);
  const distinct = new Set(names).size === columns.length;
  return columns.map(({ question }, i) =>
    distinct && question ? runColour(question.run, runs) : plain[i],
  );
}

/** The key of a chart: per series its line, columns and run, and its layer if that has another name. */
export function createKey() {
  const element = h("ul", { class: "key", "aria-label": "Key of the curves" });
  let before = "";

  /** @param {readonly Series[]} all @param {readonly RunEntry[]} runs */
  function draw(all, runs) {
    show(element, all.length > 1);
    if (all.length < 2) return;
    const main = all[0];
    const facts = all.map((each) => ({
      ...{ run: each.run, letters: each.letters, waits: !each.history },
      ...{ colour: coloursOf(all, each, runs).line, dash: dashOf(all, each) },
      layer: each.layer.key === main.layer.key ? "" : layerText(each.layer.key),
      role: each.role === main.role ? "" : (ROLE_NAMES[each.role] ?? each.role),
    }));
    const now = JSON.stringify(facts);
    if (now === before) return;
    before = now;
    element.replaceChildren(
      ...facts.map(({ run, letters, colour, dash, layer, role, waits }) => {
        const name = mount(RunName);
        name.draw({ run, colour });
        const stroke = h("i", { class: dash.length ? "stroke dashed" : "stroke" });
        stroke.style.borderColor = colour;
        const more = [layer, role, waits ? "loading" : ""].filter(Boolean).join(" · ");
        return h(
          "li",
          {},
          stroke,
          h("b", { text: letters }),
          name.element,
          more ? h("span", { text: more }) : null,
        );
      }),
    );
  }
  return { element, draw };
}
