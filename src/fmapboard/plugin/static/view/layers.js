// @ts-check
/** The list of layers, each with a badge and a small strip that show its state. */

import { CODE, KINDS, SEVERE, isLarge } from "../model/health_states.js";
import { explanation } from "../model/terms.js";
import {
  callInGroup,
  callText,
  counted,
  deadWord,
  inWordsOf,
  kindOf,
  percent,
  short,
  tileText,
  typeText,
} from "../model/words.js";
import { once } from "../server/cache.js";
import { within } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { Icon, reveal, typed } from "./controls.js";

/** @import {App} from "../app.js" */
/** @import {Model} from "../model/model.js" */
/** @import {Layer, Maps, Overview} from "../server/server.js" */
/** @import {ChangeOf, LayerHealth, Named, Overviews, Place, Row, RowProps} from "./view.js" */

/** Height of a row and space above the first one, as in style.css, CSS px. */
const [HEIGHT, PADDING] = [23, 4];
/** Rows up to which all are in the document; of more, those in sight and just above and below. */
const ALL_UP_TO = 300;
/** Rows above and below those in sight, so that scrolling does not show gaps. */
const SPARE = 20;
/** The document changes when this many rows have been scrolled by. */
const STRIDE = 8;
const LARGEST = "The largest magnitude of the layer's values.";
const CHANGE =
  "How much the layer has changed since the logged step before; logarithmic, from 0.0001 to 1.";

/** The flagged ones of the layers, by the numbers that tell so. */
const flaggedOf = once((/** @type {Overviews} */ overview) =>
  once((/** @type {Layer[]} */ layers) =>
    layers.filter((layer) => severityIn(overview, layer) > 0),
  ),
);

/** @param {Overviews} overview @param {Layer} layer */
function severityIn(overview, layer) {
  const of = overview.get(layer.key);
  return of ? severity(of) : 0;
}

/**
 * @param {{app: App, model: Model, id: string, isShown: boolean, leave: (event: KeyboardEvent) =>
 *   void}} props
 */
export function Layers({ app, model, id, isShown, leave }) {
  const { state, overview, overviewIsOld: isOld } = model;
  /** Ids of the groups that are folded. */
  const [folded, setFolded] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const flagged = flaggedOf(overview)(model.layers);
  const among = state.flagged && flagged.length ? flagged : model.layers;
  const all = useMemo(
    () => networkRows(among.filter((layer) => matches(layer, state.filter))),
    [among, state.filter],
  );
  const rows = useMemo(() => unfolded(all, folded), [all, folded]);
  const field = useRef(/** @type {HTMLElement|null} */ (null));

  /** Selects a layer, or folds or unfolds a group. @param {Row} row */
  function act(row) {
    if (row.kind === "layer") return app.update({ layer: row.id });
    const others = [...folded].filter((group) => group !== row.id);
    setFolded(new Set(folded.has(row.id) ? others : [...others, row.id]));
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
    const to = layers[within(now + by, layers.length)];
    if (to) app.update({ layer: to.id }, "walk");
  }
  app.page.layers = { move, fold, search: () => field.current?.focus() };
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
  useLayoutEffect(() => {
    const sized = new ResizeObserver(() => app.redraw());
    if (list.current) sized.observe(list.current);
    return () => sized.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { current } = list;
    if (!current || selected < 0) return;
    const top = PADDING + selected * HEIGHT;
    reveal(current, "Top", top, top + HEIGHT);
    fit();
  }, [state.layer, state.run, rows.map(({ id }) => id).join("\n")]);
  const siblings = useMemo(() => places(rows), [rows]);
  const items = useMemo(
    () =>
      rows.slice(first, last).map((row, k) => {
        const [i, { at, of }] = [first + k, siblings[first + k]];
        const attributes = {
          ...{ role: "treeitem", id: `row-${i}`, style: { "--depth": String(row.depth) } },
          ...{ "aria-level": row.depth + 1, "aria-posinset": at, "aria-setsize": of },
          "aria-selected": String(i === selected),
          onClick: () => act(row),
        };
        const made = row.kind === "group" ? Group : Item;
        const isFolded = folded.has(row.id);
        return html`<${made} key=${`${row.kind} ${row.id}`}
          ...${{ row, overview, isFolded, attributes }} />`;
      }),
    [rows, siblings, first, last, overview, selected, folded],
  );
  const isUnmatched = model.layers.length > 0 && !count;
  const isNone = state.flagged && overview.size > 0 && !flagged.length;
  const old = isOld ? "The states are those of another step: loading" : null;
  const isListed = selected >= first && selected < last;
  const space = (/** @type {number} */ count) =>
    html`<i aria-hidden="true" style=${{ display: "block", height: `${count * HEIGHT}px` }} />`;
  return html`
    <nav class="layers" data-unit=${kindOf(model.stepWords)} aria-label="Layers"
      id=${id} hidden=${!isShown} onKeyDown=${leave}>
    <div class="layers-head">
      <input type="search" placeholder="Filter layers" aria-label="Filter layers"
        title="Filter layers by words of their name, type or kernel shape (/)" spellcheck="false"
        value=${state.filter} ref=${field} onInput=${typed(app.set("filter"))} />
      <button type="button" class="flagged"
        data-severity=${Math.max(0, ...flagged.map((layer) => severityIn(overview, layer)))}
        aria-pressed=${String(state.flagged)}
        onClick=${() => app.update({ flagged: !app.state.flagged })}
        ...${explanation("flagged", "Show only the flagged layers")}>
        ${flagged.length} flagged
      </button>
    </div>
    <div class="tree-head">
      <span>layer</span>
      <span class="strip-head">
        <span title=${LARGEST}>max |x|</span>
        <span class="moved" ...${explanation("change", CHANGE)}>change</span>
      </span>
    </div>
    <p class="note" role="status" hidden=${!isUnmatched && !isNone}>
      ${isUnmatched ? "No layer matches." : "No layer is flagged at this step: all are listed."}
    </p>
    <div class=${isOld ? "tree old" : "tree"} role="tree" aria-label="Layers" tabindex="0"
      title=${old} aria-activedescendant=${isListed ? `row-${selected}` : null}
      style=${{ overflowAnchor: "none" }} ref=${list} onScroll=${fit}>
      ${space(first)}${items}${space(count - last)}
    </div>
    </nav>
  `;
}

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

