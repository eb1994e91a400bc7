// @ts-check
/** The film strip: chosen channels at all kept steps; a strip per column, below each other. */

import { layerText } from "../model/compare.js";
import { FilmSource } from "../model/film.js";
import { FAR, isBeyond, keptUnit, onsets, stepsOf } from "../model/film_scale.js";
import { changed as changedColumn, moved } from "../model/state.js";
import { counted, deadWord, short, stepText, wordOf } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { positionText, valueText } from "../picture/captions.js";
import * as picture from "../picture/film_paint.js";
import { pictureOf, valueAt } from "../server/decode.js";
import { badMark } from "../server/palettes.js";
import { indexOf, keptFrom } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";
import { h, mount, reveal, say, show } from "./controls.js";
import { saveFilm } from "./save.js";

/** @import {App} from "../app.js" */
/** @import {Strip} from "../model/film.js" */
/** @import {Model} from "../model/look.js" */
/** @import {FilmLayout, FilmRequest} from "../picture/film_paint.js" */

/** @typedef {Pick<Strip, "history"|"steps"|"words"|"unit">} Steps */

/** Buttons of faults that are listed. */
const MOST_ONSETS = 8;

/** Where the button of a fault leads. @param {number} step @param {Steps} strip */
export function goText(step, { steps, words }) {
  const [word, to] = [wordOf(words, step), keptFrom(steps, step)];
  if (to === step) return `Go to ${word}`;
  const which = to > step ? "next" : "last";
  return `Go to ${wordOf(words, to)}, the ${which} kept one: ${word} has no pictures`;
}

/** Since when a channel has a fault. @param {import("../model/film_scale.js").Onset} of @param {Steps} strip */
export function onsetText({ channel, kind, word, step, after, count }, strip) {
  const all = counted(stepsOf(strip), keptUnit(strip));
  const name = `channel ${channel}: ${kind === "constant" ? kind : word}`;
  if (count === stepsOf(strip)) return `${name} at all ${all}`;
  const [at, first] = [`at ${count} of ${all}`, wordOf(strip.words, step)];
  if (strip.unit === "image") return `${name} ${at}, the first is ${first}`;
  return `${name} first at ${first}${after === null ? "" : ` (not at ${stepText(after)})`}, ${at}`;
}

/** What is known about the inputs of the steps of a strip, in words. @param {Strip} strip */
export function inputNote({ steps, unit, hasInput, change }) {
  if (unit === "image") return "Each frame is of another image, with the same weights.";
  if (!hasInput)
    return "The network's input is not stored: whether steps saw the same input is not known.";
  const changes = steps.map((_, i) => change(i));
  const compared = changes.filter((each) => each === "same").length;
  if (changes.includes("different")) {
    return "Frames marked ≠ have another input than the step before: their changes are not the network's alone.";
  }
  if (!compared) return "";
  const rest = compared === steps.length - 1 ? "" : " loaded so far";
  return `Same input at all ${compared + 1} steps${rest}: changes are the network's.`;
}

/** The scale of the frames, in words. @param {Strip} strip */
export function scaleNote(strip) {
  const { hasMaps, isLocked, locked, how, channels, inFilm, sharing, unit } = strip;
  const isLayer = how.scale === "layer";
  if (!isLocked) return `Each ${unit} has its own scale: colours do not compare between ${unit}s.`;
  if (hasMaps && !locked)
    return `The scale of all ${unit}s is not known: each ${unit} has its own.`;
  const ranges = channels.slice(0, isLayer ? 1 : undefined).map((channel) => {
    const name = isLayer ? "whole layer" : `channel ${channel}`;
    return locked ? `${name} ${short(locked.lo[channel])} … ${short(locked.hi[channel])}` : "";
  });
  const far = channels.reduce((most, each) => Math.max(most, inFilm.beyond.get(each) ?? 0), 0);
  const leftOut = [
    strip.leftOut && hasMaps ? `${counted(strip.leftOut, unit)} with large values` : "",
    inFilm.faulty.size ? `frames that are ${deadWord()} or not finite` : "",
    far ? `frames marked ▲, which exceed the others ${FAR}-fold` : "",
    strip.kernelsBeyond ? `kernels of ${unit}s with large maps` : "",
  ].filter(Boolean);
  const over = `all ${sharing ? "" : `${stepsOf(strip)} `}${keptUnit(strip)}s${sharing && ` of ${sharing}`}`;
  const said = hasMaps ? `: ${ranges.join("; ")}` : "";
  const without = ` Without ${leftOut.join(", ")}: there, colours stop at both ends.`;
  return `Scale locked over ${over}${said}.${leftOut.length ? without : ""}`;
}

