// @ts-check
/** Finds the layer of another run that corresponds to a layer: by name, else by its position. */

/** @typedef {import("../data/answers.js").Layer} Layer */

/** @typedef {{layer: Layer, by: "name"|"position"}} Match */

/**
 * The corresponding layer of another run; null if there is none. A layer matches by position if it
 * is called at the same place of the forward pass, has the same kernel shape (the same type, if it
 * has none) and number of channels, and its own name is not that of another layer of this run.
 * @param {Layer} layer @param {readonly Layer[]} own layers of its run
 * @param {readonly Layer[]} others layers of the other run @returns {Match|null}
 */
export function match(layer, own, others) {
  const same = others.find((each) => each.key === layer.key);
  if (same) return { layer: same, by: "name" };
  // Runs may differ in `watch(name=…)`: models that are alone in their run correspond.
  const alone = modelsOf(own) === 1 && modelsOf(others) === 1;
  const ofModel = others.filter((each) => alone || each.name === layer.name);
  const named = alone ? ofModel.find((each) => each.label === layer.label) : undefined;
  if (named) return { layer: named, by: "name" };
  const names = new Set(own.map(alone ? (each) => each.label : (each) => each.key));
  const found = ofModel.find(
    (each) =>
      each.position === layer.position &&
      each.channels === layer.channels &&
      shapeOf(each) === shapeOf(layer) &&
      !names.has(alone ? each.label : each.key),
  );
  return found ? { layer: found, by: "position" } : null;
}

/** @param {readonly Layer[]} layers */
function modelsOf(layers) {
  return new Set(layers.map((each) => each.name)).size;
}

/** @param {Layer} layer */
function shapeOf({ kernel_shape: kernel, type }) {
  return kernel ? kernel.join("×") : type;
}
