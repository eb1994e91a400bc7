// @ts-check
/** The film strip: chosen channels at all kept steps, one column per step. */

import { FilmSource } from "../data/film.js";
import {
  columnLeft,
  filmHit,
  filmLayout,
  loadingOrder,
  visibleColumns,
} from "../draw/film_layout.js";
import { paintFilm } from "../draw/film_paint.js";
import { stepText } from "../draw/number_text.js";
import { prepare, theme } from "../draw/theme.js";
import { moved } from "../state/film.js";
import { h, say, show } from "./dom.js";
import { createFilmBar } from "./film_bar.js";
import { describe } from "./film_text.js";
import { saveFilm } from "./film_save.js";

/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("../draw/film_layout.js").FilmLayout} FilmLayout */

/** Columns that are loaded ahead on each side of the visible ones. */
const AHEAD = 6;

/** @param {import("../app.js").App} app */
export function createFilm(app) {
  const bar = createFilmBar(app);
  const canvas = h("canvas", { "aria-hidden": "true" });
  const sheet = h("div", { class: "sheet" }, canvas);
  const scroller = h(
    "div",
    {
      class: "film-strip",
      tabindex: "0",
      role: "application",
      "aria-label":
        "Film strip, one column per kept step. The left and right arrows change the step, Enter opens it in the maps, brackets change the channel.",
    },
    sheet,
  );
  const note = h("p", { class: "note", role: "status" });
  const status = h("div", { class: "status", "aria-live": "polite" });
  const element = h(
    "section",
    { class: "film", role: "main", "aria-label": "Film strip" },
    bar.element,
    note,
    h("div", { class: "grid-room" }, scroller, status),
  );
  const source = new FilmSource(app.source, () => changed());
  /** @type {Strip|null} */
  let strip = null;
  /** @type {FilmLayout|null} */
  let placed = null;
  /** @type {Model|null} */
  let drawn = null;
  /** The pointer in the page, while it is over the strip. @type {MouseEvent|null} */
  let pointer = null;
  /** @type {number|null} */
  let hovered = null;
  let revealed = "";
  let scheduled = false;

  /** Draws soon after an answer; several answers are drawn together. */
  function changed() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      if (element.isConnected && drawn) draw(drawn);
    });
  }

  /** @param {Strip} of @param {number} ratio @param {number} height CSS px @param {number} tile */
  function layoutFor(of, ratio, height, tile) {
    const planes = of.steps.reduce(
      (/** @type {import("../data/decode.js").Planes|null} */ found, _, i) =>
        found ?? of.frame(i)?.side?.planes ?? null,
      null,
    );
    const scene = drawn?.scene?.kind === "maps" ? drawn.scene : null;
    const known = planes ?? (scene?.question.key === of.layer.key ? scene.a.planes : null);
    return filmLayout({
      count: of.steps.length,
      rows: of.channels.length,
      mapHeight: known?.height ?? 1,
      mapWidth: known?.width ?? 1,
      isSequence: Boolean(known && known.height === 1 && known.width > 1),
      tile,
      windowWidth: scroller.clientWidth,
      windowHeight: height,
      ratio,
      hasInput: of.hasInput,
      hasMaps: of.hasMaps,
      hasKernels: of.hasKernels,
    });
  }

  function paint() {
    if (!strip || !drawn) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [scroller.clientWidth, scroller.clientHeight];
    if (!width || !height) return;
    placed = layoutFor(strip, ratio, height, drawn.state.tile);
    sheet.style.width = `${Math.max(placed.width, 1)}px`;
    sheet.style.height = `${Math.max(placed.height, 1)}px`;
    const where = {
      left: scroller.scrollLeft,
      top: scroller.scrollTop,
      width,
      height,
      ratio,
      hovered,
    };
    const look = { ...theme(), palette: drawn.state.colours };
    paintFilm(prepare(canvas, width, height), strip, placed, where, look);
  }

  function request() {
    if (!strip || !placed) return;
    const [first, last] = visibleColumns(placed, scroller.scrollLeft, scroller.clientWidth);
    source.want(strip, loadingOrder(first, last, strip.steps.length, AHEAD));
    document.documentElement.dataset.film = source.busy ? "loading" : "ready";
  }

  /** The column and row under the pointer, or null. @param {MouseEvent} event */
  function under(event) {
    if (!placed) return null;
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    if (x < placed.gutter || x >= box.width) return null;
    return filmHit(placed, x + scroller.scrollLeft, event.clientY - box.top + scroller.scrollTop);
  }

  /** Describes what is under the pointer now; without a pointer, the current step. */
  function readOut() {
    if (!strip) return;
    const at = pointer && under(pointer);
    canvas.style.cursor = at ? "pointer" : "default";
    const row = at?.row ?? null;
    const channels = row === null ? strip.channels : [strip.channels[row]];
    const i = at ? at.column : strip.current;
    if (i < 0) return;
    const place =
      at && row !== null && at.u !== null && at.v !== null ? { u: at.u, v: at.v } : null;
    const said = channels.map((channel) =>
      describe(/** @type {Strip} */ (strip), i, channel, place),
    );
    say(status, `step ${stepText(strip.steps[i])} · ${said.join(" | ")}`);
  }

  scroller.addEventListener(
    "scroll",
    () => {
      paint();
      request();
      readOut();
    },
    { passive: true },
  );
  /** @param {MouseEvent|null} event null once the pointer has left */
  function point(event) {
    pointer = event;
    readOut();
    const column = (event && under(event)?.column) ?? null;
    if (column === hovered) return;
    hovered = column;
    paint();
  }
  canvas.addEventListener("mousemove", point);
  canvas.addEventListener("mouseleave", () => point(null));
  canvas.addEventListener("click", (event) => {
    const at = under(event);
    if (at && strip) open(at.column, at.row);
  });

  /** Shows a step in the maps. @param {number} i @param {number|null} row */
  function open(i, row) {
    if (!strip) return;
    const channel = strip.channels[row ?? 0] ?? null;
    const isLast = i === strip.steps.length - 1 && app.state.step === null;
    app.update({ view: "maps", step: isLast ? null : strip.steps[i], channel });
  }

  function reveal() {
    if (!placed || !strip || strip.current < 0) return;
    const left = columnLeft(placed, strip.current) - placed.gutter;
    const seen = scroller.clientWidth - placed.gutter - placed.columnWidth;
    if (left < scroller.scrollLeft) scroller.scrollLeft = Math.max(0, left - 8);
    else if (left > scroller.scrollLeft + seen) scroller.scrollLeft = left - Math.max(0, seen) + 8;
  }

  /** @param {Model} model */
  function draw(model) {
    drawn = model;
    strip = source.strip(model);
    const why = strip ? "" : model.problem || (model.layer ? "" : "Loading…");
    say(note, why);
    show(note, Boolean(why));
    show(scroller, Boolean(strip));
    show(bar.element, Boolean(strip));
    if (!strip) return;
    bar.draw(model, strip);
    paint();
    const key = JSON.stringify([
      model.state.run,
      model.state.layer,
      strip.current,
      placed?.tileWidth,
    ]);
    if (key !== revealed) {
      revealed = key;
      reveal();
      paint();
    }
    request();
    readOut();
  }

  /** Stops loading while another view is shown. */
  function rest() {
    if (!strip) return;
    strip = pointer = hovered = null;
    revealed = "";
    source.rest();
  }

  /** Moves all channels of the strip. @param {number} by */
  function move(by) {
    if (!strip) return;
    const drawnChannels = strip.hasMaps ? strip.layer.drawn : strip.layer.channels;
    const after = moved(strip.channels, by, drawnChannels);
    app.update({ channels: after.join(","), channel: after[0] ?? null });
  }

  /** @param {(text: string) => void} tell progress */
  const save = (tell) => {
    if (!drawn || !strip) return Promise.resolve("Nothing to save");
    const of = strip;
    return saveFilm(drawn, of, (columns) => source.load(of, columns), layoutFor, tell);
  };
  return {
    element,
    draw,
    rest,
    move,
    save,
    enter: () => strip && open(strip.current, 0),
    shownTile: () => (placed ? Math.max(placed.tileWidth, placed.tileHeight) : 64),
  };
}
