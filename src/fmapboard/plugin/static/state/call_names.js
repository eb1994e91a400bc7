// @ts-check
/** Names of layer calls in words, as findings print them. */

/** A later call of a layer in one forward pass, as labels say it. */
const CALL = /^(.+)\.call(\d+)$/;

/**
 * A label in words; a later call has its number, and the layer that it directly follows, because
 * the name of a shared activation says nothing of its place in the network.
 * @param {string} label @param {string} [behind] label of the layer before an activation
 * @returns {string}
 */
export function callText(label, behind = "") {
  const [, layer, call] = CALL.exec(label) ?? [];
  if (!layer) return label;
  return `${layer} (call ${call}${behind ? `, behind ${callText(behind)}` : ""})`;
}

/**
 * Name of a layer call, with that of its model, as the findings spell it.
 * @param {{name: string, label: string, behind?: string}} of
 */
export function callName({ name, label, behind }) {
  const own = callText(label, behind);
  return name ? `${name}: ${own}` : own;
}

/**
 * Name of a layer call in the list, inside the group of its module.
 * @param {string} shown end of its label @param {{label: string, call: number, behind?: string}} of
 */
export function callInGroup(shown, { label, call, behind = "" }) {
  if (call < 2) return shown;
  const group = label.slice(0, label.length - shown.length);
  const near = group && behind.startsWith(group) ? behind.slice(group.length) : behind;
  return callText(shown, near);
}
