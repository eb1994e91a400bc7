// @ts-check
/** Says how much a layer or a channel has changed: of what, and since which step. */

import { short } from "../draw/number_text.js";

/** @typedef {"maps"|"weights"} ChangeOf */

/** @param {ChangeOf} of @param {number} change */
function amount(of, change) {
  if (Number.isNaN(change)) return "non-finite";
  return of === "maps" ? `${short(change)} std` : `${short(change * 100)} %`;
}

/** @param {import("./health_strip.js").Overview} layer */
export function layerChange(layer) {
  const { change, change_of: of, change_since: since, weights_unchanged_since: still } = layer;
  if (change === null || of === null) return "change: not recorded";
  const weights = still === null ? "" : `weights unchanged since step ${still}`;
  if (of === "weights" && weights) return weights;
  const text = `change of the ${of} since step ${since}: ${amount(of, change)}`;
  return weights ? `${text}; ${weights}` : text;
}

/**
 * @param {import("../data/decoded_maps.js").Maps} maps @param {string} role
 * @param {number} channel
 */
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
