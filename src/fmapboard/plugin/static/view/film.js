// @ts-check
/** Texts above a film strip: its scale, whether its inputs are the same, and since when it has faults. */

import { layerText } from "../model/compare.js";
import { FilmSource } from "../model/film.js";
import { FAR, isBeyond, onsets } from "../model/film_scale.js";
import { changed as changedColumn, moved } from "../model/state.js";
import { counted, deadWord, short, stepText, wordOf } from "../model/words.js";
import { positionText, valueText } from "../picture/captions.js";
import { faultOfFrame, whyNoFrame } from "../picture/film_captions.js";
import { stripsAcross } from "../picture/film_layout.js";
import { pictureOf, valueAt } from "../server/decode.js";
import { MARK } from "../server/palettes.js";
import { keptFrom } from "../server/steps.js";
import { h, say, show } from "./dom.js";
import { createPane } from "./film_pane.js";
import { saveFilm } from "./save.js";

// Texts above a film strip: its scale, whether its inputs are the same, and since when it has faults.

/** @typedef {import("../model/film.js").Strip} Strip */

/** Number of steps of a history. @param {import("../model/scene.js").History|null} history */
export const stepsOf = (history) => history?.steps.length ?? 0;

/** @typedef {Pick<Strip, "history"|"steps"|"words"|"unit">} Steps */

/**
 * What the steps of a history are: a report knows the numbers of more steps than it has pictures of.
 * @param {Pick<Strip, "history"|"steps">} strip
 */
export const keptKind = ({ history, steps }) =>
  stepsOf(history) > steps.length ? "logged" : "kept";

/** The kept step that is shown for one without pictures, in words. @param {number} step @param {Steps} strip */
function shownFor(step, { steps, words }) {
  const to = keptFrom(steps, step);
  return to === step ? "" : `${wordOf(words, to)}, the ${to > step ? "next" : "last"} kept one`;
}

/** Where the button of a fault leads. @param {number} step @param {Steps} strip */
export function goText(step, strip) {
  const word = wordOf(strip.words, step);
  const other = shownFor(step, strip);
  return other ? `Go to ${other}: ${word} has no pictures` : `Go to ${word}`;
}

/**
 * Since when a channel has a fault, and which step shows it if that one has no pictures.
 * @param {import("../model/film_scale.js").Onset} of @param {Steps} strip
 */
export function onsetText({ channel, kind, word, step, after, count }, strip) {
  const kept = stepsOf(strip.history);
  const steps = `${keptKind(strip)} ${strip.unit}`;
  const other = shownFor(step, strip);
  const shown = other && ` · shown at ${other}`;
  const name = `channel ${channel}: ${kind === "constant" ? "constant" : word}`;
  if (count === kept) {
    const all = kept === 1 ? `the one ${steps}` : `all ${kept} ${steps}s`;
    return `${name} at ${all}${shown}`;
  }
  const at = `at ${count} of ${kept} ${steps}s`;
  const first = wordOf(strip.words, step);
  if (strip.unit === "image") return `${name} ${at}, the first is ${first}${shown}`;
  const since = after === null ? first : `${first} (not at ${stepText(after)})`;
  return `${name} first at ${since}, ${at}${shown}`;
}

/** What is known about the inputs of the steps of a strip, in words. @param {Strip} strip */
export function inputNote(strip) {
  const { steps } = strip;
  if (strip.unit === "image") return "Each frame is of another image, with the same weights.";
  if (!strip.hasInput)
    return "The network's input is not stored: whether steps saw the same input is not known.";
  let different = 0;
  let compared = 0;
  for (let i = 1; i < steps.length; i += 1) {
    const change = strip.change(i);
    if (change === "unknown") continue;
    compared += 1;
    if (change === "different") different += 1;
  }
  if (different > 0) {
    return "Frames marked ≠ have another input than the step before: their changes are not the network's alone.";
  }
  if (!compared) return "";
  const rest = compared === steps.length - 1 ? "" : " loaded so far";
  return `Same input at all ${compared + 1} steps${rest}: changes are the network's.`;
}

