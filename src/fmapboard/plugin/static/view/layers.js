// @ts-check
/** Of a long list, keeps only the rows in sight in the document, and those just above and below. */

import { callText, counted, short } from "../model/words.js";
import { explain, h, icon, say, show } from "./dom.js";
import {
  health,
  layerChange,
  matches,
  networkRows,
  places,
  severity,
  strip,
  unfolded,
} from "./layer_rows.js";

// Of a long list, keeps only the rows in sight in the document, and those just above and below.

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

// The strip of a layer in the list: its range, its faulty channels and its change, with a header.

const RANGE =
  "Bar: from the smallest to the largest value. The scale is logarithmic, with lines at 0, ±1 and ±100, and ends at ±10 000. Number: the largest magnitude.";
const FAULTS = "Share of channels that are dead (orange), constant (cyan) or non-finite (magenta).";
const CHANGE =
  "How much the layer has changed since the logged step before. The scale is logarithmic, from 0.0001 to 1.";

/** Smallest part of a bar that is drawn if there is anything, percent. */
const LEAST = 8;

/** The header over the strips of the list. */
export function createStripHead() {
  const head = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("span", { class: name, text });
  return h(
    "div",
    { class: "tree-head" },
    h("span", { text: "layer" }),
    h(
      "span",
      { class: "strip-head" },
      explain(head("span", "range"), "range", RANGE),
      explain(head("share", "faults"), "dead constant nonfinite", FAULTS),
      explain(head("moved", "change"), "change", CHANGE),
    ),
  );
}

export function createStrip() {
  const bar = (/** @type {string} */ name) => h("i", { class: name });
  const range = bar("range");
  const peak = h("span", { class: "peak" });
  const [dead, constant, bad, change] = ["dead", "constant", "bad", "change"].map(bar);
  const moved = h("b", { class: "moved" }, change);
  const element = h(
    "span",
    { class: "strip", role: "img" },
    h("b", { class: "span" }, range),
    peak,
    h("b", { class: "share" }, dead, constant, bad),
    moved,
  );

  /** @param {import("./layer_rows.js").Overview|undefined} of */
  function draw(of) {
    element.classList.toggle("known", Boolean(of));
    if (!of) return;
    const parts = strip(of);
    range.style.left = `${parts.from * 100}%`;
    range.style.width = `${Math.max(4, (parts.to - parts.from) * 100)}%`;
    say(peak, short(parts.peak, 2));
    element.setAttribute("aria-label", `range ${short(of.minimum)} … ${short(of.maximum)}`);
    const size = (/** @type {HTMLElement} */ part, /** @type {number} */ share) => {
      part.style.width = share > 0 ? `${Math.max(share * 100, LEAST)}%` : "0";
    };
    size(dead, parts.dead);
    size(constant, parts.constant);
    size(bad, parts.nonfinite);
    size(change, parts.change);
    moved.dataset.state = parts.changeState;
    moved.title = parts.changeState ? layerChange(of) : "";
  }
  return { element, draw };
}

// The list of layers, each with a badge and a small strip that show its state.

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("./layer_rows.js").Row} Row */
/** @typedef {Map<string, import("./layer_rows.js").Overview>} Overviews by key of the layer */
/** @typedef {{row: Row, element: HTMLElement, paint: (overview: Overviews) => void}} Drawn */

