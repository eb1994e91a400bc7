// @ts-check
/** Which layer each activation directly follows. */

/**
 * The layers, activations with the label of the layer that they directly follow as `behind`.
 * @template {{name: string, label: string, activation: string|null}} T
 * @param {T[]} layers @returns {(T & {behind?: string})[]}
 */
export function withFeeders(layers) {
  const place = (/** @type {string} */ name, /** @type {string} */ label) => `${name}\n${label}`;
  /** @type {Map<string, string>} */
  const feeders = new Map();
  for (const { name, label, activation } of layers) {
    if (activation === null || feeders.has(place(name, activation))) continue;
    feeders.set(place(name, activation), label);
  }
  return layers.map((layer) => {
    const behind = feeders.get(place(layer.name, layer.label));
    return behind === undefined ? layer : { ...layer, behind };
  });
}