/**
 * Title of a film strip, its scale, its inputs, and since when its channels have faults; or why there is none.
 * @param {{app: App, strips: Strip[], missing: string[], why: string}} props `missing`: columns without strip
 */
function FilmBar({ app, strips, missing, why }) {
  const [strip] = strips;
  if (!strip) return why && html`<p class="note" role="status">${why}</p>`;
  const { layer, steps, of } = strip;
  const known = strips.filter(({ history, role }) => history && role !== "kernels");
  const found = known.flatMap((each) =>
    onsets(each.history, each.role, each.channels).map((onset) => ({ each, onset })),
  );
  const more = found.length - MOST_ONSETS;
  const kept = known.map((each) => `${stepsOf(each)} ${keptUnit(each)}s`).join(" and ");
  const [scale, inputs] = [scaleNote(strip), inputNote(strip)];
  return html`
    <header class="head">
      <div class="title">
        <h1>Film strip of ${layerText(layer.key)}</h1>
        <p class="facts">
          ${layer.type} · ${counted(steps.length, `kept ${strip.unit}`)}, ${stepText(steps[0])} to ${stepText(steps[steps.length - 1])}
        </p>
      </div>
      <p class="film-notes film-columns" role="status" hidden=${!missing.length}>${missing.join(" ")}</p>
      <p class="film-notes film-scale" title=${scale}>${scale}</p>
      <p class="film-notes film-inputs" role="status" hidden=${!inputs}>${of.letter && `${of.letter}: `}${inputs}</p>
      <p class="film-faults" hidden=${!known.length}>
        ${found.slice(0, MOST_ONSETS).map(({ each, onset }) => {
          const to = keptFrom(each.steps, onset.step);
          return html`
            <button type="button" title=${goText(onset.step, each)} onClick=${() => app.update({ step: to })}>
              ${each.of.letter && `${each.of.letter} · `}${onsetText(onset, each)}
            </button>
          `;
        })}
        ${!found.length && `Never non-finite, large, ${deadWord()} or constant at the ${kept}.`}
        ${more > 0 && `and ${more} more`}
      </p>
    </header>
  `;
}

/** A frame in words. @param {Strip} strip @param {number} i @param {number} channel @param {{u: number, v: number}|null} place */
export function describe(strip, i, channel, place) {
  const name = `channel ${channel}`;
  if (!strip.hasMaps) return name;
  const why = picture.whyNoFrame(strip, i, channel);
  if (why) return `${name}: ${why}`;
  const frame = strip.frame(i);
  const word = picture.faultOfFrame(strip, i, channel)?.word ?? "";
  if (!frame?.side) return `${name}: loading${word && ` · ${word}`}`;
  const { planes, lo, hi } = frame.side;
  const far = isBeyond(strip, frame.side, channel) ? "beyond the scale" : "";
  const size = planes.height * planes.width;
  const own = planes.marks?.subarray(channel * size, (channel + 1) * size);
  const isFinite = !own?.every((_, i) => badMark(own, i));
  const range = isFinite ? `${short(lo[channel])}…${short(hi[channel])}` : "";
  if (!place) return [name, range, word, far].filter(Boolean).join(" · ");
  const [y, x] = [Math.floor(place.v * planes.height), Math.floor(place.u * planes.width)];
  const { block, layout } = /** @type {import("../server/answers.js").MapsPicture} */ (
    pictureOf(frame.maps, strip.role)
  );
  const at = positionText(layout === "rows", block, y, x);
  const said = valueText(valueAt(planes, channel, y, x, lo[channel], hi[channel]));
  return [name, at, said, far].filter(Boolean).join(" · ");
}

