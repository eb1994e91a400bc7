// @ts-check
/** A searchable list of runs, opened by a button; made for hundreds of runs with long names. */

import { search } from "../state/run_search.js";
import { runText } from "../state/run_text.js";
import {
  html,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/preact_htm.js";
import { RunName } from "./run_name.js";

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
  const matching = search(runs, words);
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
