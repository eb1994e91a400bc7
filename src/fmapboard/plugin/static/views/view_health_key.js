// @ts-check
/** What the colours, the hatching and the brightness of the map mean. */

import { LEVELS, UNKNOWN_LEVEL, shadeOf } from "../draw/health_colours.js";
import { fillCells } from "../draw/health_paint.js";
import { short } from "../draw/number_text.js";
import { css } from "../draw/palettes.js";
import { prepare, theme } from "../draw/theme.js";
import { CODE, STATES, tableOf } from "../state/health_states.js";
import { h, say, segments } from "./dom.js";
import { inWordsOf } from "../state/dead_word.js";

/** @typedef {import("../draw/health_colours.js").Theme} Theme */
/** @typedef {import("../state/health_states.js").Shade} Shade */

const [WIDE, HIGH] = [22, 14];
const DOTTED = "the state of these cells is known, but not the number that brightness shows";

/** @param {import("../app.js").App} app */
export function createHealthKey(app) {
  const states = h("ul", { class: "states" });
  const shades = segments(
    "Brightness",
    [
      ["range", "Range", "brightness shows the range of values of a layer"],
      ["change", "Change", "brightness shows how much a layer has changed"],
    ],
    (shade) => app.update({ shade }),
  );
  const title = h("span", { class: "label" });
  const [low, high] = [h("span"), h("span")];
  const ramp = h("canvas", { class: "health-ramp", role: "img" });
  const scale = h("span", { class: "health-scale" }, low, ramp, high);
  const element = h(
    "div",
    { class: "health-key" },
    states,
    h(
      "div",
      { class: "brightness" },
      h("span", { class: "label", text: "Brightness" }),
      shades.element,
      title,
      scale,
    ),
  );
  let before = "";

  /** @param {import("../data/health.js").Health} health @param {Shade} shade */
  function draw(health, shade) {
    const table = tableOf(health);
    const { lo, hi, text, hasGaps } = table.shading(shade);
    const { present } = table;
    const dark = document.documentElement.dataset.theme === "dark";
    shades.draw(shade);
    const now = JSON.stringify([
      inWordsOf("dead"),
      lo,
      hi,
      text,
      [...present],
      hasGaps,
      dark,
      window.devicePixelRatio,
    ]);
    if (now === before) return;
    before = now;
    const theme = dark ? "dark" : "light";
    const codes = Object.values(CODE).filter((code) => present.has(code) || code === CODE.FINE);
    states.replaceChildren(
      ...codes.reverse().map((code) => entry(code, theme)),
      ...(hasGaps ? [entry(CODE.FINE, theme, true)] : []),
    );
    const known = Number.isFinite(lo);
    say(title, known ? `${text}, logarithmic:` : `${text}: not recorded`);
    scale.hidden = !known;
    say(low, `≤ ${short(lo, 2)}`);
    say(high, `≥ ${short(hi, 2)}`);
    ramp.setAttribute("aria-label", `from ${short(lo, 2)} to ${short(hi, 2)}`);
    const context = prepare(ramp, 4 * LEVELS, 10);
    for (let level = 0; level < LEVELS; level += 1) {
      context.fillStyle = css(shadeOf(theme, CODE.FINE, level));
      context.fillRect(4 * level, 0, 4, 10);
    }
  }
  return { element, draw };
}

/** @param {number} code @param {Theme} name @param {boolean} unknown of unknown brightness */
function entry(code, name, unknown = false) {
  const canvas = h("canvas");
  const context = prepare(canvas, WIDE, HIGH);
  const { width, height } = canvas;
  const image = context.getImageData(0, 0, width, height);
  const cell = {
    codes: Uint8Array.of(code),
    levels: Uint8Array.of(unknown ? UNKNOWN_LEVEL : Math.round(0.7 * (LEVELS - 1))),
    at: Int32Array.of(0),
  };
  const look = { ...theme(), theme: name, ratio: window.devicePixelRatio || 1 };
  const out = new Uint32Array(image.data.buffer);
  fillCells(out, width, height, { rows: 1, columns: 1 }, cell, look, 0);
  context.putImageData(image, 0, 0);
  if (unknown) return h("li", { title: DOTTED }, canvas, "brightness not recorded");
  const { word, what } = STATES[code];
  return h("li", { title: what }, canvas, inWordsOf(word));
}