/** Characters at the end of a name that are always shown. */
const END = 7;

/** @param {RowProps} props */
function Item({ row, overview, attributes }) {
  const [layer] = row.layers;
  const of = overview.get(layer.key);
  const said = of ? health(of, layer) : null;
  const title = [
    callText(layer.label, layer.behind),
    `${typeText(layer)}, ${counted(layer.channels, tileText(layer))}`,
    ...(of && said ? [`step ${of.step}`, said.text] : []),
  ].join("\n");
  const { text } = row;
  const ends = html`<span>${text.slice(0, -END)}</span><span>${text.slice(-END)}</span>`;
  return html`
    <div class="layer" title=${title} data-layer=${layer.label}
      data-severity=${said?.severity ?? 0} ...${attributes}>
      <span class="name">${text.length > END ? ends : text}</span>
      <span class="badge" data-kind=${said?.kind ?? ""}>${said?.badge}</span>
      <span class="spoken">${said ? !said.badge && "fine" : "loading"}</span>
      ${of ? html`<${Strip} of=${of} />` : html`<span class="strip" role="img" />`}
    </div>
  `;
}

/** The largest magnitude and the change of a layer. @param {{of: Overview}} props */
function Strip({ of }) {
  const parts = strip(of);
  const width = { width: `${parts.change * 100}%` };
  const label = `range ${short(of.minimum)} … ${short(of.maximum)}`;
  return html`
    <span class="strip known" role="img" aria-label=${label}>
      <span class="peak">${short(parts.peak, 2)}</span>
      <b class="moved" data-state=${parts.changeState}
        title=${parts.changeState ? layerChange(of) : ""}>
        <i class="change" style=${width} />
      </b>
    </span>
  `;
}

// Says how much a layer or a channel has changed: of what, and since which step.

/** @param {ChangeOf} of @param {number} change */
function amount(of, change) {
  if (Number.isNaN(change)) return "non-finite";
  return of === "maps" ? `${short(change)} std` : `≈ ${short(change * 100, 2)} %`;
}

/** @param {Overview} layer */
export function layerChange(layer) {
  const { change, change_of: of, change_since: since, weights_unchanged_since: still } = layer;
  if (change === null || of === null) return "change: not recorded";
  const weights = still === null ? "" : `weights unchanged since step ${still}`;
  if (of === "weights" && weights) return weights;
  const text = `change of the ${of} since step ${since}: ${amount(of, change)}`;
  return weights ? `${text}; ${weights}` : text;
}

