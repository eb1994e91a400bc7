// @ts-check
/** Controls of the comparison as a whole: another column, how it is drawn, the ranking of layers. */

import { MOST, comparesKernels, newColumn } from "../state/columns.js";
import { partners } from "../state/compare.js";
import { choice, h, segments, show } from "./dom.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../state/columns.js").Kind} Kind */

const KINDS = /** @type {[Kind, string][]} */ ([
  ["step", "another step"],
  ["run", "another run"],
  ["sample", "another sample"],
  ["role", "inputs or gradients"],
]);

/** @param {App} app */
export function createCompare(app) {
  const kind = choice("Compare with", (/** @type {Kind|"off"|""} */ value) => {
    if (value) app.compare(value);
    else app.redraw();
  });
  const view = segments(
    "How to compare",
    [
      ["both", "Side by side"],
      ["difference", "Difference", "column A minus each other column"],
      ["all", "Both"],
    ],
    (value) => app.update({ show: value }),
  );
  const rank = h("button", {
    type: "button",
    class: "toggle",
    text: "Rank layers",
    title: "List the layers by how much a column differs from column A",
    on: { click: () => app.update({ rank: app.state.rank ? 0 : 1 }) },
  });
  const element = h("div", { class: "group compare" }, kind.element, view.element, rank);

  /** @param {Model} model */
  function draw(model) {
    const { state, layer } = model;
    const on = state.columns.length > 0;
    const runs = partners(state.run, model.runs);
    const full = state.columns.length >= MOST;
    const isKernels = state.role === "kernels";
    const offered = KINDS.filter(([id]) => {
      const column = full ? null : newColumn(id, state, layer, runs);
      return column && (!isKernels || comparesKernels(column));
    });
    /** @type {[Kind|"off"|"", string][]} */
    const options = [
      ["", on ? "Add a column …" : "Compare with …"],
      .../** @type {[Kind, string][]} */ (offered),
    ];
    if (full) options[0][1] = `${MOST + 1} columns`;
    if (on) options.push(["off", "Remove all columns"]);
    kind.fill(options, "");
    show(view.element, on);
    show(rank, on && !isKernels);
    rank.setAttribute("aria-pressed", String(state.rank > 0));
    view.draw(state.show);
  }
  return { element, draw };
}
