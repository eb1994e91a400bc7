// @ts-check
/** A run's name with its colour; a name too long for its place is cut in the middle. */

import { parted, search as searched } from "../model/compare.js";
import { MOST_RUNS } from "../model/front.js";
import { runText } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import {
  html,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/preact_htm.js";
import { h, say, show } from "./dom.js";

// A run's name with its colour; a name too long for its place is cut in the middle.

/** Length of the end of a name that is always shown. */
const END = 22;

/** @param {{run: string, colour: string}} props */
export function RunName({ run, colour }) {
  const [head, tail] = parted(runText(run), END);
  return html`
    <span class="run-name" title=${runText(run)}>
      <i class="dot" aria-hidden="true" style=${{ background: colour }} />
      <span class="run-head" hidden=${!head}>${head}</span>
      <span class="run-tail"><bdi dir="ltr">${tail}</bdi></span>
    </span>
  `;
}

// A searchable list of runs, opened by a button; made for hundreds of runs with long names.

/** Most entries that are listed; more words narrow the search. */
const MOST = 100;
/** How far a key moves in the list. @type {Readonly<Record<string, number>>} */
const MOVES = Object.freeze({ ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 });
let pickers = 0;

/**
 * @typedef {object} Offer
 * @property {string} label
 * @property {string} [text] of the button, otherwise it has the name of the chosen run
 * @property {readonly string[]} runs
 * @property {string} chosen
 * @property {(run: string) => string} colourOf
 * @property {string} [same] entry that means "the run of the main column"; absent to offer none
 * @property {(run: string) => void} choose called with "" for `same`
 */

/** @param {Offer} offer */
export function RunPicker(offer) {
  const { label, text, chosen, colourOf, same, choose } = offer;
  const [isOpen, open] = useState(false);
  const id = useMemo(() => `runs-${(pickers += 1)}`, []);
  const element = useRef(/** @type {HTMLElement|null} */ (null));
  const opener = useRef(/** @type {HTMLElement|null} */ (null));
  const closeFor = (/** @type {EventTarget|null} */ to) => {
    if (to && !element.current?.contains(/** @type {Node} */ (to))) open(false);
  };
  useEffect(() => {
    const pressed = (/** @type {Event} */ event) => closeFor(event.target);
    document.addEventListener("pointerdown", pressed);
    return () => document.removeEventListener("pointerdown", pressed);
  }, []);
  const leave = () => {
    open(false);
    opener.current?.focus();
  };
  const chooseAndLeave = (/** @type {string} */ run) => {
    leave();
    choose(run);
  };
  const name = chosen || (same ?? "");
  return html`
    <span
      class="run-picker"
      ref=${element}
      onfocusout=${(/** @type {FocusEvent} */ event) => closeFor(event.relatedTarget)}
    >
      <button
        type="button"
        class="picker"
        aria-label=${`${label}: ${runText(name)}`}
        aria-haspopup="listbox"
        aria-expanded=${String(isOpen)}
        ref=${opener}
        onClick=${() => open(!isOpen)}
      >
        ${text || html`<${RunName} run=${name} colour=${colourOf(chosen)} />`}
      </button>
      ${isOpen && html`<${Panel} ...${offer} id=${id} choose=${chooseAndLeave} leave=${leave} />`}
    </span>
  `;
}

/** The field to search in and the list. @param {Offer & {id: string, leave: () => void}} props */
function Panel({ id, label, runs, chosen, colourOf, same, choose, leave }) {
  const [words, setWords] = useState("");
  const matching = searched(runs, words);
  const found = [...(same && !words ? [""] : []), ...matching].slice(0, MOST);
  const inList = (/** @type {number} */ i) => Math.max(0, Math.min(i, found.length - 1));
  const [asked, setAsked] = useState(() => found.indexOf(chosen));
  const at = inList(asked);
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const field = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  useLayoutEffect(
    () => list.current?.children[at]?.scrollIntoView({ block: "nearest" }),
    [at, words],
  );

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (event.key in MOVES) setAsked((now) => inList(inList(now) + MOVES[event.key]));
    else if (event.key === "Enter") found.slice(at, at + 1).forEach(choose);
    else if (event.key === "Escape") leave();
    else return; // text, or Tab
    event.preventDefault();
    event.stopPropagation(); // the page has keys of its own
  }
  /** @param {{currentTarget: HTMLInputElement}} event */
  function typed({ currentTarget }) {
    setWords(currentTarget.value);
    setAsked(0);
  }
  /** Leaves the focus in the text field, which would else close the list. @param {Event} event */
  const keepFocus = (event) => event.preventDefault();
  return html`
    <div class="picker-panel">
      <input
        type="search"
        role="combobox"
        placeholder="words of the name"
        aria-label=${`${label}: search`}
        aria-controls=${id}
        aria-expanded="true"
        aria-autocomplete="list"
        aria-activedescendant=${found.length ? `${id}-${at}` : null}
        ref=${field}
        onInput=${typed}
        onKeyDown=${key}
      />
      <p class="note" role="status">
        ${
          matching.length > MOST
            ? `${matching.length} runs; the first ${MOST} are listed`
            : `${matching.length} of ${runs.length} runs`
        }
      </p>
      <ul
        id=${id}
        role="listbox"
        aria-label=${label}
        ref=${list}
        onMouseDown=${keepFocus}
      >
        ${found.map(
          (run, i) => html`
            <li
              key=${run}
              id=${`${id}-${i}`}
              role="option"
              aria-selected=${String(i === at)}
              onClick=${() => choose(run)}
            >
              <${RunName} run=${run || (same ?? "")} colour=${colourOf(run)} />
            </li>
          `,
        )}
      </ul>
    </div>
  `;
}

