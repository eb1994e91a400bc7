// @ts-check
/** The film strip: chosen channels at all kept steps; a strip per column, below each other. */

import { layerText } from "../model/compare.js";
import { FilmSource } from "../model/film_strips.js";
import { isBeyond, keptUnit, leftOutWords, onsets, stepsOf } from "../model/film_scale.js";
import { mapsOf } from "../model/scene.js";
import { moved } from "../model/state.js";
import { counted, inWordsOf, short, stepText, tileText, wordOf } from "../model/words.js";
import { theme } from "../picture/canvas.js";
import { placeText, rangeText } from "../picture/captions.js";
import * as picture from "../picture/film_tiles.js";
import * as layouts from "../picture/layouts.js";
import { partText } from "../server/decode.js";
import { indexOf, keptFrom } from "../server/steps.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { reading } from "./grid.js";
import { useScrolled } from "./hooks.js";
import { saveFilm } from "./save.js";

/** @import {App} from "../app.js" */
/** @import {Model, Onset, Strip} from "../model/model.js" */
/** @import {FilmLayout} from "../picture/picture.js" */
/** @import {PaneActs, Scrolled, Steps} from "./view.js" */

/** Buttons of faults that are listed. */
const MOST_ONSETS = 8;

/** Where the button of a fault leads. @param {number} step @param {Steps} strip */
export function goText(step, { steps, words }) {
  const [word, to] = [wordOf(words, step), keptFrom(steps, step)];
  if (to === step) return `Go to ${word}`;
  const which = to > step ? "next" : "last";
  return `Go to ${wordOf(words, to)}, the ${which} kept one: ${word} has no pictures`;
}

/** Since when a channel has a fault. @param {Onset} of @param {Steps} strip */
export function onsetText({ channel, kind, word, step, after, count }, strip) {
  const all = counted(stepsOf(strip), keptUnit(strip));
  const name = `${tileText(strip.layer, channel)}: ${kind === "constant" ? kind : word}`;
  if (count === stepsOf(strip)) return `${name} at all ${all}`;
  const [at, first] = [`at ${count} of ${all}`, wordOf(strip.words, step)];
  if (strip.unit === "image") return `${name} ${at}, the first is ${first}`;
  return `${name} first at ${first}${after === null ? "" : ` (not at ${stepText(after)})`}, ${at}`;
}

/** What is known about the inputs of the steps of a strip, in words. @param {Strip} strip */
export function inputNote({ columns, unit, hasInput }) {
  if (unit === "image") return "One image per frame, the same weights.";
  if (!hasInput) return "The input is not stored.";
  const changes = columns.map(({ change }) => change);
  const compared = changes.filter((each) => each === "same").length;
  if (changes.includes("different")) {
    if (compared) return "Frames marked ≠ have another input than the step before.";
    return "A different input at each step: changes are not the network's alone.";
  }
  if (!compared) return "";
  if (compared === columns.length - 1) return "The same input at every step.";
  return `The same input at all ${compared + 1} steps loaded so far.`;
}

/** The locked range of each channel; the strip itself has them at the left. @param {Strip} strip */
function lockedText({ locked, how, order, layer }) {
  if (!locked) return "";
  const isLayer = how.scale === "layer";
  const ranges = order.slice(0, isLayer ? 1 : undefined).map((channel) => {
    const name = isLayer ? "whole layer" : tileText(layer, channel);
    return `${name} ${short(locked.lo[channel])} … ${short(locked.hi[channel])}`;
  });
  return ranges.join("; ");
}

/** The scale of the frames, in words. @param {Strip} strip */
export function scaleNote(strip) {
  const { hasMaps, isLocked, locked, sharing, unit } = strip;
  if (!isLocked) return `Each ${unit} has its own scale: colours do not compare between ${unit}s.`;
  if (hasMaps && !locked)
    return `The scale of all ${unit}s is not known: each ${unit} has its own.`;
  if (strip.of.letter && !sharing) return `One scale per strip, for all its ${unit}s.`;
  const leftOut = leftOutWords(strip);
  if (leftOut) return `One scale${sharing && ` for ${sharing}`}, without ${leftOut}.`;
  if (sharing) return `One scale for all ${keptUnit(strip)}s of ${sharing}.`;
  return `One scale for all ${counted(stepsOf(strip), keptUnit(strip))}.`;
}

