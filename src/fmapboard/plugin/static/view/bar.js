// @ts-check
/** The switch between the pages of the tab. */

import { middle } from "../model/compare.js";
import { opening } from "../model/front.js";
import { address } from "../model/host.js";
import { counted, runText } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { button, choice, h, say, segments, show } from "./dom.js";
import { explain } from "./help.js";
import { mount } from "./mount.js";
import { RunPicker } from "./runs.js";
import { saveAttribution, savePicture } from "./save.js";

// The switch between the pages of the tab.

/** @typedef {import("../model/state.js").View} View */

/** @type {[View, string, string][]} */
const PAGES = [
  ["overview", "Overview", "What is wrong in the run, and since when: all layers and steps (v)"],
  ["maps", "Maps", "The channels of one layer at one step (v)"],
  ["film", "Film", "Chosen channels at all steps, one column per step (m)"],
];

/** @param {import("../app.js").App} app */
export function createSwitch(app) {
  const { element, draw } = segments("Page", PAGES, (view) => app.update({ view }));
  element.classList.add("switch");
  return {
    element,
    draw: (/** @type {View} */ view) => draw(view === "attribution" ? "maps" : view),
  };
}

// The top bar: the run, and actions on the whole view.

/** Longest name of a run in the list, which shows it in one line. */
const MOST_SHOWN = 46;
/** From this many runs on they can be searched. */
const MANY = 8;

/** Appended to the name of a run; "" without a warning. @param {number} [count] */
const warned = (count) => (count ? ` · ${counted(count, "warning")}` : "");

/** @param {import("../app.js").App} app */
export function createBarView(app) {
  const dot = h("i", { class: "dot", "aria-hidden": "true" });
  const open = (/** @type {string} */ value) => app.update(opening(app.state, value));
  const run = choice("Run", open);
  run.element.prepend(dot);
  const pages = createSwitch(app);
  const search = mount(RunPicker);
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
  const press = () => app.reload();
  const reload = button({ icon: "reload", label: "Look for new steps", press });
  const save = async () => {
    if (app.state.view === "film") tell(await app.page.film.save(tell));
    else if (app.model && app.state.view === "attribution") tell(await saveAttribution(app.model));
    else if (app.model) tell(await savePicture(app.model));
  };
  const download = button({ icon: "save", label: "Save the view as PNG", key: "p", press: save });
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
    pages.element,
    run.element,
    search.element,
    h("span", { class: "space" }),
    said,
    ...(app.report ? [] : [live, reload]),
    button({ icon: "link", label: "Copy a link to this view", press: share }),
    download,
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
      model.runs.map(({ run: name }) => [
        name,
        middle(runText(name), MOST_SHOWN) + warned(app.overview.warnings.get(name)),
      ]),
      model.state.run,
    );
    run.element.title = `Run ${runText(model.state.run)}`;
    dot.style.background = runColour(model.state.run, model.runs);
    pages.draw(model.state.view);
    show(download, !model.front);
    show(search.element, model.runs.length >= MANY);
    search.draw({
      label: "Search runs",
      text: "Search",
      choose: open,
      runs: model.runs.map((each) => each.run),
      chosen: model.state.run,
      colourOf: (name) => runColour(name, model.runs),
    });
    live.setAttribute("aria-pressed", String(isLive));
    if (performance.now() > until) say(said, busy && !model.playing ? "Loading…" : "");
  }
  return { element, draw, save };
}
