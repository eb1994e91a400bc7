// @ts-check
/** Rows of the list of layers: a tree in network order, or groups of one kernel shape. */

import { callInGroup, callText } from "../state/call_names.js";

/** @typedef {import("../data/answers.js").Layer} Layer */

/**
 * @typedef {object} Row
 * @property {"group"|"layer"} kind
 * @property {string} id
 * @property {string} text
 * @property {number} depth from 0
 * @property {Layer[]} layers of the group; one for a layer
 */

/**
 * True if each word of the filter is in the layer's name, type or kernel shape.
 * @param {Layer} layer @param {string} filter
 */
export function matches(layer, filter) {
  const shape = layer.kernel_shape ? layer.kernel_shape.join("x") : "";
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

/** @typedef {{children: Map<string, Node>, layers: Layer[]}} Node */

/** @returns {Node} */
const node = () => ({ children: new Map(), layers: [] });

/**
 * Rows of a tree of names split at dots; a group with a single child shares its row.
 * @param {Layer[]} layers in network order @returns {Row[]}
 */
export function networkRows(layers) {
  const root = node();
  for (const layer of layers) {
    let at = root;
    for (const part of path(layer)) {
      let next = at.children.get(part);
      if (!next) at.children.set(part, (next = node()));
      at = next;
    }
    at.layers.push(layer);
  }
  /** @type {Row[]} */
  const rows = [];
  walk(root, "", "", "", 0, rows);
  return rows;
}

/** @param {Node} of @returns {Layer[]} */
function below(of) {
  return [...of.layers, ...[...of.children.values()].flatMap(below)];
}

/** Numbered groups of at most this many layers have no row: their layers show the number. */
const SMALL = 8;
const isNumber = (/** @type {string} */ text) => /^\d+$/.test(text);

/**
 * Appends the rows below a node.
 * @param {Node} of @param {string} id @param {string} name last part of the enclosing group's name
 * @param {string} prefix name of enclosing groups without a row
 * @param {number} depth @param {Row[]} rows
 */
function walk(of, id, name, prefix, depth, rows) {
  for (const [part, start] of of.children) {
    const { text, child } = only(part, start);
    const own = id ? inGroup(id, text) : text;
    const group = prefix || (isNumber(text) ? name : "");
    const shown = group ? inGroup(group, text) : text;
    for (const layer of child.layers) {
      const text = callInGroup(shown, layer);
      rows.push({ kind: "layer", id: layer.key, text, depth, layers: [layer] });
    }
    if (!child.children.size) continue;
    const inside = [...child.children.values()].flatMap(below);
    if (isNumber(text) && depth > 0 && inside.length <= SMALL) {
      walk(child, own, "", prefix ? shown : text, depth, rows);
      continue;
    }
    const title = shown.endsWith(OF_MODEL) ? shown.slice(0, -OF_MODEL.length) : shown;
    rows.push({ kind: "group", id: own, text: title, depth, layers: inside });
    walk(child, own, isNumber(text) ? shown : (text.split(".").pop() ?? ""), "", depth + 1, rows);
  }
}

/**
 * Merges a node with its descendants as long as it has a single child.
 * @param {string} text @param {Node} child
 */
function only(text, child) {
  while (!child.layers.length && child.children.size === 1) {
    const [[more, next]] = child.children;
    text = inGroup(text, more);
    child = next;
  }
  return { text, child };
}

/**
 * Rows of layers grouped by kernel shape (or type), in the order of their first layers.
 * @param {Layer[]} layers @returns {Row[]}
 */
export function kernelRows(layers) {
  /** @type {Map<string, Layer[]>} */
  const groups = new Map();
  for (const layer of layers) {
    const shape = layer.kernel_shape ? layer.kernel_shape.join("×") : layer.type;
    const group = groups.get(shape);
    if (group) group.push(layer);
    else groups.set(shape, [layer]);
  }
  return [...groups].flatMap(([shape, inside]) => [
    /** @type {Row} */ ({ kind: "group", id: shape, text: shape, depth: 0, layers: inside }),
    ...inside.map(
      (layer) =>
        /** @type {Row} */ ({
          kind: "layer",
          id: layer.key,
          depth: 1,
          layers: [layer],
          text: `${layer.name ? `${layer.name}.` : ""}${callText(layer.label, layer.behind)}`,
        }),
    ),
  ]);
}

/**
 * Rows that are visible when some groups are folded.
 * @param {Row[]} rows @param {ReadonlySet<string>} folded ids of groups
 */
export function unfolded(rows, folded) {
  let hiddenBelow = Infinity;
  return rows.filter((row) => {
    if (row.depth > hiddenBelow) return false;
    hiddenBelow = row.kind === "group" && folded.has(row.id) ? row.depth : Infinity;
    return true;
  });
}

/** @typedef {{at: number, of: number}} Place place of a row among its siblings, from 1 */

/** Places of rows among the children of the same group. @param {readonly Row[]} rows @returns {Place[]} */
export function places(rows) {
  /** Number of siblings so far, by depth; shared by the places of all of them. @type {{of: number}[]} */
  const open = [];
  const counted = rows.map(({ depth }) => {
    open.length = Math.min(open.length, depth + 1);
    const siblings = (open[depth] ??= { of: 0 });
    siblings.of += 1;
    return { at: siblings.of, siblings };
  });
  return counted.map(({ at, siblings }) => ({ at, of: siblings.of }));
}
