// @ts-check
/** The list of layers, each with a badge and a small strip that show its state. */

import { explanation } from "../model/terms.js";
import { callText, counted, short } from "../model/words.js";
import {
  html,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/preact_htm.js";
import { Icon } from "./controls.js";
import { h, mount } from "./dom.js";
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

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/answers.js").Layer} Layer */
/** @typedef {import("./layer_rows.js").Overview} Overview */
/** @typedef {import("./layer_rows.js").Row} Row */
/** @typedef {Map<string, Overview>} Overviews by key of the layer */

/** Height of a row and space above the first one, as in style.css, CSS px. */
const [HEIGHT, PADDING] = [23, 4];
/** Rows up to which all are in the document; of more, those in sight and just above and below. */
const ALL_UP_TO = 300;
/** Rows above and below those in sight, so that scrolling does not show gaps. */
const SPARE = 20;
/** The document changes when this many rows have been scrolled by. */
const STRIDE = 8;
/** Smallest part of a bar that is drawn if there is anything, percent. */
const LEAST = 8;

const RANGE =
  "Bar: from the smallest to the largest value. The scale is logarithmic, with lines at 0, ±1 and ±100, and ends at ±10 000. Number: the largest magnitude.";
const FAULTS = "Share of channels that are dead (orange), constant (cyan) or non-finite (magenta).";
const CHANGE =
  "How much the layer has changed since the logged step before. The scale is logarithmic, from 0.0001 to 1.";

/** @param {App} app */
export function createLayers(app) {
  const element = h("nav", { class: "layers", "aria-label": "Layers" });
  const list = mount(Layers, element);
  /** Ids of the groups that are folded. @type {ReadonlySet<string>} */
  let folded = new Set();
  /** @type {Row[]} */
  let all = [];
  /** Those of groups that are not folded. @type {Row[]} */
  let rows = [];
  /** What the rows were made from. @type {unknown[]} */
  let before = [];

  /** Selects a layer, or folds or unfolds a group. @param {Row} row */
  function act(row) {
    if (row.kind === "layer") {
      app.update({ layer: row.id });
      return;
    }
    folded = new Set(
      [...folded].filter((id) => id !== row.id).concat(folded.has(row.id) ? [] : row.id),
    );
    app.redraw();
  }

  /** Folds the innermost group of the selected layer, or unfolds it. */
  function fold() {
    const isAround = (/** @type {Row} */ { kind, layers }) =>
      kind === "group" && layers.some((layer) => layer.key === app.state.layer);
    const own = all.filter(isAround);
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

  /** @param {Model} model */
  function draw(model) {
    const { state, overview } = model;
    const flagged = flaggedOf(model.layers, overview);
    const among = state.flagged && flagged.length ? flagged : model.layers;
    const now = [among, state.filter, folded];
    if (now.some((each, i) => each !== before[i])) {
      before = now;
      all = networkRows(among.filter((layer) => matches(layer, state.filter)));
      rows = unfolded(all, folded);
    }
    list.draw({ app, model, rows, folded, act, flagged: flagged.length });
  }
  return { element, draw, move, fold, search: () => element.querySelector("input")?.focus() };
}

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
 * @param {{app: App, model: Model, rows: Row[], folded: ReadonlySet<string>,
 *   act: (row: Row) => void, flagged: number}} props `flagged` is a number of layers
 */
function Layers({ app, model, rows, folded, act, flagged }) {
  const { state, overview, overviewIsOld: isOld } = model;
  const list = useRef(/** @type {HTMLElement|null} */ (null));
  const [start, begin] = useState(0);
  const { length: count } = rows;
  const isWhole = count <= ALL_UP_TO;
  const inSight = Math.ceil((list.current?.clientHeight || 800) / HEIGHT) + 1;
  const first = isWhole ? 0 : Math.min(start, Math.max(0, count - 1));
  const last = isWhole ? count : Math.min(count, first + inSight + 2 * SPARE + STRIDE);
  const selected = rows.findIndex((row) => row.kind === "layer" && row.id === state.layer);

  /** Puts the rows in sight into the document. */
  function fit() {
    const top = Math.floor(((list.current?.scrollTop ?? 0) - PADDING) / HEIGHT);
    const wanted = Math.max(0, Math.min(top, count - inSight) - SPARE);
    begin(wanted - (wanted % STRIDE));
  }
  useEffect(() => {
    const sized = new ResizeObserver(() => app.redraw());
    if (list.current) sized.observe(list.current);
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current } = list;
    if (!current || selected < 0) return;
    const top = PADDING + selected * HEIGHT;
    const { scrollTop, clientHeight } = current;
    if (top < scrollTop) current.scrollTop = top;
    else if (top + HEIGHT > scrollTop + clientHeight)
      current.scrollTop = top + HEIGHT - clientHeight;
    fit();
  }, [state.layer, state.run, rows.map(({ id }) => id).join("\n")]);
  const siblings = useMemo(() => places(rows), [rows]);
  const items = useMemo(
    () =>
      rows.slice(first, last).map((row, k) => {
        const [i, { at, of }] = [first + k, siblings[first + k]];
        const isSelected = i === selected;
        const attributes = {
          role: "treeitem",
          id: `row-${i}`,
          style: { "--depth": String(row.depth) },
          "aria-level": row.depth + 1,
          "aria-posinset": at,
          "aria-setsize": of,
          "aria-selected": String(isSelected),
          onClick: () => act(row),
        };
        const made = row.kind === "group" ? Group : Item;
        const isFolded = folded.has(row.id);
        return html`<${made} key=${`${row.kind} ${row.id}`} ...${{ row, overview, isFolded, attributes }} />`;
      }),
    [rows, siblings, first, last, overview, selected, folded],
  );
  const isUnmatched = model.layers.length > 0 && !count;
  const isNone = state.flagged && overview.size > 0 && !flagged;
  const old = isOld ? "The states are those of another step: loading" : null;
  const isShown = selected >= first && selected < last;
  const space = (/** @type {number} */ rows) => ({
    display: "block",
    height: `${rows * HEIGHT}px`,
  });
  return html`
    <div class="layers-head">
      <input type="search" placeholder="Filter layers" aria-label="Filter layers"
        title="Filter layers by words of their name, type or kernel shape (/)" spellcheck="false"
        value=${state.filter}
        onInput=${(/** @type {{currentTarget: HTMLInputElement}} */ { currentTarget }) =>
          app.update({ filter: currentTarget.value })} />
      <button type="button" class=${flagged ? "flagged any" : "flagged"}
        aria-pressed=${String(state.flagged)}
        onClick=${() => app.update({ flagged: !app.state.flagged })}
        ...${explanation("flagged", "Show only the flagged layers")}>
        ${flagged} flagged
      </button>
    </div>
    <div class="tree-head">
      <span>layer</span>
      <span class="strip-head">
        <span class="span" ...${explanation("range", RANGE)}>range</span>
        <span class="share" ...${explanation("dead constant nonfinite", FAULTS)}>faults</span>
        <span class="moved" ...${explanation("change", CHANGE)}>change</span>
      </span>
    </div>
    <p class="note" role="status" hidden=${!isUnmatched && !isNone}>
      ${isUnmatched ? "No layer matches." : "No layer is flagged at this step: all are listed."}
    </p>
    <div class=${isOld ? "tree old" : "tree"} role="tree" aria-label="Layers" tabindex="0"
      title=${old} aria-activedescendant=${isShown ? `row-${selected}` : null}
      style=${{ overflowAnchor: "none" }} ref=${list} onScroll=${fit}>
      <i aria-hidden="true" style=${space(first)} />${items}<i aria-hidden="true" style=${space(count - last)} />
    </div>
  `;
}

/** @typedef {{row: Row, overview: Overviews, isFolded: boolean, attributes: object}} RowProps */

/** @param {RowProps} props */
function Group({ row, overview, isFolded, attributes }) {
  const worst = Math.max(0, ...row.layers.map((layer) => severityIn(overview, layer)));
  const title = `${row.id} · ${counted(row.layers.length, "layer")}`;
  return html`
    <div class="group" title=${title} aria-expanded=${String(!isFolded)} ...${attributes}>
      <${Icon} name=${isFolded ? "folded" : "open"} /><span class="name">${row.text}</span>
      <span class="sum" data-severity=${worst}>${row.layers.length}</span>
    </div>
  `;
}

/** @param {RowProps} props */
function Item({ row, overview, attributes }) {
  const [layer] = row.layers;
  const of = overview.get(layer.key);
  const said = of ? health(of, layer) : null;
  const shape = layer.kernel_shape ? ` ${layer.kernel_shape.join("×")}` : "";
  const title = [
    callText(layer.label, layer.behind),
    `${layer.type}${shape}, ${counted(layer.channels, "channel")}`,
    ...(of && said ? [`step ${of.step}`, said.text] : []),
  ].join("\n");
  return html`
    <div class="layer" title=${title} data-layer=${layer.label} data-severity=${said?.severity ?? 0} ...${attributes}>
      <span class="name">${row.text}</span>
      <span class="badge" data-kind=${said?.kind ?? ""}>${said?.badge}</span>
      <span class="spoken">${said ? !said.badge && "fine" : "loading"}</span>
      ${of ? html`<${Strip} of=${of} />` : html`<span class="strip" role="img" />`}
    </div>
  `;
}

/** The range, the faulty channels and the change of a layer. @param {{of: Overview}} props */
function Strip({ of }) {
  const parts = strip(of);
  const bar = (/** @type {string} */ name, /** @type {number} */ share) =>
    html`<i class=${name} style=${{ width: share > 0 ? `${Math.max(share * 100, LEAST)}%` : "0" }} />`;
  const width = Math.max(4, (parts.to - parts.from) * 100);
  const range = { left: `${parts.from * 100}%`, width: `${width}%` };
  const label = `range ${short(of.minimum)} … ${short(of.maximum)}`;
  return html`
    <span class="strip known" role="img" aria-label=${label}>
      <b class="span"><i class="range" style=${range} /></b>
      <span class="peak">${short(parts.peak, 2)}</span>
      <b class="share">
        ${bar("dead", parts.dead)}${bar("constant", parts.constant)}${bar("bad", parts.nonfinite)}
      </b>
      <b class="moved" data-state=${parts.changeState} title=${parts.changeState ? layerChange(of) : ""}>
        ${bar("change", parts.change)}
      </b>
    </span>
  `;
}
