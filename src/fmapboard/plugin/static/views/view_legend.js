// @ts-check
/** The colour bar with its values, and the meaning of the colours of marks. */

import { sideName } from "../state/compare.js";
import { h, say, show } from "./dom.js";
import { drawKernelBars } from "./kernel_bars.js";
import { short, ticks, whole } from "../draw/number_text.js";
import { isDifference } from "../draw/scene_columns.js";
import { FAULT_COLOURS, LARGE, LEGEND, MARK, MARK_COLOURS, css, ramp } from "../draw/palettes.js";

/** What a title of a difference says of the inputs of its sides. */
const INPUTS = Object.freeze({
  same: "",
  loading: "",
  different: ", different inputs",
  unknown: ", inputs not known",
});

/** Red, green and blue above one another, each while the other two are 0. */
const RGB = ["rgb(0 128 128), rgb(255 128 128)", "rgb(128 0 128), rgb(128 255 128)"]
  .concat("rgb(128 128 0), rgb(128 128 255)")
  .map((ends, i) => `linear-gradient(to right, ${ends}) 0 ${50 * i}% / 100% 34% no-repeat`)
  .join(", ");

/** A CSS gradient of a palette; "rgb" for kernels. @param {string} name */
export function gradient(name) {
  if (name === "rgb") return RGB;
  return `linear-gradient(to right, ${ramp(name, 17).map(css).join(", ")})`;
}

/** A colour bar with its scale below. */
export function createBar() {
  const ramp = h("div", { class: "ramp" });
  const scale = h("div", { class: "ramp-scale" });
  const title = h("span", { class: "ramp-title" });
  const element = h("div", { class: "bar" }, title, h("div", { class: "ramp-room" }, ramp, scale));
  let before = "";

  /** @param {number} lo @param {number} hi @param {string} palette @param {string} text */
  function draw(lo, hi, palette, text) {
    const key = `${lo}/${hi}/${palette}/${text}`;
    if (key === before) return;
    before = key;
    say(title, text);
    show(title, Boolean(text));
    ramp.style.background = gradient(palette);
    ramp.classList.toggle("rgb", palette === "rgb");
    const places = ticks(lo, hi, 4).filter(
      (value) => hi > lo && value > lo + (hi - lo) * 0.22 && value < hi - (hi - lo) * 0.22,
    );
    const at = [lo, ...places, hi];
    scale.replaceChildren(
      ...at.map((value, i) => {
        const label = h("span", { text: short(value) });
        label.style.left = `${hi > lo ? ((value - lo) / (hi - lo)) * 100 : i * 100}%`;
        if (i === 0) label.className = "start";
        if (i === at.length - 1) label.className = "end";
        return label;
      }),
    );
    element.setAttribute("aria-label", `${text}: ${short(lo)} to ${short(hi)}`);
  }
  return { element, draw };
}

export function createLegend() {
  const main = createBar();
  const between = createBar();
  /** @type {HTMLElement|null} */
  let deadText = null;
  const edge = h("i", { class: "edge" });
  edge.style.borderColor = FAULT_COLOURS.large;
  const large = h(
    "li",
    { title: `a magnitude of ${whole(LARGE)} or more` },
    edge,
    h("span", { text: "large" }),
  );
  const marks = h(
    "ul",
    { class: "marks", "aria-label": "What is no value" },
    ...LEGEND.map(({ code, name, what }) => {
      const swatch = h("i");
      swatch.style.background = css(MARK_COLOURS[code]);
      const said = h("span", { text: name });
      if (code === MARK.DEAD) deadText = said;
      return h("li", { title: what }, swatch, said);
    }),
    large,
  );
  const element = h("div", { class: "legend" }, main.element, between.element, marks);

  /** @param {import("../app.js").Model} model @param {number|null} hovered */
  function draw(model, hovered) {
    const { scene, state } = model;
    const maps = scene?.kind === "maps" ? scene : null;
    show(main.element, Boolean(maps && !isDifference(maps.parts[0])));
    show(between.element, Boolean(maps?.parts.some(isDifference)));
    if (scene?.kind === "kernels") drawKernelBars(scene, main, between);
    if (!maps) return;
    const follower = maps.question.role === "feature_maps" && maps.maps.header.activation;
    if (deadText) say(deadText, follower ? `dead after its ${follower.type}: 0 there` : "dead");
    const c = hovered ?? state.channel ?? maps.order[0] ?? 0;
    const whose = maps.wholeLayer ? "whole layer" : `channel ${c}`;
    const where = `${whose}${state.locked ? ", all steps" : ""}`;
    main.draw(maps.ranges.lo[c], maps.ranges.hi[c], state.colours, where);
    const compared = maps.columns.filter((each) => each.difference);
    if (compared.length) {
      const all = maps.columns.map((each) => each.question);
      const names = compared.map(({ question }) => (question ? sideName(question, all) : ""));
      const pair = `${sideName(maps.question, all)} − ${names.length > 1 ? "each other column" : names[0]}`;
      between.draw(
        maps.differenceRanges.lo[c],
        maps.differenceRanges.hi[c],
        "signed",
        `${pair}, ${state.scale === "layer" ? "whole layer" : `channel ${c}`}${INPUTS[model.sides?.inputs ?? "same"]}`,
      );
    }
  }
  return { element, draw };
}