/**
 * Title of a film strip, its scale, its inputs, and since when its channels have faults; or why
 * there is none.
 * @param {{app: App, strips: Strip[], missing: string[], why: string}} props `missing`: columns
 *   without strip
 */
function FilmBar({ app, strips, missing, why }) {
  const [strip] = strips;
  if (!strip) return why && html`<p class="note" role="status">${why}</p>`;
  const { layer, steps, of } = strip;
  const known = strips.filter(({ history, role }) => history && role !== "kernels");
  const found = known.flatMap((each) =>
    onsets(each.history, each.role, each.order).map((onset) => ({ each, onset })),
  );
  const more = found.length - MOST_ONSETS;
  const [scale, inputs] = [scaleNote(strip), inputNote(strip)];
  const part = strip.picture && !strip.rows ? inWordsOf(partText(strip.picture), layer) : "";
  return html`
    <header class="head">
      <div class="title">
        <h1>Film strip of ${layerText(layer.key)}</h1>
        <p class="facts">
          ${layer.type} · ${counted(
            steps.length,
            `kept ` + `${strip.unit}`,
          )}, ${stepText(steps[0])} to ${stepText(steps[steps.length - 1])}${part && ` · ${part}`}
        </p>
      </div>
      <div class="film-notes">
        <span class="film-columns" role="status"
          hidden=${!missing.length}>${inWordsOf(missing.join(" "))}</span>
        <span class="film-scale" title=${lockedText(strip)}>${scale}</span>
        <span class="film-inputs" role="status"
          hidden=${!inputs}>${of.letter && `${of.letter} · `}${inputs}</span>
        <span class="film-faults" hidden=${!known.length}>
        ${found.slice(0, MOST_ONSETS).map(({ each, onset }) => {
          const to = keptFrom(each.steps, onset.step);
          return html`
            <button type="button" title=${goText(onset.step, each)}
              onClick=${() => app.update({ step: to })}>
              ${each.of.letter && `${each.of.letter} · `}${onsetText(onset, each)}
            </button>
          `;
        })}
        ${!found.length && "No faults."}
        ${more > 0 && `and ${more} more`}
        </span>
      </div>
    </header>
  `;
}

/**
 * A frame in words.
 * @param {Strip} strip @param {number} i @param {number} channel
 * @param {{u: number, v: number}|null} place
 */
export function describe(strip, i, channel, place) {
  const name = tileText(strip.layer, channel);
  if (!strip.hasMaps) return name;
  const none = picture.whyNoFrame(strip, i, channel);
  if (none) return `${name}: ${none}`;
  const { side } = strip.columns[i];
  const word = picture.faultOfFrame(strip, i, channel)?.word ?? "";
  if (!side) return `${name}: loading${word && ` · ${word}`}`;
  const far = isBeyond(strip, i, channel) ? "beyond the scale" : "";
  const part = mapsOf(i);
  if (!place)
    return [name, rangeText(strip, part, channel, 3), word, far].filter(Boolean).join(" · ");
  const [y, x] = [
    Math.floor(place.v * side.planes.height),
    Math.floor(place.u * side.planes.width),
  ];
  const value = reading(strip, part, channel, y, x);
  return [name, placeText(strip, y, x), value, far].filter(Boolean).join(" · ");
}

/** The first cell of a step. @param {FilmLayout} of @param {number} step */
function stepCell({ columns, perBand }, step) {
  return Math.floor(step / columns) * perBand * columns + (step % columns);
}