/** The scale of the frames, in words. @param {Strip} strip */
export function scaleNote(strip) {
  const { faulty } = strip.inFilm;
  const { hasMaps, locked, leftOut, sharing, isLocked, how, channels, history, beyond, unit } =
    strip;
  if (!hasMaps) {
    return isLocked
      ? `Kernels: one scale, locked over ${strip.kernelsBeyond ? "the" : "all"} ${keptKind(strip)} ${unit}s.${kernelsText(strip)}`
      : `Each kernel has the scale of its ${unit}: colours do not compare between ${unit}s.`;
  }
  if (!locked) {
    return isLocked
      ? `The scale of all ${unit}s is not known: each ${unit} has its own.`
      : `Each ${unit} has its own scale: colours do not compare between ${unit}s.`;
  }
  const each = channels.map(
    (channel) => `channel ${channel} ${short(locked.lo[channel])} … ${short(locked.hi[channel])}`,
  );
  const said =
    how.scale === "layer" ? [`whole layer ${each[0].replace(/^channel \d+ /, "")}`] : each;
  const kept = stepsOf(history) - leftOut;
  const steps = `${keptKind(strip)} ${unit}`;
  const over = sharing
    ? `all ${steps}s of ${sharing}`
    : beyond.size + faulty.size
      ? `the ${steps}s`
      : leftOut
        ? `${kept} of ${stepsOf(history)} ${steps}s`
        : kept === 1
          ? `the one ${steps}`
          : `all ${kept} ${steps}s`;
  const sound = faulty.size
    ? ` Frames in which ${how.scale === "layer" ? "a" : "the"} channel is ${deadWord()} or not finite are left out.`
    : "";
  const rest = leftOut
    ? ` The ${leftOut === 1 ? unit : `${leftOut} ${unit}s`} with large values ${leftOut === 1 ? "is" : "are"} left out: there, colours stop at both ends.`
    : "";
  return `Scale locked over ${over}: ${said.join("; ")}.${sound}${rest}${beyondText(strip)}${strip.hasKernels ? kernelsText(strip) : ""}`;
}

/** That the scale of the kernels leaves steps out; "" if it does not. @param {Strip} strip */
function kernelsText({ kernelsBeyond }) {
  return kernelsBeyond
    ? " The scale of kernels leaves out steps at which maps of the layer have large values: there, their colours stop at both ends."
    : "";
}

/** Frames whose values the locked scale does not reach, in words; "" for none. @param {Strip} strip */
function beyondText({ inFilm: { beyond }, channels, how, unit }) {
  const far = channels.filter((channel) => beyond.get(channel));
  if (!far.length) return "";
  const each = far.map(
    (channel) => `${counted(beyond.get(channel) ?? 0, unit)} of channel ${channel}`,
  );
  const which = how.scale === "layer" ? counted(beyond.get(far[0]) ?? 0, unit) : each.join(", ");
  return ` Frames marked ▲ (${which}) exceed the others ${FAR}-fold and are left out: there, colours stop at both ends.`;
}

// Title of a film strip, and since when its channels have faults.

const MOST_ONSETS = 8;

