// @ts-check
/** The hooks through which views reach the page itself: canvases, and events of the document. */

import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";

/** @import {Child} from "../vendor/preact_htm.js" */

/**
 * A canvas that is painted again whenever an input has changed, without inputs always.
 * @param {(canvas: HTMLCanvasElement) => void} paint @param {readonly unknown[]} [inputs]
 */
export function useCanvas(paint, inputs) {
  const canvas = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  useLayoutEffect(() => void (canvas.current && paint(canvas.current)), inputs);
  return canvas;
}

/**
 * A canvas of its own, with `of` as inputs.
 * @param {{paint: (canvas: HTMLCanvasElement) => void, of?: readonly unknown[],
 *   [attribute: string]: unknown}} props
 */
export function Painted({ paint, of, ...attributes }) {
  return html`<canvas ref=${useCanvas(paint, of)} ...${attributes} />`;
}

/**
 * Listens to keys, or to presses, anywhere in the document.
 * @template {"keydown"|"pointerdown"} T @param {T} type
 * @param {(event: DocumentEventMap[T]) => void} act
 */
export function useKeys(type, act) {
  const latest = useRef(act);
  latest.current = act;
  useLayoutEffect(() => {
    const listen = (/** @type {DocumentEventMap[T]} */ event) => latest.current(event);
    document.addEventListener(type, listen);
    return () => document.removeEventListener(type, listen);
  }, []);
}

/**
 * What it contains, as it was when it was last `shown`: nothing before.
 * @param {{shown: boolean, children?: Child}} props
 */
export function Kept({ shown, children }) {
  const last = useRef(/** @type {Child} */ (null));
  if (shown) last.current = children;
  return last.current;
}