/** @param {App} app */
export function createLayers(app) {
  /** @type {HTMLInputElement} */
  const filter = h("input", {
    type: "search",
    placeholder: "Filter layers",
    "aria-label": "Filter layers",
    title: "Filter layers by words of their name, type or kernel shape (/)",
    spellcheck: "false",
    on: { input: () => app.update({ filter: filter.value }) },
  });
  const onlyFlagged = h("button", {
    type: "button",
    class: "flagged",
    on: { click: () => app.update({ flagged: !app.state.flagged }) },
  });
  explain(onlyFlagged, "flagged", "Show only the flagged layers");
  const list = h("div", { class: "tree", role: "tree", "aria-label": "Layers", tabindex: "0" });
  const note = h("p", { class: "note", role: "status" });
  const element = h(
    "nav",
    { class: "layers", "aria-label": "Layers" },
    h("div", { class: "layers-head" }, filter, onlyFlagged),
    createStripHead(),
    note,
    list,
  );
  /** @type {Set<string>} */
  const folded = new Set();
  /** All rows, and the place of each among its siblings. @type {Row[]} */
  let rows = [];
  /** @type {import("./layer_rows.js").Place[]} */
  let siblings = [];
  /** @type {Row[]} */
  let groups = [];
  /** What the rows were made from. @type {unknown[]} */
  let before = [];
  let made = "";
  /** @type {Overviews} */
  let painted = new Map();
  /** Index of the selected row, -1 for none. */
  let selected = -1;
  const inSight = createRowWindow(
    list,
    (index) => {
      const row = createRow(rows[index], index, folded.has(rows[index].id), siblings[index]);
      row.paint(painted);
      row.element.setAttribute("aria-selected", String(index === selected));
      return row;
    },
    nameSelected,
  );

  list.addEventListener("click", (event) => {
    const row = /** @type {Element} */ (event.target).closest("[data-row]");
    if (row instanceof HTMLElement) act(rows[Number(row.dataset.row)]);
  });

  /** Selects a layer, or folds or unfolds a group. @param {Row} row */
  function act(row) {
    if (row.kind === "layer") {
      app.update({ layer: row.id });
      return;
    }
    if (!folded.delete(row.id)) folded.add(row.id);
    before = [];
    app.redraw();
  }

  /** Folds the innermost group of the selected layer, or unfolds it. */
  function fold() {
    const own = groups.filter((row) => row.layers.some((layer) => layer.key === app.state.layer));
    const group = own.find((row) => folded.has(row.id)) ?? own[own.length - 1];
    if (group) act(group);
  }

  /** Selects a layer that is `by` rows away. @param {number} by */
  function move(by) {
    const layers = rows.filter((row) => row.kind === "layer");
    const now = layers.findIndex((row) => row.id === app.state.layer);
    const to = layers[Math.min(layers.length - 1, Math.max(0, now + by))];
    if (to) app.update({ layer: to.id }, "walk");
  }

  /** Fades states that are still of another step. @param {Model} model */
  function age({ overviewIsOld }) {
    list.classList.toggle("old", overviewIsOld);
    list.title = overviewIsOld ? "The states are those of another step: loading" : "";
  }

  /** @param {Model} model */
  function draw(model) {
    const { state, overview } = model;
    if (document.activeElement !== filter && filter.value !== state.filter) {
      filter.value = state.filter;
    }
    age(model);
    const flagged = flaggedOf(model.layers, overview);
    say(onlyFlagged, `${flagged.length} flagged`);
    onlyFlagged.setAttribute("aria-pressed", String(state.flagged));
    onlyFlagged.classList.toggle("any", flagged.length > 0);
    const none = state.flagged && overview.size > 0 && !flagged.length;
    const among = state.flagged && flagged.length ? flagged : model.layers;
    const areOthers = renew([among, state.run, state.filter], among, state);
    const unmatched = model.layers.length > 0 && rows.length === 0;
    say(
      note,
      unmatched ? "No layer matches." : "No layer is flagged at this step: all are listed.",
    );
    show(note, unmatched || none);
    if (painted !== overview) {
      painted = overview;
      for (const each of inSight.rows()) each.paint(overview);
    }
    mark(state.layer, areOthers);
  }

  /**
   * Makes the rows again if what they are made from has changed; true if they are others.
   * @param {unknown[]} now @param {import("../server/answers.js").Layer[]} among
   * @param {import("../model/state.js").State} state
   */
  function renew(now, among, { run, filter: words }) {
    if (now.every((each, i) => each === before[i]) && before.length) return false;
    before = now;
    const found = among.filter((layer) => matches(layer, words));
    const all = networkRows(found);
    groups = all.filter((row) => row.kind === "group");
    const shown = unfolded(all, folded);
    const key = JSON.stringify([
      run,
      shown.map(({ id, depth, kind }) => [id, depth, kind]),
      [...folded],
    ]);
    if (key === made) return false;
    made = key;
    rows = shown;
    siblings = places(rows);
    selected = -1;
    inSight.reset(rows.length);
    return true;
  }

  /** Marks the selected layer, and shows it if it is another one. @param {string} chosen @param {boolean} areOthers */
  function mark(chosen, areOthers) {
    if (!areOthers && rows[selected]?.id === chosen) return;
    const last = inSight.at(selected);
    selected = rows.findIndex((row) => row.kind === "layer" && row.id === chosen);
    last?.element.setAttribute("aria-selected", "false");
    if (selected < 0) return;
    inSight.at(selected)?.element.setAttribute("aria-selected", "true");
    inSight.reveal(selected);
    nameSelected();
  }

  /** Names the selected row as the active one, while it is in the document. */
  function nameSelected() {
    const row = inSight.at(selected);
    if (row) list.setAttribute("aria-activedescendant", row.element.id);
    else list.removeAttribute("aria-activedescendant");
  }
  return { element, list, filter, age, draw, move, fold };
}

