// @ts-check
/** The list of layers, each with a badge and a small strip that show its state. */

import { counted } from "../draw/number_text.js";
import { callText } from "../state/call_names.js";
import { h, icon, say, segments, show } from "./dom.js";
import { explain } from "./glossary.js";
import { health, severity } from "./health_strip.js";
import { createStrip, createStripHead } from "./layer_strip.js";
import { createRowWindow } from "./row_window.js";
import { kernelRows, matches, networkRows, places, unfolded } from "./tree.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("./tree.js").Row} Row */
/** @typedef {Map<string, import("./health_strip.js").Overview>} Overviews by key of the layer */
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
  const grouping = segments(
    "Order of layers",
    [
      ["network", "Network", "in network order"],
      ["kernel", "Kernel", "grouped by kernel shape"],
    ],
    (group) => app.update({ group }),
  );
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
    h(
      "div",
      { class: "layers-head" },
      filter,
      h("div", { class: "row" }, grouping.element, onlyFlagged),
    ),
    createStripHead(),
    note,
    list,
  );
  /** @type {Set<string>} */
  const folded = new Set();
  /** All rows, and the place of each among its siblings. @type {Row[]} */
  let rows = [];
  /** @type {import("./tree.js").Place[]} */
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
    grouping.draw(state.group);
    age(model);
    const flagged = flaggedOf(model.layers, overview);
    say(onlyFlagged, `${flagged.length} flagged`);
    onlyFlagged.setAttribute("aria-pressed", String(state.flagged));
    onlyFlagged.classList.toggle("any", flagged.length > 0);
    const none = state.flagged && overview.size > 0 && !flagged.length;
    const among = state.flagged && flagged.length ? flagged : model.layers;
    const areOthers = renew([among, state.run, state.group, state.filter], among, state);
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
   * @param {unknown[]} now @param {import("../data/answers.js").Layer[]} among
   * @param {import("../state/state.js").State} state
   */
  function renew(now, among, { run, group, filter: words }) {
    if (now.every((each, i) => each === before[i]) && before.length) return false;
    before = now;
    const found = among.filter((layer) => matches(layer, words));
    const all = group === "kernel" ? kernelRows(found) : networkRows(found);
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

/** @typedef {import("../data/answers.js").Layer} Layer */

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
 * @param {import("./tree.js").Place} place @returns {Drawn}
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
 * @param {import("../data/answers.js").Layer} layer @param {Overviews} overview
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
