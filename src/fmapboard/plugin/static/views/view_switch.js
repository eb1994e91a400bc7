// @ts-check
/** The switch between the pages of the tab. */

import { segments } from "./dom.js";

/** @typedef {import("../state/state.js").View} View */

/** @type {[View, string, string][]} */
const PAGES = [
  ["overview", "Overview", "What is wrong in the run, and since when: all layers and steps (v)"],
  ["maps", "Maps", "The channels of one layer at one step (v)"],
  ["film", "Film", "Chosen channels at all steps, one column per step (m)"],
];

/** @param {import("../app.js").App} app */
export function createSwitch(app) {
  const { element, draw } = segments("Page", PAGES, (view) => app.update({ view }));
  element.classList.add("switch");
  return {
    element,
    draw: (/** @type {View} */ view) => draw(view === "attribution" ? "maps" : view),
  };
}