/** @param {Maps} maps @param {string} role @param {number} channel */
export function channelChange({ arrays, header }, role, channel) {
  const names = role === "feature_maps" ? [role, "weights"] : [role];
  const name = names.find((each) => arrays[`${each}.change`] && header.change_since);
  const since = name && header.change_since?.[name];
  if (!name || since === undefined) return "not recorded";
  const values = arrays[`${name}.change`]?.values ?? [];
  const of = name === "weights" ? "weights" : "maps";
  const whose = of === "weights" && values.length === 1 ? "the layer's weights" : `the ${of}`;
  const change = values[values.length === 1 ? 0 : channel];
  const comma = Number.isNaN(change) ? "," : "";
  return `${amount(of, change)}${comma} of ${whose} since step ${since}`;
}

// A layer's state and numbers: they are its badge and its strip in the list of layers.

/** The bar of the change is full at 1, and short at 10 to the power of minus this. */
const DECADES = 4;

/**
 * A layer's state in two words.
 * @param {Overview} of @param {boolean} follows an activation, whose dead channels these are
 */
export function fault(of, follows = true) {
  if (of.error) return { severity: 1, badge: "unreadable", kind: "unreadable" };
  const kind = KINDS[of.code] ?? null;
  const severity = of.code === CODE.NONFINITE ? 3 : of.code >= SEVERE ? 2 : kind ? 1 : 0;
  const share = (/** @type {number|null} */ count) =>
    percent((count ?? 0) / Math.max(1, of.channels));
  // A dead channel of an activation is constant too, which is not counted.
  const alone = (of.channels_constant ?? 0) - (follows ? 0 : (of.channels_dead ?? 0));
  const badges = {
    nonfinite: of.nan ? "NaN" : "Inf",
    large: of.channels_dead ? `large, ${share(of.channels_dead)} ${deadWord()}` : "large",
    dead: `${isLarge(of.code) ? "large, " : ""}${share(of.channels_dead)} ${deadWord()}`,
    constant: `${share(alone)} const`,
    unchanged: "no change",
  };
  const badge = kind ? badges[kind] : of.code === CODE.OFF ? badges.dead : "";
  return { severity, badge, kind: kind ?? "fine" };
}

/** @param {Overview} of @param {Layer|undefined} layer @returns {LayerHealth} */
export function health(of, layer = undefined) {
  const said = fault(of, !layer || layer.activation !== null);
  const after = layer?.activation ? ` after its activation ${callText(layer.activation)}` : "";
  if (of.error) return { ...said, text: of.error };
  const { nan, positive_infinity: positive, negative_infinity: negative } = of;
  if (nan === null || positive === null || negative === null) {
    return { ...said, text: "no statistics of feature maps were logged at this step" };
  }
  const bad = nan + positive + negative;
  const text = [
    Number.isNaN(of.minimum)
      ? "no finite value"
      : `range ${short(of.minimum)} … ${short(of.maximum)}, mean ${short(of.mean)}, std ` +
        `${short(of.std)}`,
    bad
      ? `${of.counted ? "" : "at least "}${nan} NaN, ${positive} +Inf, ${negative} −Inf ` +
        `in ${of.channels_nonfinite} of ${of.channels} channels`
      : "all values finite",
    of.dead_known
      ? `${of.channels_dead} of ${of.channels} channels ${deadWord()}${after}`
      : `${deadWord()} channels not known: no activation such as ReLU follows directly`,
    `${of.channels_constant} constant`,
    layerChange(of),
  ];
  return { ...said, text: inWordsOf(text.filter(Boolean).join("\n"), layer) };
}

/** Severity of the state of a layer. @param {Overview} of */
export function severity(of) {
  return fault(of).severity;
}

/**
 * The largest magnitude, and the change as a part of its bar, 0…1. `changeState` says why that is
 * empty although the layer may have changed.
 * @param {Overview} of
 */
export function strip(of) {
  const change = of.change ?? 0;
  return {
    peak: Math.max(Math.abs(of.minimum), Math.abs(of.maximum)),
    changeState: of.change === null ? "unknown" : Number.isFinite(change) ? "" : "nonfinite",
    change: change > 0 ? Math.min(1, Math.max(0.1, 1 + Math.log10(change) / DECADES)) : 0,
  };
}

// Rows of the list of layers: a tree in network order.

