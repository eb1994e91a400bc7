// @ts-check
/** One film strip on the page: its heading, the canvas that scrolls, and what is pointed at. */

import { prepare, theme } from "../picture/canvas.js";
import {
  columnLeft,
  filmHit,
  filmLayout,
  loadingOrder,
  rowAt,
  rowTopOf,
  visibleBands,
  visibleColumns,
} from "../picture/film_layout.js";
import { paintBand, paintFilm } from "../picture/film_paint.js";
import { indexOf } from "../server/steps.js";
import { h, say, show } from "./dom.js";

/** @typedef {import("../model/film.js").Strip} Strip */
/** @typedef {import("../model/look.js").Model} Model */
/** @typedef {import("../picture/film_layout.js").FilmLayout} FilmLayout */
/** @typedef {ReturnType<typeof createPane>} Pane */

/** Columns that are loaded ahead on each side of the visible ones. */
const AHEAD = 6;
const HELP =
  "Film strip, one column per step. The left and right arrows change the step, Enter opens it in the maps, brackets change the channel.";

/**
 * @param {{scrolled: () => void, pointed: () => void,
 *   open: (column: number, row: number|null) => void}} on what happens in the pane
 */
export function createPane(on) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const sheet = h("div", { class: "sheet" }, canvas);
  const scroller = h(
    "div",
    { class: "film-strip", tabindex: "0", role: "application", "aria-label": HELP },
    sheet,
  );
  const heading = h("h2");
  const element = h("div", { class: "film-pane" }, heading, scroller);
  /** @type {Strip|null} */
  let strip = null;
  /** @type {FilmLayout|null} */
  let placed = null;
  /** @type {Model|null} */
  let model = null;
  /** The pointer in the page, while it is over the strip. @type {MouseEvent|null} */
  let pointer = null;
  /** @type {number|null} */
  let hovered = null;
  let revealed = "";
  /** It is alone: columns that the window has no place for are in further bands. */
  let wraps = false;
  /** Where the strip was scrolled to by another one. @type {{left: number, top: number}|null} */
  let led = null;

  /**
   * @param {Strip} of
   * @param {Pick<import("../picture/film_layout.js").FilmRequest, "tile"|"windowWidth"|"windowHeight"|"ratio"|"wraps">} request
   */
  function layoutFor(of, request) {
    const known = of.steps.findIndex((_, i) => of.frame(i)?.side);
    const scene = model?.scene?.kind === "maps" ? model.scene : null;
    const near = scene?.question.key === of.layer.key ? scene.a.planes : null;
    const planes = of.frame(known)?.side?.planes ?? near;
    return filmLayout({
      ...request,
      ...{ hasInput: of.hasInput, hasMaps: of.hasMaps, hasKernels: of.hasKernels },
      count: of.steps.length,
      rows: of.channels.length,
      mapHeight: planes?.height ?? 1,
      mapWidth: planes?.width ?? 1,
      isSequence: planes?.height === 1 && planes.width > 1,
    });
  }

  function paint() {
    if (!strip || !model) return;
    const { tile, colours } = model.state;
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height, scrollLeft: left, scrollTop: top } = scroller;
    if (!width || !height) return;
    placed = layoutFor(strip, { tile, windowWidth: width, windowHeight: height, ratio, wraps });
    sheet.style.width = wraps ? "" : `${Math.max(placed.width, 1)}px`;
    sheet.style.height = `${Math.max(placed.height * placed.bands, 1)}px`;
    const look = { ...theme(), palette: colours };
    const context = prepare(canvas, width, height);
    if (!wraps) {
      paintFilm(context, strip, placed, { left, top, width, height, ratio, hovered }, look);
      return;
    }
    context.fillStyle = look.background;
    context.fillRect(0, 0, width, height);
    const [first, last] = visibleBands(placed, top, height);
    for (let at = first; at < last; at += 1) {
      paintBand(context, strip, placed, at, at * placed.height - top, { ratio, hovered }, look);
    }
  }

  /** The columns to load, the most wanted first. */
  function wanted() {
    if (!strip || !placed) return [];
    const { across, count } = placed;
    const [first, last] = wraps
      ? visibleBands(placed, scroller.scrollTop, scroller.clientHeight).map((at) => at * across)
      : visibleColumns(placed, scroller.scrollLeft, scroller.clientWidth);
    return loadingOrder(first, Math.min(last, count), count, AHEAD);
  }

  /** The column and row under the pointer, or null. @param {MouseEvent|null} event */
  function under(event) {
    if (!placed || !event) return null;
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    if (x < placed.gutter || x >= box.width) return null;
    return filmHit(placed, x + scroller.scrollLeft, event.clientY - box.top + scroller.scrollTop);
  }

  /** What is under the pointer now; null without a pointer on this strip. */
  function pointedAt() {
    const at = under(pointer);
    canvas.style.cursor = at ? "pointer" : "default";
    return at;
  }

  scroller.addEventListener(
    "scroll",
    () => {
      paint();
      const isLed = led !== null && isAt(led.left, led.top);
      led = null;
      if (!isLed) on.scrolled();
      on.pointed();
    },
    { passive: true },
  );
  /** @param {MouseEvent|null} event null once the pointer has left */
  function point(event) {
    pointer = event;
    on.pointed();
    const column = under(event)?.column ?? null;
    if (column === hovered) return;
    hovered = column;
    paint();
  }
  canvas.addEventListener("mousemove", point);
  canvas.addEventListener("mouseleave", () => point(null));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at) on.open(at.column, at.row);
  });

  function reveal() {
    if (!placed || !strip || strip.opensAt < 0) return;
    if (wraps) {
      const top = Math.floor(strip.opensAt / placed.across) * placed.height;
      const { scrollTop, clientHeight } = scroller;
      const isSeen = top >= scrollTop && top + placed.height <= scrollTop + clientHeight;
      if (!isSeen) scroller.scrollTop = top;
      return;
    }
    const left = columnLeft(placed, strip.opensAt) - placed.gutter;
    const seen = scroller.clientWidth - placed.gutter - placed.columnWidth;
    if (left < scroller.scrollLeft) scroller.scrollLeft = Math.max(0, left - 8);
    else if (left > scroller.scrollLeft + seen) scroller.scrollLeft = left - Math.max(0, seen) + 8;
  }

  /** @param {number} left @param {number} top CSS px */
  function isAt(left, top) {
    const { scrollLeft, scrollTop } = scroller;
    return Math.abs(left - scrollLeft) < 2 && Math.abs(top - scrollTop) < 2;
  }

  /** The step at the left end, with the part of its column that is scrolled away, and the row. */
  function scrolledTo() {
    if (!placed || !strip) return null;
    const columns = scroller.scrollLeft / placed.columnWidth;
    const i = Math.min(Math.floor(columns), strip.steps.length - 1);
    return { step: strip.steps[i], rest: columns - i, row: rowAt(placed, scroller.scrollTop) };
  }

  /**
   * Scrolls to the step and channel of another strip.
   * @param {{step: number, rest: number, row: number}} to
   */
  function follow({ step, rest, row }) {
    if (!placed || !strip) return;
    const left = Math.round((indexOf(strip.steps, step) + rest) * placed.columnWidth);
    const top = Math.round(rowTopOf(placed, row));
    if (isAt(left, top)) return;
    const { scrollLeft, scrollTop } = scroller;
    scroller.scrollTo(left, top);
    // Less than asked for at the end of a shorter strip: without a move there is no event.
    if (isAt(scrollLeft, scrollTop)) return;
    led = { left: scroller.scrollLeft, top: scroller.scrollTop };
  }

  /** @param {Model} now @param {Strip} of @param {boolean} alone */
  function draw(now, of, alone) {
    [model, strip, wraps] = [now, of, alone];
    const { letter, text, run } = of.of;
    say(heading, letter && `${letter} · ${text}`);
    show(heading, Boolean(letter));
    scroller.setAttribute("aria-label", letter ? `${letter}. ${HELP}` : HELP);
    paint();
    const { tileWidth, height } = placed ?? {};
    const key = [run, of.layer.key, of.current, of.opensAt, tileWidth, height].join("\n");
    if (key === revealed) return;
    revealed = key;
    reveal();
    paint();
  }

  function rest() {
    strip = pointer = hovered = led = null;
    revealed = "";
  }

  return {
    element,
    draw,
    wanted,
    pointedAt,
    scrolledTo,
    follow,
    layoutFor,
    rest,
    tile: () => (placed ? Math.max(placed.tileWidth, placed.tileHeight) : 64),
  };
}
