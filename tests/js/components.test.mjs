// @ts-check
/** Components are functions of a model that they leave as it is. */

import assert from "node:assert/strict";
import test from "node:test";
import { FirstFault, Notice } from "../../src/fmapboard/plugin/static/view/notices.js";

/** Text of what a component returns. @param {any} node @returns {string} */
function textOf(node) {
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (Array.isArray(node)) return node.map(textOf).join("");
  return typeof node === "object" ? textOf(node.props.children) : String(node);
}

/** @param {object} node @returns {any} */
const propsOf = (node) => /** @type {any} */ (node).props;

test("a line of the page is hidden while there is nothing to say", () => {
  const said = Notice({ name: "gone", text: "No layer a" });
  assert.equal(textOf(said), "No layer a");
  assert.equal(propsOf(said).hidden, false);
  assert.equal(propsOf(Notice({ name: "gone", text: "" })).hidden, true);
});

test("the first fault's button leads to its step and layer, and is hidden there", () => {
  const layer = { key: "fmapboard/a", name: "", label: "a", activation: null };
  const first = { step: 5, text: "NaN in a", name: "", label: "a", shown_at: "fmapboard/a" };
  const model = (/** @type {string} */ shown, /** @type {number} */ step) =>
    /** @type {any} */ (
      Object.freeze({
        health: { first_nonfinite: first },
        layers: [layer],
        steps: [0, 10],
        state: { layer: shown, step },
      })
    );
  /** @type {unknown[]} */
  const visited = [];
  const away = FirstFault({ model: model("fmapboard/b", 0), visit: (to) => visited.push(to) });
  const [line, button] = propsOf(away).children;
  assert.equal(textOf(line), "NaN in a");
  assert.equal(textOf(button), "Show step 10, the next kept one, a");
  button.props.onClick();
  assert.deepEqual(visited, [{ step: 10, layer: "fmapboard/a" }]);
  const there = FirstFault({ model: model("fmapboard/a", 10), visit: () => {} });
  assert.equal(propsOf(there).children[1].props.hidden, true);
});