/** @typedef {import("../server/answers.js").Layer} Layer */

/** Flagged layers by the numbers that tell so. @type {WeakMap<Overviews, {of: Layer[], flagged: Layer[]}>} */
const known = new WeakMap();

/** @param {Layer[]} layers @param {Overviews} overview */
function flaggedOf(layers, overview) {
  const held = known.get(overview);
  if (held?.of === layers) return held.flagged;
  const flagged = layers.filter((layer) => severityIn(overview, layer) > 0);
  known.set(overview, { of: layers, flagged });
  return flagged;
}

/** @param {Overviews} overview @param {Layer} layer */
function severityIn(overview, layer) {
  const of = overview.get(layer.key);
  return of ? severity(of) : 0;
}

/**
 * @param {Row} row @param {number} index @param {boolean} isFolded
 * @param {import("./layer_rows.js").Place} place @returns {Drawn}
 */
function createRow(row, index, isFolded, place) {
  const text = h("span", { class: "name", text: row.text });
  const element = h(
    "div",
    {
      class: row.kind,
      role: "treeitem",
      id: `row-${index}`,
      "data-row": index,
      "aria-level": row.depth + 1,
      "aria-posinset": place.at,
      "aria-setsize": place.of,
      "aria-selected": "false",
      "aria-expanded": row.kind === "group" ? String(!isFolded) : null,
    },
    text,
  );
  element.style.setProperty("--depth", String(row.depth));
  if (row.kind === "group") {
    element.prepend(icon(isFolded ? "folded" : "open"));
    const sum = h("span", { class: "sum" });
    element.append(sum);
    element.title = `${row.id} · ${counted(row.layers.length, "layer")}`;
    return { row, element, paint: (overview) => paintGroup(sum, row, overview) };
  }
  const badge = h("span", { class: "badge" });
  const spoken = h("span", { class: "spoken" });
  const bar = createStrip();
  element.append(badge, spoken, bar.element);
  return {
    row,
    element,
    paint: (overview) => paintLayer(element, { badge, spoken, bar }, row.layers[0], overview),
  };
}

/** @param {HTMLElement} sum @param {Row} row @param {Overviews} overview */
function paintGroup(sum, row, overview) {
  const worst = Math.max(0, ...row.layers.map((layer) => severityIn(overview, layer)));
  sum.dataset.severity = String(worst);
  say(sum, String(row.layers.length));
}

/**
 * @param {HTMLElement} element
 * @param {{badge: HTMLElement, spoken: HTMLElement, bar: ReturnType<typeof createStrip>}} parts
 * @param {import("../server/answers.js").Layer} layer @param {Overviews} overview
 */
function paintLayer(element, { badge, spoken, bar }, layer, overview) {
  const shape = layer.kernel_shape ? ` ${layer.kernel_shape.join("×")}` : "";
  const title = `${callText(layer.label, layer.behind)}\n${layer.type}${shape}, ${counted(layer.channels, "channel")}`;
  const of = overview.get(layer.key);
  const said = of ? health(of, layer) : null;
  element.title = said && of ? `${title}\nstep ${of.step}\n${said.text}` : title;
  element.dataset.layer = layer.label;
  element.dataset.severity = String(said?.severity ?? 0);
  badge.dataset.kind = said?.kind ?? "";
  say(badge, said?.badge ?? "");
  say(spoken, said ? (said.badge ? "" : "fine") : "loading");
  bar.draw(of);
}
