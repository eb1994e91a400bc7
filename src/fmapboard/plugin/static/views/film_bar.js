// @ts-check
/** Title and settings above a film strip, and since when its channels have faults. */

import { ROLE_NAMES, layerText } from "../state/compare.js";
import { MOST_CHANNELS, readChannels } from "../state/film.js";
import { TILES } from "../state/state.js";
import { onsets } from "../draw/film_scale.js";
import { counted, stepText } from "../draw/number_text.js";
import { choice, h, say, segments, show } from "./dom.js";
import { goText, inputNote, keptKind, onsetText, scaleNote, stepsOf } from "./film_notes.js";
import { keptFrom } from "./view_first_fault.js";
import { deadWord } from "../state/dead_word.js";

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
      `${layer.type} · ${counted(strip.steps.length, `kept ${strip.unit}`)}, ${stepText(first)} to ${stepText(last)}`,
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
    const { unit } = strip;
    say(lock, strip.isLocked ? `Scale locked over ${unit}s` : `Each ${unit} on its own scale`);
    lock.title =
      "On: all frames of a channel have one scale, so that equal colours are equal values. " +
      `Off: the frame of each ${unit} has a scale of its own (l)`;
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
  return { element, draw, channels };
}