/** @param {{app: App, model: Model}} props */
export function Film({ app, model }) {
  const [arrived, note] = useState(0);
  const [said, say] = useState("");
  const scheduled = useRef(0);
  const source = useMemo(() => {
    // Several answers are drawn together.
    const draw = () => {
      scheduled.current = 0;
      note((count) => count + 1);
    };
    return new FilmSource(app.source, () => (scheduled.current ||= requestAnimationFrame(draw)));
  }, []);
  const { strips, notes } = useMemo(() => source.strips(model), [model, arrived]);
  const panes = useRef(/** @type {PaneActs[]} */ ([]));

  function request() {
    const wanted = strips.map((strip, i) => ({ strip, columns: panes.current[i].wanted() }));
    source.want(wanted);
    document.documentElement.dataset.film = source.busy ? "loading" : "ready";
  }

  /** Describes what is under the pointer now; without a pointer, the current step. */
  function readOut() {
    const places = strips.map((_, i) => panes.current[i].pointedAt());
    const pointed = Math.max(0, places.findIndex(Boolean));
    const [at, strip] = [places[pointed], strips[pointed]];
    const i = at?.column ?? strip?.current ?? -1;
    if (!strip || i < 0) return;
    const { u = null, v = null, row = null } = at ?? {};
    const channels = row === null ? strip.order : [strip.order[row]];
    const place = u !== null && v !== null ? { u, v } : null;
    const texts = channels.map((channel) => describe(strip, i, channel, place));
    const letter = strip.of.letter && `${strip.of.letter} · `;
    say(`${letter}${wordOf(strip.words, strip.steps[i])} · ${texts.join(" | ")}`);
  }
  useLayoutEffect(() => {
    if (!strips.length) return;
    request();
    readOut();
  }, [strips]);
  useLayoutEffect(
    () => () => {
      cancelAnimationFrame(scheduled.current);
      source.rest();
    },
    [],
  );

  /** Scrolls the other strips to the steps of one. @param {number} i */
  function lead(i) {
    const to = panes.current[i].scrolledTo();
    if (to) for (const k of strips.keys()) if (k !== i) panes.current[k].follow(to);
    request();
  }

  /** Shows a step in the maps. @param {Strip} strip @param {number} i @param {number|null} row */
  function open({ order, steps, of: { isOther } }, i, row) {
    const { state } = app;
    const channel = order[row ?? 0] ?? null;
    const isNewest = i === steps.length - 1 && state.step === null;
    const { compare } = state;
    const there =
      isOther && compare && compare.step !== null
        ? { compare: { ...compare, step: steps[i] } }
        : { step: isNewest ? null : steps[i] };
    app.update({ view: "maps", channel, ...there });
  }

  app.page.film = {
    /** Moves all channels of the strips. */
    move(by) {
      const [strip] = strips;
      if (!strip) return;
      const count = strip.hasMaps ? strip.layer.drawn : strip.layer.channels;
      const after = moved(strip.order, by, count);
      app.update({ channels: after, channel: after[0] ?? null });
    },
    save(tell) {
      if (!strips.length) return Promise.resolve("Nothing to save");
      return saveFilm(model, source, tell);
    },
    /** Opens the step of the strip that has the focus. */
    enter() {
      const strip = strips.find((_, i) => panes.current[i].hasFocus()) ?? strips[0];
      if (strip) open(strip, strip.current, 0);
    },
    shownTile: () => panes.current[0]?.tile() ?? 64,
  };
  const why = model.problem || (model.layer ? "" : "Loading…");
  return html`
    <section class="film" role="main" aria-label="Film strip">
      <${FilmBar} ...${{ app, strips, why }} missing=${notes} />
      <div class="grid-room">
        <div class="film-panes">
          ${strips.map(
            (strip, i) => html`
              <${Pane} key=${i} ...${{ model, strip }} wraps=${strips.length === 1}
                acts=${(/** @type {PaneActs} */ acts) => (panes.current[i] = acts)}
                scrolled=${() => lead(i)} pointed=${readOut}
                open=${(/** @type {number} */ column, /** @type {number|null} */ row) =>
                  open(strip, column, row)} />
            `,
          )}
        </div>
        <div class="status" aria-live="polite">${said}</div>
      </div>
    </section>
  `;
}

// One film strip on the page: its heading, the canvas that scrolls, and what is pointed at.

/** Columns that are loaded ahead on each side of the visible ones. */
const AHEAD = 6;
const HELP =
  "The left and right arrows change the step, Enter opens it in the maps, brackets change the " +
  "channel.";

/**
 * `wraps`: it is alone, and columns that the window has no place for are in further bands.
 * @param {{model: Model, strip: Strip, wraps: boolean, acts: (acts: PaneActs) => void,
 *   scrolled: () => void, pointed: () => void,
 *   open: (column: number, row: number|null) => void}} props
 */
