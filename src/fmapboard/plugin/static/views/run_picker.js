// @ts-check
/** A searchable list of runs, opened by a button; made for hundreds of runs with long names. */

import { search } from "../state/run_search.js";
import { h, show } from "./dom.js";
import { createRunName } from "./run_name.js";
import { runText } from "../state/run_text.js";

/** Most entries that are listed; more words narrow the search. */
const MOST = 100;
let pickers = 0;

/**
 * @typedef {object} Offer
 * @property {string[]} runs
 * @property {string} chosen
 * @property {(run: string) => string} colourOf
 * @property {string} [same] entry that means "the run of the main column", "" to offer none
 */

/**
 * @param {string} label @param {(run: string) => void} chosen called with "" for `same`
 * @param {string} text of the button, "" for the name of the chosen run
 */
export function createRunPicker(label, chosen, text = "") {
  const id = `runs-${(pickers += 1)}`;
  const name = createRunName();
  const opener = h(
    "button",
    {
      type: "button",
      class: "picker",
      "aria-label": label,
      "aria-haspopup": "listbox",
      "aria-expanded": "false",
      on: { click: () => (panel.hidden ? open() : close()) },
    },
    text || name.element,
  );
  const list = h("ul", { id, role: "listbox", "aria-label": label });
  const count = h("p", { class: "note", role: "status" });
  /** @type {HTMLInputElement} */
  const filter = h("input", {
    type: "search",
    role: "combobox",
    placeholder: "words of the name",
    "aria-label": `${label}: search`,
    "aria-controls": id,
    "aria-expanded": "true",
    "aria-autocomplete": "list",
    on: {
      input: () => {
        at = 0;
        fill();
      },
      keydown: (event) => key(event),
    },
  });
  const panel = h("div", { class: "picker-panel", hidden: true }, filter, count, list);
  const element = h("span", { class: "run-picker" }, opener, panel);
  /** @type {Offer} */
  let offer = { runs: [], chosen: "", colourOf: () => "" };
  /** @type {string[]} */
  let found = [];
  let at = 0;

  element.addEventListener("focusout", (event) => {
    const to = /** @type {Node|null} */ (event.relatedTarget);
    if (to && !element.contains(to)) close();
  });
  document.addEventListener("pointerdown", (event) => {
    if (!element.contains(/** @type {Node} */ (event.target))) close();
  });
  // The list must not take the focus from the text field, which would close it.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  function open() {
    show(panel, true);
    opener.setAttribute("aria-expanded", "true");
    filter.value = "";
    fill();
    at = Math.max(0, found.indexOf(offer.chosen));
    mark();
    filter.focus();
  }

  function close() {
    show(panel, false);
    opener.setAttribute("aria-expanded", "false");
  }

  /** @param {string} run */
  function choose(run) {
    close();
    opener.focus();
    chosen(run);
  }

  function fill() {
    const matching = search(offer.runs, filter.value);
    found = [...(offer.same && !filter.value ? [""] : []), ...matching].slice(0, MOST);
    count.textContent =
      matching.length > MOST
        ? `${matching.length} runs; the first ${MOST} are listed`
        : `${matching.length} of ${offer.runs.length} runs`;
    list.replaceChildren(
      ...found.map((run, i) => {
        const entry = createRunName();
        entry.draw(run || (offer.same ?? ""), offer.colourOf(run));
        return h(
          "li",
          { id: `${id}-${i}`, role: "option", on: { click: () => choose(run) } },
          entry.element,
        );
      }),
    );
    mark();
  }

  /** Marks the entry that Enter chooses. */
  function mark() {
    at = Math.max(0, Math.min(at, found.length - 1));
    [...list.children].forEach((entry, i) => {
      entry.setAttribute("aria-selected", String(i === at));
      if (i === at) entry.scrollIntoView({ block: "nearest" });
    });
    if (found.length) filter.setAttribute("aria-activedescendant", `${id}-${at}`);
    else filter.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    const moves = /** @type {Record<string, number>} */ ({
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: 10,
      PageUp: -10,
    });
    if (event.key in moves) {
      at += moves[event.key];
      mark();
    } else if (event.key === "Enter") {
      if (found.length) choose(found[at]);
    } else if (event.key === "Escape") {
      close();
      opener.focus();
    } else {
      return; // text, or Tab
    }
    event.preventDefault();
    event.stopPropagation(); // the page has keys of its own
  }

  /** @param {Offer} now */
  function draw(now) {
    const changed = now.runs.length !== offer.runs.length;
    offer = now;
    name.draw(now.chosen || (now.same ?? ""), now.colourOf(now.chosen));
    opener.setAttribute(
      "aria-label",
      `${label}: ${now.chosen ? runText(now.chosen) : (now.same ?? runText(""))}`,
    );
    if (changed && !panel.hidden) fill();
  }
  return { element, opener, draw };
}