/** True if a layer has each word of the filter. @param {Layer} layer @param {string} filter */
export function matches(layer, filter) {
  const shape = layer.kernel_shape?.join("x") ?? layer.shape;
  const call = callText(layer.label, layer.behind);
  const hay = `${layer.name} ${layer.label} ${call} ${layer.type} ${shape}`.toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => hay.includes(word));
}

/** End of the name of a model before that of a layer. */
const OF_MODEL = ":";

/** Names of a group and of what is in it, in one. @param {string} group @param {string} name */
const inGroup = (group, name) => group + (group.endsWith(OF_MODEL) ? " " : ".") + name;

/** @param {Layer} layer */
function path(layer) {
  const parts = layer.label.split(".");
  const call = layer.call > 1 && parts.length > 1 ? parts.pop() : null;
  if (call) parts[parts.length - 1] += `.${call}`;
  return layer.name ? [layer.name + OF_MODEL, ...parts] : parts;
}

/**
 * Rows of a tree of names; a group with one child shares its row.
 * @param {Layer[]} layers in network order
 */
export function networkRows(layers) {
  /** @type {Row[]} */
  const rows = [];
  const named = layers.map((layer) => ({ layer, rest: path(layer) }));
  walk(named, "", "", "", 0, rows);
  return rows;
}

/** Numbered groups of at most this many layers have no row: their layers show the number. */
const SMALL = 8;
const isNumber = (/** @type {string} */ text) => /^\d+$/.test(text);

/**
 * Appends the rows of what is in a group.
 * @param {Named[]} all @param {string} id of the group @param {string} name last part of it
 * @param {string} prefix name of enclosing groups without a row @param {number} depth
 * @param {Row[]} rows
 */
function walk(all, id, name, prefix, depth, rows) {
  /** @type {Map<string, Named[]>} */
  const groups = new Map();
  for (const each of all) {
    if (!groups.has(each.rest[0])) groups.set(each.rest[0], []);
    groups.get(each.rest[0])?.push(each);
  }
  for (let inside of groups.values()) {
    let text = "";
    do {
      const [first] = inside[0].rest;
      text = text ? inGroup(text, first) : first;
      inside = inside.map(({ layer, rest }) => ({ layer, rest: rest.slice(1) }));
    } while (inside.every(({ rest }) => rest.length && rest[0] === inside[0].rest[0]));
    const own = id ? inGroup(id, text) : text;
    const group = prefix || (isNumber(text) ? name : "");
    const shown = group ? inGroup(group, text) : text;
    for (const { layer } of inside.filter(({ rest }) => !rest.length)) {
      const called = callInGroup(shown, layer);
      rows.push({ kind: "layer", id: layer.key, text: called, depth, layers: [layer] });
    }
    const below = inside.filter(({ rest }) => rest.length);
    if (!below.length) continue;
    if (isNumber(text) && depth > 0 && below.length <= SMALL) {
      walk(below, own, "", prefix ? shown : text, depth, rows);
      continue;
    }
    const title = shown.endsWith(OF_MODEL) ? shown.slice(0, -OF_MODEL.length) : shown;
    const layers = below.map(({ layer }) => layer);
    rows.push({ kind: "group", id: own, text: title, depth, layers });
    walk(below, own, isNumber(text) ? shown : (text.split(".").pop() ?? ""), "", depth + 1, rows);
  }
}

/**
 * Rows that are visible when some groups are folded.
 * @param {Row[]} rows @param {ReadonlySet<string>} folded
 */
export function unfolded(rows, folded) {
  let hiddenBelow = Infinity;
  return rows.filter((row) => {
    if (row.depth > hiddenBelow) return false;
    hiddenBelow = row.kind === "group" && folded.has(row.id) ? row.depth : Infinity;
    return true;
  });
}

/**
 * Places of rows among the children of the same group.
 * @param {readonly Row[]} rows
 * @returns {Place[]}
 */
export function places(rows) {
  /**
   * Number of siblings so far, by depth; shared by the places of all of them.
   * @type {{of: number}[]}
   */
  const open = [];
  const counted = rows.map(({ depth }) => {
    open.length = Math.min(open.length, depth + 1);
    const siblings = (open[depth] ??= { of: 0 });
    siblings.of += 1;
    return { at: siblings.of, siblings };
  });
  return counted.map(({ at, siblings }) => ({ at, of: siblings.of }));
}