function Pane({ model, strip, wraps, acts, scrolled, pointed, open }) {
  /** Where the strip was scrolled to by another one. */
  const led = useRef(/** @type {{left: number, top: number}|null} */ (null));
  const [hovered, hover] = useState(/** @type {number|null} */ (null));
  const { scroller, layout, pointedAt, again, view } = useScrolled({
    place({ width: windowWidth, height: windowHeight, ratio }) {
      const request = { tile: model.state.tile, windowWidth, windowHeight, ratio, wraps };
      return layouts.stripLayout(strip, request);
    },
    paint(context, placed, where) {
      const look = { ...theme(), palette: model.state.colours };
      picture.paintFilm(context, strip, placed, { ...where, hovered }, look);
    },
    inputs: [strip, hovered],
    hit: layouts.filmHit,
    pointed(at) {
      pointed();
      hover(at?.column ?? null);
    },
    scrolled() {
      const isLed = led.current !== null && isAt(led.current.left, led.current.top);
      led.current = null;
      if (!isLed) scrolled();
    },
    click: ({ column, row }) => open(column, row),
  });

  /** The columns to load, the most wanted first. */
  function wanted() {
    const [{ current: placed }, { current: element }] = [layout, scroller];
    if (!placed || !element) return [];
    const { scrollTop: top, scrollLeft: left, clientWidth: width, clientHeight: height } = element;
    const shown = layouts.visibleSteps(placed, { top, left, width, height });
    const order = layouts.loadingOrder(shown, placed.steps, AHEAD);
    return strip.current < 0 ? order : [...order, strip.current]; // it is described below
  }

  /** @param {number} left @param {number} top CSS px */
  function isAt(left, top) {
    const { scrollLeft, scrollTop } = /** @type {HTMLElement} */ (scroller.current);
    return Math.abs(left - scrollLeft) < 2 && Math.abs(top - scrollTop) < 2;
  }

  function revealStep() {
    const [{ current: placed }, { current: element }] = [layout, scroller];
    if (!placed || !element || strip.opensAt < 0) return;
    const { opensAt: at } = strip;
    const { top } = layouts.corner(placed, stepCell(placed, at));
    if (wraps) element.scrollTop = layouts.bandsFrom(placed, element, top - placed.top);
    else {
      // To whole columns.
      const { left, cellWidth } = placed;
      const seen = Math.max(1, Math.floor((element.clientWidth - left) / cellWidth));
      const first = Math.max(Math.round(element.scrollLeft / cellWidth), at - seen + 1);
      element.scrollLeft = cellWidth * Math.min(at, first);
    }
    again();
  }

  /** The step at the left end, with the part of its column that is scrolled away, and the row. */
  function scrolledTo() {
    const [{ current: placed }, { current: element }] = [layout, scroller];
    if (!placed || !element) return null;
    const columns = element.scrollLeft / placed.cellWidth;
    const i = Math.min(Math.floor(columns), strip.steps.length - 1);
    const row = layouts.rowAt(placed, element.scrollTop);
    return { step: strip.steps[i], rest: columns - i, row };
  }

  /** Scrolls as another strip. @param {Scrolled} to */
  function follow({ step, rest, row }) {
    const [{ current: placed }, { current: element }] = [layout, scroller];
    if (!placed || !element) return;
    const left = Math.round((indexOf(strip.steps, step) + rest) * placed.cellWidth);
    const top = Math.round(layouts.rowTopOf(placed, row));
    if (isAt(left, top)) return;
    const { scrollLeft, scrollTop } = element;
    element.scrollTo(left, top);
    // Less than asked for at the end of a shorter strip: without a move there is no event.
    if (isAt(scrollLeft, scrollTop)) return;
    led.current = { left: element.scrollLeft, top: element.scrollTop };
  }

  const tile = () =>
    layout.current ? Math.max(layout.current.tileWidth, layout.current.tileHeight) : 64;
  const hasFocus = () => Boolean(scroller.current?.contains(document.activeElement));
  acts({ wanted, pointedAt, scrolledTo, follow, hasFocus, tile });

  const { letter, text, run } = strip.of;
  const revealed = useRef("");
  useLayoutEffect(() => {
    const { width, height } = layout.current ?? {};
    const { layer, current, opensAt } = strip;
    const now = [run, layer.key, current, opensAt, width, height].join("\n");
    if (revealed.current === now) return;
    revealed.current = now;
    revealStep();
  });
  return html`
    <div class="film-pane">
      <h2 hidden=${!letter}>${letter && `${letter} · ${text}`}</h2>
      ${view("film-strip", letter ? `${letter}. ${HELP}` : HELP)}
    </div>
  `;
}
