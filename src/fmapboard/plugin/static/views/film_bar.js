// @ts-check
/** Title and settings above a film strip, and since when its channels have faults. */

import { ROLE_NAMES, layerText } from "../state/compare.js";
import { MOST_CHANNELS, readChannels } from "../state/film.js";
import { TILES } from "../state/state.js";
import { FAR, onsets } from "../draw/film_scale.js";
import { counted, short, stepText } from "../draw/number_text.js";
import { choice, h, say, segments, show } from "./dom.js";
import { keptFrom } from "./view_first_fault.js";

/** @typedef {import("../data/answers.js").Role} Role */
/** @typedef {import("../data/film.js").Strip} Strip */
/** @typedef {import("../state/state.js").Palette} Palette */

const ROLES = /** @type {[Role, string][]} */ (Object.entries(ROLE_NAMES));
const MOST_ONSETS = 8;

/** @param {import("../app.js").App} app */
export function createFilmBar(app) {
  const title = h("h1");
  const facts = h("p", { class: "facts" });
  /** @type {HTMLInputElement} */
  const channels = h("input", {
    type: "search",
    class: "film-channels",
    "aria-label": "Channels of the film strip, such as 3, 17 or 8-11",
    title: `Channels, such as 3, 17 or 8-11; ${MOST_CHANNELS} at most`,
    on: {
      change: () => choose(),
      keydown: (event) => {
        if (event.key === "Enter") choose();
        if (event.key === "Enter" || event.key === "Escape") channels.blur();
      },
    },
  });
  const refused = h("span", { class: "differs", role: "status" });
  const roles = segments("What is drawn", ROLES, (role) => app.update({ role }));
  const sample = choice("Sample", (value) => app.update({ sample: Number(value) }));
  const colours = choice("Colours; Signed has zero in the middle", (/** @type {Palette} */ value) =>
    app.update({ colours: value }),
  );
  const lock = h("button", {
    type: "button",
    class: "toggle",
    text: "Scale locked over steps",
    title:
      "One scale for all steps of a channel, so that frames compare; off: each step its own (l)",
    on: {
      click: () =>
        app.update({ film_scale: app.state.film_scale === "locked" ? "step" : "locked" }),
    },
  });
  const size = choice("Size of a frame", (value) => app.update({ tile: Number(value) }));
  const notes = h("p", { class: "film-notes film-inputs", role: "status" });
  const columns = h("p", { class: "film-notes film-columns", role: "status" });
  const scale = h("p", { class: "film-notes film-scale" });
  const faults = h("p", { class: "film-faults" });
  const element = h(
    "header",
    { class: "head" },
    h("div", { class: "title" }, title, facts),
    h(
      "div",
      { class: "controls" },
      h("label", { class: "group" }, h("span", { class: "label", text: "Channels" }), channels),
      roles.element,
      sample.element,
      lock,
      colours.element,
      size.element,
      refused,
    ),
    columns,
    scale,
    notes,
    faults,
  );
  let drawn = 0;

  function choose() {
    const { channels: chosen, refused: why } = readChannels(channels.value, drawn);
    say(refused, why.join("; "));
    if (chosen.length) app.update({ channels: chosen.join(",") });
  }

  /**
   * @param {import("../data/tab_data.js").Model} model
   * @param {Strip[]} strips at least one @param {string[]} missing why columns have no strip
   */
  function draw({ state }, strips, missing) {
    const [strip] = strips;
    const { layer } = strip;
    drawn = strip.hasMaps ? layer.drawn : layer.channels;
    say(title, `Film strip of ${layerText(layer.key)}`);
    const [first, last] = [strip.steps[0], strip.steps[strip.steps.length - 1]];
    say(
      facts,
      `${layer.type} · ${counted(strip.steps.length, "kept step")}, ${stepText(first)} to ${stepText(last)}`,
    );
    const text = strip.channels.join(", ");
    if (channels.dataset.shown !== text) {
      channels.dataset.shown = text;
      channels.value = text;
    }
    roles.draw(state.role, (id) => id === state.role || layer.roles.includes(id));
    show(roles.element, layer.roles.length > 1);
    show(sample.element, layer.samples > 1);
    sample.fill(
      Array.from(
        { length: layer.samples },
        (_, k) => /** @type {[string, string]} */ ([String(k), `Sample ${k}`]),
      ),
      String(state.sample),
    );
    lock.setAttribute("aria-pressed", String(strip.isLocked));
    say(lock, strip.isLocked ? "Scale locked over steps" : "Scale of each step its own");
    colours.fill(
      [
        ["grey", "Grey"],
        ["viridis", "Viridis"],
        ["magma", "Magma"],
        ["signed", "Signed"],
      ],
      state.colours,
    );
    size.fill(
      TILES.map((side) => [String(side), side ? `Frames ${side} px` : "Frames auto"]),
      String(state.tile),
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
        step: each.step,
      })),
    );
    const kept = known.map((strip) => `${stepsOf(strip.history)} ${kindOfSteps(strip)}`);
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
          title: goText(each),
          on: { click: () => app.update({ step: each.to }) },
        }),
      );
    const more = found.length - items.length;
    faults.replaceChildren(
      ...(items.length
        ? items
        : [`Never non-finite, large, dead or constant at the ${kept.join(" and ")} steps.`]),
      ...(more > 0 ? [`and ${more} more`] : []),
    );
  }
  return { element, draw, channels };
}

