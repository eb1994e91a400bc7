// @ts-check
/** The hooks through which views reach the page itself: canvases, and events of the document. */

import { prepare } from "../picture/canvas.js";
import { html, useLayoutEffect, useRef } from "../vendor/preact_htm.js";

/** @import {Layout} from "../picture/picture.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {ScrolledPicture} from "./view.js" */

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
 * A picture that scrolls below a canvas as large as what is seen of it.
 * @template {Layout} L @template T @param {ScrolledPicture<L, T>} of
 */
export function useScrolled({ place, paint, inputs, hit, pointed, scrolled, click }) {
  const scroller = useRef(/** @type {HTMLElement|null} */ (null));
  const layout = useRef(/** @type {L|null} */ (null));
  /** The pointer in the page, while it is over the picture. */
  const pointer = useRef(/** @type {MouseEvent|null} */ (null));
  const canvas = useCanvas(draw, inputs);

  /** @param {HTMLCanvasElement} canvas */
  function draw(canvas) {
    const { current: element } = scroller;
    if (!element?.clientWidth || !element.clientHeight) return; // another view is shown
    const { clientWidth: width, clientHeight: height, scrollTop: top, scrollLeft: left } = element;
    const ratio = window.devicePixelRatio || 1;
    const placed = place({ width, height, ratio });
    if (!placed) return;
    layout.current = placed;
    const sheet = /** @type {HTMLElement} */ (canvas.parentElement);
    sheet.style.height = `${Math.max(placed.height, 1)}px`;
    sheet.style.width = placed.width > width ? `${placed.width}px` : "";
    paint(prepare(canvas, width, height), placed, { top, left, width, height, ratio });
  }

  /** What is under the pointer, or null. @param {MouseEvent|null} event */
  function under(event) {
    const [{ current: placed }, { current: element }] = [layout, scroller];
    if (!placed || !element || !event || !canvas.current) return null;
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (x < placed.left || x >= box.width) return null;
    return hit(placed, x + element.scrollLeft, y + element.scrollTop);
  }

  /** What is under the pointer now; null without a pointer on this picture. */
  function pointedAt() {
    const at = under(pointer.current);
    if (canvas.current) canvas.current.style.cursor = at ? "pointer" : "default";
    return at;
  }
  const point = (/** @type {MouseEvent|null} */ event) => {
    pointer.current = event;
    pointed(under(event));
  };
  const again = () => void (canvas.current && draw(canvas.current));
  const onScroll = () => {
    again();
    scrolled?.();
    pointed(under(pointer.current));
  };
  /** @param {string} name @param {string} label */
  const view = (name, label, hidden = false) => html`
    <div class=${name} tabindex="0" role="application" aria-label=${label} hidden=${hidden}
      ref=${scroller} onScroll=${onScroll}>
      <div class="sheet">
        <canvas aria-hidden="true" ref=${canvas} onMouseMove=${point}
          onMouseLeave=${() => point(null)}
          onClick=${(/** @type {MouseEvent} */ event) => {
            const at = under(event);
            if (at) click(at, event);
          }} />
      </div>
    </div>
  `;
  return { scroller, layout, pointedAt, again, view };
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
