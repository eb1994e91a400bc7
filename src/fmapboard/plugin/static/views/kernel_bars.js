// @ts-check
/** The colour bars of kernels: of the weights, and of their differences. */

import { partName, roundingOf } from "../draw/kernel_scene.js";
import { short } from "../draw/number_text.js";

/** @typedef {import("../draw/scene.js").KernelsScene} KernelsScene */
/** @typedef {{peak: number, palette: string, title: string}} BarFacts of a scale -peak … peak */

/**
 * Scales of what is drawn; null for what is not.
 * @param {KernelsScene} scene
 * @returns {{weights: BarFacts|null, differences: BarFacts|null}}
 */
export function kernelBars({ grid, picture }) {
  if (!grid) {
    const palette = picture?.palette === "rgb" ? "rgb" : "signed";
    return { weights: { peak: picture?.peak ?? 0, palette, title: "weights" }, differences: null };
  }
  const palette = grid.colour ? "rgb" : "signed";
  const between = grid.parts.filter((part) => part.difference);
  const names = between.map((part) => partName(grid, part)).join(", ");
  const title = grid.colour ? "weights of the three inputs" : "weights, all kernels";
  return {
    weights: between.length < grid.parts.length ? { peak: grid.peak, palette, title } : null,
    differences: between.length
      ? {
          peak: grid.differencePeak,
          palette,
          title: `${names}, each ± ${short(roundingOf(grid), 2)}`,
        }
      : null,
  };
}