/** Number of steps of a history. @param {import("../draw/scene.js").History|null} history */
const stepsOf = (history) => history?.steps.length ?? 0;

/**
 * What the steps of a history are: a report knows the numbers of more steps than it has pictures of.
 * @param {Pick<Strip, "history"|"steps">} strip
 */
const kindOfSteps = ({ history, steps }) => (stepsOf(history) > steps.length ? "logged" : "kept");

/** Where the button of a fault leads. @param {{step: number, to: number}} of */
function goText({ step, to }) {
  if (to === step) return `Go to step ${stepText(step)}`;
  return (
    `Go to step ${stepText(to)}, the ${to > step ? "next" : "last"} kept one: ` +
    `step ${stepText(step)} has no pictures`
  );
}

/**
 * Since when a channel has a fault, and which step shows it if that one has no pictures.
 * @param {import("../draw/film_scale.js").Onset} of @param {Pick<Strip, "history"|"steps">} strip
 */
export function onsetText({ channel, kind, word, step, after, count }, strip) {
  const kept = stepsOf(strip.history);
  const steps = `${kindOfSteps(strip)} step`;
  const to = keptFrom(strip.steps, step);
  const shown =
    to === step
      ? ""
      : ` · shown at step ${stepText(to)}, the ${to > step ? "next" : "last"} kept one`;
  const name = kind === "constant" ? "constant" : word;
  if (count === kept)
    return kept === 1
      ? `channel ${channel}: ${name} at the one ${steps}${shown}`
      : `channel ${channel}: ${name} at all ${kept} ${steps}s${shown}`;
  const since =
    after === null
      ? `step ${stepText(step)}`
      : `step ${stepText(step)} (not at ${stepText(after)})`;
  return `channel ${channel}: ${name} first at ${since}, at ${count} of ${kept} ${steps}s${shown}`;
}

/** What is known about the inputs of the steps of a strip, in words. @param {Strip} strip */
function inputNote(strip) {
  const { steps } = strip;
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
  const { hasMaps, locked, leftOut, sharing, isLocked, how, channels, history, beyond } = strip;
  if (!hasMaps) {
    return isLocked
      ? `Kernels: one scale, locked over ${strip.kernelsBeyond ? "the" : "all"} ${kindOfSteps(strip)} steps.${kernelsText(strip)}`
      : "Each kernel has the scale of its step: colours do not compare between steps.";
  }
  if (!locked) {
    return isLocked
      ? "The scale of all steps is not known: each step has its own."
      : "Each step has its own scale: colours do not compare between steps.";
  }
  const each = channels.map(
    (channel) => `channel ${channel} ${short(locked.lo[channel])} … ${short(locked.hi[channel])}`,
  );
  const said =
    how.scale === "layer" ? [`whole layer ${each[0].replace(/^channel \d+ /, "")}`] : each;
  const kept = stepsOf(history) - leftOut;
  const steps = `${kindOfSteps(strip)} step`;
  const over = sharing
    ? `all ${steps}s of ${sharing}`
    : beyond.size
      ? `the ${steps}s`
      : leftOut
        ? `${kept} of ${stepsOf(history)} ${steps}s`
        : kept === 1
          ? `the one ${steps}`
          : `all ${kept} ${steps}s`;
  const rest = leftOut
    ? ` The ${leftOut === 1 ? "step" : `${leftOut} steps`} with large values ${leftOut === 1 ? "is" : "are"} left out: there, colours stop at both ends.`
    : "";
  return `Scale locked over ${over}: ${said.join("; ")}.${rest}${beyondText(strip)}${strip.hasKernels ? kernelsText(strip) : ""}`;
}

/** That the scale of the kernels leaves steps out; "" if it does not. @param {Strip} strip */
function kernelsText({ kernelsBeyond }) {
  return kernelsBeyond
    ? " The scale of kernels leaves out steps at which maps of the layer have large values: there, their colours stop at both ends."
    : "";
}

/** Frames whose values the locked scale does not reach, in words; "" for none. @param {Strip} strip */
function beyondText({ inFilm: { beyond }, channels, how }) {
  const far = channels.filter((channel) => beyond.get(channel));
  if (!far.length) return "";
  const each = far.map(
    (channel) => `${counted(beyond.get(channel) ?? 0, "step")} of channel ${channel}`,
  );
  const which = how.scale === "layer" ? counted(beyond.get(far[0]) ?? 0, "step") : each.join(", ");
  return ` Frames marked ▲ (${which}) exceed the others ${FAR}-fold and are left out: there, colours stop at both ends.`;
}