/** @param {App} app */
export function createFilm(app) {
  const bar = mount(FilmBar);
  const status = h("div", { class: "status", "aria-live": "polite" });
  const strips = h("div", { class: "film-panes" });
  const room = h("div", { class: "grid-room" }, strips, status);
  const attributes = { class: "film", role: "main", "aria-label": "Film strip" };
  const element = h("section", attributes, bar.element, room);
  const source = new FilmSource(app.source, () => changed());
  /** As many as have been needed; those of `shown` are on the page. @type {Pane[]} */
  const panes = [];
  /** @type {Strip[]} */
  let shown = [];
  /** @type {Model|null} */
  let drawn = null;
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

  /** The pane of a strip. @param {number} i */
  function paneOf(i) {
    while (panes.length <= i) {
      const pane = createPane({
        scrolled: () => lead(pane),
        pointed: readOut,
        open: (column, row) => open(shown[panes.indexOf(pane)], column, row),
      });
      panes.push(pane);
    }
    return panes[i];
  }

  /** Scrolls the other strips to the steps of one. @param {Pane} pane */
  function lead(pane) {
    const to = pane.scrolledTo();
    if (to) for (const each of panes.slice(0, shown.length)) if (each !== pane) each.follow(to);
    request();
  }

  function request() {
    source.want(shown.map((strip, i) => ({ strip, columns: panes[i].wanted() })));
    document.documentElement.dataset.film = source.busy ? "loading" : "ready";
  }

  /** Describes what is under the pointer now; without a pointer, the current step. */
  function readOut() {
    const places = panes.slice(0, shown.length).map((pane) => pane.pointedAt());
    const pointed = Math.max(0, places.findIndex(Boolean));
    const [at, strip] = [places[pointed], shown[pointed]];
    const i = at?.column ?? strip?.current ?? -1;
    if (!strip || i < 0) return;
    const { u = null, v = null, row = null } = at ?? {};
    const channels = row === null ? strip.channels : [strip.channels[row]];
    const place = u !== null && v !== null ? { u, v } : null;
    const said = channels.map((channel) => describe(strip, i, channel, place));
    const letter = strip.of.letter && `${strip.of.letter} · `;
    say(status, `${letter}${wordOf(strip.words, strip.steps[i])} · ${said.join(" | ")}`);
  }

  /** Shows a step in the maps. @param {Strip} strip @param {number} i @param {number|null} row */
  function open({ channels, steps, of: { place } }, i, row) {
    const { state } = app;
    const channel = channels[row ?? 0] ?? null;
    const isNewest = i === steps.length - 1 && state.step === null;
    const isPinned = place >= 0 && state.columns[place]?.step !== null;
    const there = isPinned
      ? { columns: changedColumn(state.columns, place, { step: steps[i] }) }
      : { step: isNewest ? null : steps[i] };
    app.update({ view: "maps", channel, ...there });
  }

  /** @param {Model} model */
  function draw(model) {
    drawn = model;
    const { strips: found, notes } = source.strips(model);
    const why = model.problem || (model.layer ? "" : "Loading…");
    const wanted = found.map((_, i) => paneOf(i).element);
    if (wanted.length !== shown.length) {
      for (const pane of panes.slice(found.length)) pane.rest();
      strips.replaceChildren(...wanted);
    }
    shown = found;
    bar.draw({ app, strips: found, missing: notes, why });
    found.forEach((strip, i) => panes[i].draw(model, strip, found.length === 1));
    if (!found.length) return;
    request();
    readOut();
  }

  /** Stops loading while another view is shown. */
  function rest() {
    if (!shown.length) return;
    shown = [];
    strips.replaceChildren();
    for (const pane of panes) pane.rest();
    source.rest();
  }

  /** Moves all channels of the strips. @param {number} by */
  function move(by) {
    const [strip] = shown;
    if (!strip) return;
    const count = strip.hasMaps ? strip.layer.drawn : strip.layer.channels;
    const after = moved(strip.channels, by, count);
    app.update({ channels: after.join(","), channel: after[0] ?? null });
  }

  /** @param {(text: string) => void} tell progress */
  const save = (tell) => {
    if (!drawn || !shown.length) return Promise.resolve("Nothing to save");
    return saveFilm(drawn, shown, source, panes[0].layoutFor, tell);
  };

  /** Opens the step of the strip that has the focus. */
  function enter() {
    const focused = panes.findIndex((pane) => pane.element.contains(document.activeElement));
    const strip = shown[focused] ?? shown[0];
    if (strip) open(strip, strip.current, 0);
  }
  return { element, draw, rest, move, save, enter, shownTile: () => panes[0]?.tile() ?? 64 };
}

