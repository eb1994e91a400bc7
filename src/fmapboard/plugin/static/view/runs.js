// @ts-check
/** A run's name, which is cut in the middle where it is too long, and lists of runs. */

import { parted, search } from "../model/compare.js";
import { runText } from "../model/words.js";
import { within } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { Icon, typed, usePopover } from "./controls.js";

/** @import {Offer} from "./view.js" */

/** Length of the end of a name that is always shown. */
const END = 22;

/** @param {{run: string}} props */
export function RunName({ run }) {
  const [head, tail] = parted(runText(run), END);
  return html`
    <span class="run-name" title=${runText(run)}>
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
