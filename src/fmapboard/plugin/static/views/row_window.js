// @ts-check
/** Of a long list, keeps only the rows in sight in the document, and those just above and below. */

import { h } from "./dom.js";

/** Height of a row and space above the first one, as in style.css, CSS px. */
const [HEIGHT, PADDING] = [23, 4];
/** Rows up to which all are in the document. */
const ALL_UP_TO = 300;
/** Rows above and below those in sight, so that scrolling does not show gaps. */
const SPARE = 20;
/** The document changes when this many rows have been scrolled by. */
const STRIDE = 8;

/**
 * @template {{element: HTMLElement}} T
 * @param {HTMLElement} list scrolls; has rows of equal height
 * @param {(index: number) => T} make creates a row
 * @param {() => void} changed called after other rows have come into the document
 */
export function createRowWindow(list, make, changed) {
  let count = 0;
  const [above, below] = [space(), space()];
  /** Rows in the document by index, ascending. @type {Map<number, T>} */
  let drawn = new Map();

  /** Puts the rows in sight into the document. @param {boolean} isNew all are created anew */
  function fit(isNew = false) {
    const isWhole = count <= ALL_UP_TO;
    const top = Math.floor((list.scrollTop - PADDING) / HEIGHT);
    const inSight = Math.ceil(list.clientHeight / HEIGHT) + 1;
    const wanted = Math.max(0, Math.min(top, count - inSight) - SPARE);
    const first = isWhole ? 0 : wanted - (wanted % STRIDE);
    const last = isWhole ? count : Math.min(count, first + inSight + 2 * SPARE + STRIDE);
    if (!isNew && drawn.size === last - first && (!drawn.size || drawn.has(first))) return;
    /** @type {Map<number, T>} */
    const next = new Map();
    for (let i = first; i < last; i += 1) {
      next.set(i, (isNew ? undefined : drawn.get(i)) ?? make(i));
    }
    drawn = next;
    above.style.height = `${first * HEIGHT}px`;
    below.style.height = `${(count - last) * HEIGHT}px`;
    list.replaceChildren(above, ...[...next.values()].map((each) => each.element), below);
    changed();
  }

  list.style.overflowAnchor = "none";
  list.addEventListener("scroll", () => fit());
  new ResizeObserver(() => fit()).observe(list);

  return {
    /** @param {number} index @returns {T|undefined} undefined if it is not in the document */
    at: (index) => drawn.get(index),
    rows: () => drawn.values(),
    /** Creates all rows anew. @param {number} rows */
    reset(rows) {
      count = rows;
      fit(true);
    },
    /** Scrolls as little as possible to show a row. @param {number} index */
    reveal(index) {
      const start = PADDING + index * HEIGHT;
      const { scrollTop, clientHeight } = list;
      if (start < scrollTop) list.scrollTop = start;
      else if (start + HEIGHT > scrollTop + clientHeight) {
        list.scrollTop = start + HEIGHT - clientHeight;
      }
      fit();
    },
  };
}

/** Takes the place of rows that are not in the document. */
function space() {
  const made = h("i", { "aria-hidden": "true" });
  made.style.display = "block";
  return made;
}
