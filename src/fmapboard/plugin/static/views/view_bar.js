// @ts-check
/** The top bar: the run, and actions on the whole view. */

import { button, choice, h, say, show } from "./dom.js";
import { explain } from "./glossary.js";
import { address } from "../host.js";
import { savePicture } from "./save.js";

const COLOURS = Object.freeze([
  "#ff7043",
  "#0077bb",
  "#cc3311",
  "#33bbee",
  "#ee3377",
  "#009988",
  "#bbbbbb",
]);

/** @param {import("../app.js").App} app */
export function createBarView(app) {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  const run = choice("Run", (value) => app.update({ run: value }));
  run.element.prepend(dot);
  const said = h("span", { class: "said", role: "status" });
  const live = h("button", {
    type: "button",
    class: "toggle",
    text: "Live",
    on: {
      click: () => {
        app.renewal.liveChosen = !app.renewal.live;
        app.reload();
      },
    },
  });
  explain(live, "live");
  const save = async () => {
    if (app.model) tell(await savePicture(app.model));
  };
  const share = async () => {
    try {
      await navigator.clipboard.writeText(address());
      tell("Link copied");
    } catch {
      tell("The address bar holds the link");
    }
  };
  const element = h(
    "div",
    { class: "top" },
    run.element,
    h("span", { class: "space" }),
    said,
    live,
    button({ icon: "reload", label: "Look for new steps", press: () => app.reload() }),
    button({ icon: "link", label: "Copy a link to this view", press: share }),
    button({ icon: "save", label: "Save the view as PNG", key: "p", press: save }),
    button({ text: "?", label: "Keys and terms", key: "?", press: () => app.page.help.toggle() }),
  );
  let until = 0;

  /** @param {string} text */
  function tell(text) {
    say(said, text);
    until = performance.now() + 2500;
    window.setTimeout(() => app.redraw(), 2600);
  }

  /** @param {import("../app.js").Model} model @param {boolean} busy @param {boolean} isLive */
  function draw(model, busy, isLive) {
    show(run.element, model.runs.length > 0);
    run.fill(
      model.runs.map((each) => [each.run, each.run || "."]),
      model.state.run,
    );
    const at = model.runs.findIndex((each) => each.run === model.state.run);
    dot.style.background = COLOURS[Math.max(0, at) % COLOURS.length];
    live.setAttribute("aria-pressed", String(isLive));
    if (performance.now() > until) say(said, busy && !model.playing ? "Loading…" : "");
  }
  return { element, draw, save };
}