/** @param {import("../app.js").App} app */
export function createFilmBar(app) {
  const title = h("h1");
  const facts = h("p", { class: "facts" });
  const notes = h("p", { class: "film-notes film-inputs", role: "status" });
  const columns = h("p", { class: "film-notes film-columns", role: "status" });
  const scale = h("p", { class: "film-notes film-scale" });
  const faults = h("p", { class: "film-faults" });
  const element = h(
    "header",
    { class: "head" },
    h("div", { class: "title" }, title, facts),
    columns,
    scale,
    notes,
    faults,
  );
  /**
   * @param {Strip[]} strips at least one @param {string[]} missing why columns have no strip
   */
  function draw(strips, missing) {
    const [strip] = strips;
    const { layer } = strip;
    say(title, `Film strip of ${layerText(layer.key)}`);
    const [first, last] = [strip.steps[0], strip.steps[strip.steps.length - 1]];
    say(
      facts,
      `${layer.type} · ${counted(strip.steps.length, `kept ${strip.unit}`)}, ${stepText(first)} to ${stepText(last)}`,
    );
    say(columns, missing.join(" "));
    show(columns, missing.length > 0);
    say(scale, scaleNote(strip));
    scale.title = scale.textContent ?? "";
    const inputs = inputNote(strip);
    say(notes, inputs && strip.of.letter ? `${strip.of.letter}: ${inputs}` : inputs);
    show(notes, Boolean(notes.textContent));
    onsetButtons(strips);
  }

  let shown = "";

  /** @param {Strip[]} strips */
  function onsetButtons(strips) {
    const known = strips.filter(({ history, role }) => history && role !== "kernels");
    const found = known.flatMap((strip) =>
      onsets(strip.history, strip.role, strip.channels).map((each) => ({
        of: strip.of,
        to: keptFrom(strip.steps, each.step),
        text: onsetText(each, strip),
        title: goText(each.step, strip),
      })),
    );
    const kept = known.map(
      (strip) => `${stepsOf(strip.history)} ${keptKind(strip)} ${strip.unit}s`,
    );
    const key = JSON.stringify([found.map(({ of, ...each }) => [of.letter, each]), kept]);
    if (key === shown) return;
    shown = key;
    show(faults, known.length > 0);
    const items = found
      .slice(0, MOST_ONSETS)
      .map((each) =>
        h("button", {
          type: "button",
          text: (each.of.letter ? `${each.of.letter} · ` : "") + each.text,
          title: each.title,
          on: { click: () => app.update({ step: each.to }) },
        }),
      );
    const more = found.length - items.length;
    faults.replaceChildren(
      ...(items.length
        ? items
        : [`Never non-finite, large, ${deadWord()} or constant at the ${kept.join(" and ")}.`]),
      ...(more > 0 ? [`and ${more} more`] : []),
    );
  }
  return { element, draw };
}

// Describes a frame of the film strip in words.

/** @typedef {import("../model/film.js").Frame} Frame */

/** False if all values of a frame are NaN or infinite. @param {Strip} strip @param {number} i @param {number} channel */
function hasFinite(strip, i, channel) {
  const planes = strip.frame(i)?.side?.planes;
  if (!planes?.marks) return true;
  const size = planes.height * planes.width;
  return !planes.marks
    .subarray(channel * size, (channel + 1) * size)
    .every((mark) => mark >= MARK.NAN && mark <= MARK.NEGATIVE_INFINITY);
}

/**
 * A frame in words: its value at a place, its range, its fault.
 * @param {Strip} strip @param {number} i @param {number} channel
 * @param {{u: number, v: number}|null} place
 */
export function describe(strip, i, channel, place) {
  const name = `channel ${channel}`;
  if (!strip.hasMaps) return name;
  const why = whyNoFrame(strip, i, channel);
  if (why) return `${name}: ${why}`;
  const side = strip.frame(i)?.side;
  const fault = faultOfFrame(strip, i, channel);
  if (!side) return `${name}: loading${fault ? ` · ${fault.word}` : ""}`;
  const { planes, lo, hi } = side;
  if (!place) {
    const range = `${short(lo[channel])}…${short(hi[channel])}`;
    const far = isBeyond(strip, side, channel) ? "beyond the scale" : "";
    const said = [name, hasFinite(strip, i, channel) ? range : "", fault?.word ?? "", far];
    return said.filter(Boolean).join(" · ");
  }
  const [y, x] = [Math.floor(place.v * planes.height), Math.floor(place.u * planes.width)];
  const said = valueText(valueAt(planes, channel, y, x, lo[channel], hi[channel]));
  const { block, layout } = /** @type {import("../server/answers.js").MapsPicture} */ (
    pictureOf(/** @type {Frame} */ (strip.frame(i)).maps, strip.role)
  );
  const at = positionText(layout === "rows", block, y, x);
  const far = isBeyond(strip, side, channel) ? " · beyond the scale" : "";
  return `${name} · ${at} · ${said}${far}`;
}

// The film strip: chosen channels at all kept steps; a strip per column, below each other.

/** @typedef {import("../server/source.js").Model} Model */
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
    bar.draw(found, notes);
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