// One film strip on the page: its heading, the canvas that scrolls, and what is pointed at.

/** @typedef {ReturnType<typeof createPane>} Pane */

/** Columns that are loaded ahead on each side of the visible ones. */
const AHEAD = 6;
const HELP =
  "Film strip, one column per step. The left and right arrows change the step, Enter opens it in the maps, brackets change the channel.";

/** @param {{scrolled: () => void, pointed: () => void, open: (column: number, row: number|null) => void}} on events */
export function createPane(on) {
  const canvas = h("canvas", { "aria-hidden": "true" });
  const sheet = h("div", { class: "sheet" }, canvas);
  const attributes = { class: "film-strip", tabindex: "0", role: "application" };
  const scroller = h("div", attributes, sheet);
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

  /** @param {Strip} of @param {Pick<FilmRequest, "tile"|"windowWidth"|"windowHeight"|"ratio"|"wraps">} request */
  function layoutFor(of, request) {
    const known = of.steps.findIndex((_, i) => of.frame(i)?.side);
    const scene = model?.scene?.kind === "maps" ? model.scene : null;
    const near = scene?.question.key === of.layer.key ? scene.a.planes : null;
    const planes = of.frame(known)?.side?.planes ?? near;
    return picture.filmLayout({
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
      picture.paintFilm(context, strip, placed, { left, top, width, height, ratio, hovered }, look);
      return;
    }
    context.fillStyle = look.background;
    context.fillRect(0, 0, width, height);
    const [first, last] = picture.visibleBands(placed, top, height);
    for (let at = first; at < last; at += 1) {
      picture.paintBand(
        context,
        strip,
        placed,
        at,
        at * placed.height - top,
        { ratio, hovered },
        look,
      );
    }
  }

  /** The columns to load, the most wanted first. */
  function wanted() {
    if (!strip || !placed) return [];
    const { across, count } = placed;
    const [first, last] = wraps
      ? picture
          .visibleBands(placed, scroller.scrollTop, scroller.clientHeight)
          .map((at) => at * across)
      : picture.visibleColumns(placed, scroller.scrollLeft, scroller.clientWidth);
    return picture.loadingOrder(first, Math.min(last, count), count, AHEAD);
  }

  /** The column and row under the pointer, or null. @param {MouseEvent|null} event */
  function under(event) {
    if (!placed || !event) return null;
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    if (x < placed.gutter || x >= box.width) return null;
    return picture.filmHit(
      placed,
      x + scroller.scrollLeft,
      event.clientY - box.top + scroller.scrollTop,
    );
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

  function revealStep() {
    if (!placed || !strip || strip.opensAt < 0) return;
    if (wraps) {
      const top = Math.floor(strip.opensAt / placed.across) * placed.height;
      reveal(scroller, "Top", top, top + Math.min(placed.height, scroller.clientHeight));
      return;
    }
    const left = picture.columnLeft(placed, strip.opensAt);
    const wide = Math.min(placed.columnWidth, scroller.clientWidth - placed.gutter - 8);
    reveal(scroller, "Left", left - placed.gutter - 8, left + wide + 8);
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
    return {
      step: strip.steps[i],
      rest: columns - i,
      row: picture.rowAt(placed, scroller.scrollTop),
    };
  }

  /** Scrolls as another strip. @param {{step: number, rest: number, row: number}} to */
  function follow({ step, rest, row }) {
    if (!placed || !strip) return;
    const left = Math.round((indexOf(strip.steps, step) + rest) * placed.columnWidth);
    const top = Math.round(picture.rowTopOf(placed, row));
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
    revealStep();
    paint();
  }

  function rest() {
    strip = pointer = hovered = led = null;
    revealed = "";
  }

  const tile = () => (placed ? Math.max(placed.tileWidth, placed.tileHeight) : 64);
  return { element, draw, wanted, pointedAt, scrolledTo, follow, layoutFor, rest, tile };
}