// Chooses the runs whose findings are listed: a search field and a check box per run.

/** Check boxes in the list; the search finds the others. */
const MOST_LISTED = 200;

/** @param {import("../app.js").App} app */
export function createRunChooser(app) {
  /** @type {HTMLInputElement} */
  const search = h("input", {
    type: "search",
    placeholder: "Search runs",
    "aria-label": "Search runs",
    spellcheck: "false",
    on: { input: () => fill() },
  });
  const list = h("div", { class: "run-list", role: "group", "aria-label": "Runs" });
  const note = h("p", { class: "label" });
  const action = (/** @type {string} */ text, /** @type {() => void} */ click) =>
    h("button", { type: "button", text, on: { click } });
  const summary = h("summary", { title: "Choose the runs whose findings are listed (/)" });
  const element = h(
    "details",
    { class: "run-chooser", on: { toggle: () => element.open && fill() } },
    summary,
    h(
      "div",
      { class: "run-panel" },
      search,
      h(
        "div",
        { class: "row" },
        action("All found", () => app.overview.choose(union(true))),
        action("None of these", () => app.overview.choose(union(false))),
      ),
      list,
      note,
    ),
  );
  /** @type {readonly import("../server/routes.js").RunEntry[]} */
  let runs = [];
  /** @type {Set<string>} */
  let chosen = new Set();
  document.addEventListener("pointerdown", (event) => {
    if (element.open && !element.contains(/** @type {Node} */ (event.target))) element.open = false;
  });

  /** Runs that the search finds. */
  function found() {
    return searched(
      runs.map((each) => each.run),
      search.value,
    );
  }

  /** The chosen runs with, or without, those that the search finds. @param {boolean} on */
  function union(on) {
    const among = new Set(found());
    return runs.map((each) => each.run).filter((run) => (among.has(run) ? on : chosen.has(run)));
  }

  function fill() {
    const names = found();
    list.replaceChildren(
      ...names.slice(0, MOST_LISTED).map((run) => {
        const dot = h("i", { class: "dot", "aria-hidden": "true" });
        dot.style.background = runColour(run, runs);
        const box = h("input", { type: "checkbox", "data-run": run });
        box.checked = chosen.has(run);
        box.addEventListener("change", () => {
          if (box.checked) chosen.add(run);
          else chosen.delete(run);
          app.overview.choose(runs.map((each) => each.run).filter((each) => chosen.has(each)));
        });
        return h("label", {}, box, dot, h("span", { text: runText(run) }));
      }),
    );
    say(
      note,
      names.length > MOST_LISTED ? `${names.length - MOST_LISTED} more: search for them` : "",
    );
  }

  /** @param {import("../app.js").Model} model @param {readonly string[]} names chosen runs */
  function draw(model, names) {
    const now = new Set(names);
    const same = now.size === chosen.size && names.every((run) => chosen.has(run));
    const listed = runs.length === model.runs.length;
    runs = model.runs;
    chosen = now;
    show(element, runs.length > 1);
    const most = names.length === MOST_RUNS ? ", the most" : "";
    say(summary, `Runs: ${names.length} of ${runs.length}${most}`);
    if (!element.open) return;
    if (!listed) fill();
    else if (!same) {
      for (const box of list.querySelectorAll("input")) {
        box.checked = chosen.has(box.dataset.run ?? "");
      }
    }
  }

  function focus() {
    if (runs.length < 2) return;
    element.open = true;
    search.focus();
  }

  /** @returns {boolean} false if it was closed already */
  function close() {
    const was = element.open;
    element.open = false;
    if (was) summary.focus();
    return was;
  }
  return { element, draw, focus, close };
}
