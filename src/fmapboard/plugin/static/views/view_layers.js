// @ts-check
/** The list of layers, each with a badge and a small strip that show its state. */

import { h, icon, say, segments, show } from "./dom.js";
import { explain } from "./glossary.js";
import { health } from "./health_strip.js";
import { createStrip, createStripHead } from "./layer_strip.js";
import { kernelRows, matches, networkRows, unfolded } from "./tree.js";

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
    title: "Filter layers (/)",
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
  /** @type {Drawn[]} */
  let drawn = [];
  /** @type {Row[]} */
  let groups = [];
  let before = "";
  /** @type {Overviews|null} */
  let painted = null;

  list.addEventListener("click", (event) => {
    const row = /** @type {Element} */ (event.target).closest("[data-row]");
    if (row instanceof HTMLElement) act(drawn[Number(row.dataset.row)].row);
  });

  /** Selects a layer, or folds or unfolds a group. @param {Row} row */
  function act(row) {
    if (row.kind === "layer") {
      app.update({ layer: row.id });
      return;
    }
    if (!folded.delete(row.id)) folded.add(row.id);
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
    const rows = drawn.map(({ row }) => row).filter((row) => row.kind === "layer");
    const now = rows.findIndex((row) => row.id === app.state.layer);
    const to = rows[Math.min(rows.length - 1, Math.max(0, now + by))];
    if (to) app.update({ layer: to.id });
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
    const flagged = model.layers.filter((layer) => severity(overview, layer) > 0);
    say(onlyFlagged, `${flagged.length} flagged`);
    onlyFlagged.setAttribute("aria-pressed", String(state.flagged));
    onlyFlagged.classList.toggle("any", flagged.length > 0);
    const none = state.flagged && overview.size > 0 && !flagged.length;
    const among = (state.flagged && flagged.length ? flagged : model.layers).filter((layer) =>
      matches(layer, state.filter),
    );
    const all = state.group === "kernel" ? kernelRows(among) : networkRows(among);
    groups = all.filter((row) => row.kind === "group");
    const rows = unfolded(all, folded);
    const key = JSON.stringify([
      model.state.run,
      rows.map(({ id, depth, kind }) => [id, depth, kind]),
      [...folded],
    ]);
    if (key !== before) {
      before = key;
      drawn = rows.map((row, i) => createRow(row, i, folded.has(row.id)));
      list.replaceChildren(...drawn.map((each) => each.element));
      painted = null;
    }
    const unmatched = model.layers.length > 0 && rows.length === 0;
    say(
      note,
      unmatched ? "No layer matches." : "No layer is flagged at this step: all are listed.",
    );
    show(note, unmatched || none);
    if (painted !== overview) for (const each of drawn) each.paint(overview);
    painted = overview;
    mark(state.layer);
  }

  /** Marks the selected layer. @param {string} chosen */
  function mark(chosen) {
    for (const { row, element: each } of drawn) {
      const is = row.kind === "layer" && row.id === chosen;
      if ((each.getAttribute("aria-selected") === "true") === is) continue;
      each.setAttribute("aria-selected", String(is));
      if (is) {
        list.setAttribute("aria-activedescendant", each.id);
        each.scrollIntoView({ block: "nearest" });
      }
    }
  }
  return { element, list, filter, age, draw, move, fold };
}

/** @param {Overviews} overview @param {import("../data/answers.js").Layer} layer */
function severity(overview, layer) {
  const of = overview.get(layer.key);
  return of ? health(of, layer).severity : 0;
}

/** @param {Row} row @param {number} index @param {boolean} isFolded @returns {Drawn} */
function createRow(row, index, isFolded) {
  const text = h("span", { class: "name", text: row.text });
  const element = h(
    "div",
    {
      class: row.kind,
      role: "treeitem",
      id: `row-${index}`,
      "data-row": index,
      "aria-level": row.depth + 1,
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
    element.title = `${row.id} · ${row.layers.length} layers`;
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
  const worst = Math.max(0, ...row.layers.map((layer) => severity(overview, layer)));
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
  const title = `${layer.label}\n${layer.type}${shape}, ${layer.channels} channels`;
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
