// @ts-check
/** A run's name, which is cut in the middle where it is too long, and lists of runs. */

import { parted, search } from "../model/compare.js";
import { MOST_RUNS } from "../model/front.js";
import { runText } from "../model/words.js";
import { within } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { Icon, typed, usePopover } from "./controls.js";

/** @import {Chosen, Offer} from "./view.js" */

/** Length of the end of a name that is always shown. */
const END = 22;

/** @param {{run: string, colour?: string}} props that of its lines, if lines are drawn */
export function RunName({ run, colour }) {
  const [head, tail] = parted(runText(run), END);
  return html`
    <span class="run-name" title=${runText(run)}>
      ${colour && html`<i class="dot" aria-hidden="true" style=${{ background: colour }} />`}
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

/** @param {Offer} offer */
export function RunPicker(offer) {
  const { label, chosen, same, choose } = offer;
  const { isOpen, leave, around, opener } = usePopover();
  const id = useMemo(() => `runs-${(pickers += 1)}`, []);
  const chooseAndLeave = (/** @type {string} */ run) => {
    leave();
    choose(run);
  };
  const name = chosen || (same ?? "");
  return html`
    <span class="run-picker" ...${around}>
      <button type="button" class="picker" aria-label=${`${label}: ${runText(name)}`}
        aria-haspopup="listbox" ...${opener}>
        <${RunName} run=${name} /><${Icon} name="open" />
      </button>
      ${isOpen && html`<${Panel} ...${offer} id=${id} choose=${chooseAndLeave} leave=${leave} />`}
    </span>
  `;
}

/** The field to search in and the list. @param {Offer & {id: string, leave: () => void}} props */
function Panel({ id, label, runs, chosen, stateOf, same, choose, leave }) {
  const [words, setWords] = useState("");
  const matching = search(runs, words);
  const found = [...(same && !words ? [""] : []), ...matching].slice(0, MOST);
  const inList = (/** @type {number} */ i) => within(i, found.length);
  const [asked, setAsked] = useState(() => found.indexOf(chosen));
  const at = inList(asked);
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const field = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  const show = () => list.current?.children[at]?.scrollIntoView({ block: "nearest" });
  useLayoutEffect(show, [at, words]);

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (event.key in MOVES) setAsked((now) => inList(inList(now) + MOVES[event.key]));
    else if (event.key === "Enter") found.slice(at, at + 1).forEach(choose);
    else if (event.key === "Escape") leave();
    else return; // text, or Tab
    event.preventDefault();
    event.stopPropagation(); // the page has keys of its own
  }
  const find = (/** @type {string} */ text) => {
    setWords(text);
    setAsked(0);
  };
  const { length: count } = matching;
  const note =
    count > MOST
      ? `${count} runs; the first ${MOST} are listed`
      : `${count} of ${runs.length} runs`;
  /** Leaves the focus in the text field, which would else close the list. @param {Event} event */
  const keepFocus = (event) => event.preventDefault();
  return html`
    <div class="picker-panel">
      <input type="search" role="combobox" placeholder="words of the name"
        aria-label=${`${label}: search`} aria-controls=${id} aria-expanded="true"
        aria-autocomplete="list" aria-activedescendant=${found.length ? `${id}-${at}` : null}
        ref=${field} onInput=${typed(find)} onKeyDown=${key} />
      <p class="note" role="status">${note}</p>
      <ul id=${id} role="listbox" aria-label=${label} ref=${list} onMouseDown=${keepFocus}>
        ${found.map(
          (run, i) => html`
            <li key=${run} id=${`${id}-${i}`} role="option" aria-selected=${String(i === at)}
              onClick=${() => choose(run)}>
              <${RunName} run=${run || (same ?? "")} />
              <span class="said">${stateOf?.(run)}</span>
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

/** `isChosen`: by the user. @param {Chosen & {isChosen: boolean}} props */
export function RunChooser({ runs, chosen, isChosen, choose }) {
  const { isOpen, around, opener } = usePopover();
  if (runs.length < 2) return null;
  const most = chosen.length === MOST_RUNS ? ", the most" : "";
  return html`
    <span class="run-chooser" ...${around}>
      <button type="button" title="Choose the runs whose findings are listed (/)" ...${opener}>
        <span>${isChosen ? `Runs: ${chosen.length} of ${runs.length}${most}` : "Runs"}</span>
        <${Icon} name="open" />
      </button>
      ${isOpen && html`<${RunBoxes} ...${{ runs, chosen, choose }} />`}
    </span>
  `;
}

/** @param {Chosen} props */
function RunBoxes({ runs, chosen, choose }) {
  const [words, setWords] = useState("");
  const field = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  const names = runs.map(({ run }) => run);
  const found = search(names, words);
  const set = (/** @type {readonly string[]} */ among, /** @type {boolean} */ isOn) =>
    choose(names.filter((run) => (among.includes(run) ? isOn : chosen.includes(run))));
  const more = found.length - MOST_LISTED;
  return html`
    <div class="run-panel">
      <input type="search" placeholder="Search runs" aria-label="Search runs" spellcheck="false"
        ref=${field} onInput=${typed(setWords)} />
      <div class="row">
        <button type="button" onClick=${() => set(found, true)}>All found</button>
        <button type="button" onClick=${() => set(found, false)}>None of these</button>
      </div>
      <div class="run-list" role="group" aria-label="Runs">
        ${found.slice(0, MOST_LISTED).map(
          (run) => html`
            <label key=${run}>
              <input type="checkbox" checked=${chosen.includes(run)}
                onChange=${(/** @type {{currentTarget: HTMLInputElement}} */ { currentTarget }) =>
                  set([run], currentTarget.checked)} />
              <span>${runText(run)}</span>
            </label>
          `,
        )}
      </div>
      ${more > 0 && html`<p class="label">${more} more: search for them</p>`}
    </div>
  `;
}
