// @ts-check
/** The film strip: chosen channels at all kept steps; a strip per column, below each other. */

import { FilmSource } from "../data/film.js";
import { stripsAcross } from "../draw/film_arrangement.js";
import { changed as changedColumn } from "../state/columns.js";
import { moved } from "../state/film.js";
import { wordOf } from "../state/step_words.js";
import { h, say, show } from "./dom.js";
import { createFilmBar } from "./film_bar.js";
import { createPane } from "./film_pane.js";
import { saveFilm } from "./film_save.js";
import { describe } from "./film_text.js";

/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../data/tab_data.js").Model} Model */
/** @typedef {import("./film_pane.js").Pane} Pane */

/** @param {import("../app.js").App} app */
export function createFilm(app) {
  const bar = createFilmBar(app);
  const note = h("p", { class: "note", role: "status" });
  const status = h("div", { class: "status", "aria-live": "polite" });
  const strips = h("div", { class: "film-panes" });
  const element = h(
    "section",
    { class: "film", role: "main", "aria-label": "Film strip" },
    bar.element,
    note,
    h("div", { class: "grid-room" }, strips, status),
  );
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
        open: (column, row) => {
          const strip = pane.strip();
          if (strip) open(strip, column, row);
        },
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
    const pointed = places.findIndex((place) => place !== null);
    const [at, strip] = pointed < 0 ? [null, shown[0]] : [places[pointed], shown[pointed]];
    const i = at ? at.column : (strip?.current ?? -1);
    if (!strip || i < 0) return;
    const row = at?.row ?? null;
    const channels = row === null ? strip.channels : [strip.channels[row]];
    const place =
      at && row !== null && at.u !== null && at.v !== null ? { u: at.u, v: at.v } : null;
    const said = channels.map((channel) => describe(strip, i, channel, place));
    const letter = strip.of.letter ? `${strip.of.letter} · ` : "";
    say(status, `${letter}${wordOf(strip.words, strip.steps[i])} · ${said.join(" | ")}`);
  }

  /** Shows a step in the maps. @param {Strip} strip @param {number} i @param {number|null} row */
  function open(strip, i, row) {
    const { state } = app;
    const channel = strip.channels[row ?? 0] ?? null;
    const isLast = i === strip.steps.length - 1 && state.step === null;
    const step = isLast ? null : strip.steps[i];
    const { place } = strip.of;
    const isPinned = place >= 0 && state.columns[place]?.step !== null;
    const columns = isPinned
      ? changedColumn(state.columns, place, { step: strip.steps[i] })
      : state.columns;
    app.update({ view: "maps", channel, columns, ...(isPinned ? {} : { step }) });
  }

  /** @param {Model} model */
  function draw(model) {
    drawn = model;
    const { strips: found, notes } = source.strips(model);
    const [first] = found;
    const why = first ? "" : model.problem || (model.layer ? "" : "Loading…");
    say(note, why);
    show(note, Boolean(why));
    show(strips, Boolean(first));
    show(bar.element, Boolean(first));
    const wanted = found.map((_, i) => paneOf(i).element);
    if (wanted.length !== shown.length) {
      for (const pane of panes.slice(found.length)) pane.rest();
      strips.replaceChildren(...wanted);
    }
    shown = found;
    if (!first) return;
    bar.draw(model, found, notes);
    const across = acrossOf(model, found);
    strips.style.setProperty("--across", String(across));
    found.forEach((strip, i) => {
      const { classList } = panes[i].element;
      classList.toggle("beside", i % across > 0);
      classList.toggle("below", i >= across);
      panes[i].draw(model, strip, found.length === 1);
    });
    request();
    readOut();
  }

  /** How many strips are beside each other. @param {Model} model @param {Strip[]} found */
  function acrossOf(model, found) {
    if (found.length < 2) return 1;
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = strips;
    return stripsAcross(found.length, { width, height }, (each, high) =>
      found
        .map((strip, i) => panes[i].layoutFor(strip, ratio, high, model.state.tile, each))
        .reduce((widest, of) => (of.width > widest.width ? of : widest)),
    );
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
    const drawnChannels = strip.hasMaps ? strip.layer.drawn : strip.layer.channels;
    const after = moved(strip.channels, by, drawnChannels);
    app.update({ channels: after.join(","), channel: after[0] ?? null });
  }

  /** @param {(text: string) => void} tell progress */
  const save = (tell) => {
    if (!drawn || !shown.length) return Promise.resolve("Nothing to save");
    return saveFilm(drawn, shown, source, panes[0].layoutFor, tell);
  };
  return {
    element,
    draw,
    rest,
    move,
    save,
    enter: () => {
      const focused = panes.findIndex(({ element: own }) => own.contains(document.activeElement));
      const strip = shown[focused] ?? shown[0];
      if (strip) open(strip, strip.current, 0);
    },
    shownTile: () => panes[0]?.tile() ?? 64,
  };
}
