// @ts-check
/** A run's name with its colour; a name too long for its place is cut in the middle. */

import { parted } from "../state/run_search.js";
import { h, say, show } from "./dom.js";
import { runText } from "../state/run_text.js";

/** Length of the end of a name that is always shown. */
const END = 22;

export function createRunName() {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  const head = h("span", { class: "run-head" });
  const end = h("bdi", { dir: "ltr" });
  const tail = h("span", { class: "run-tail" }, end);
  const element = h("span", { class: "run-name" }, dot, head, tail);

  /** @param {string} run @param {string} colour */
  function draw(run, colour) {
    const [first, last] = parted(runText(run), END);
    say(head, first);
    show(head, Boolean(first));
    say(end, last);
    element.title = runText(run);
    dot.style.background = colour;
  }
  return { element, draw };
}
