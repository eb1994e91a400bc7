// @ts-check
/** Positions of what a scene shows. */

import { kernelLayout } from "./kernel_layout.js";
import { layout } from "./tile_layout.js";

/**
 * @param {import("./scene.js").MapsScene|import("./scene.js").KernelsScene} scene
 * @param {number} tile longer side in CSS px, 0 to about fit the window
 * @param {number} available width, CSS px @param {number} windowHeight @param {number} ratio
 */
export function layoutFor(scene, tile, available, windowHeight, ratio) {
  if (scene.kind === "kernels" && scene.grid) {
    return kernelLayout(scene.grid, { tile, available, windowHeight, ratio });
  }
  const planes = scene.a?.planes;
  return layout({
    count: scene.order.length,
    parts: scene.parts.length,
    mapHeight: planes?.height ?? 1,
    mapWidth: planes?.width ?? 1,
    tile,
    available,
    windowHeight,
    ratio,
    rows: scene.rows,
    numbered: scene.kind === "maps" && Boolean(scene.sorting.texts),
  });
}
