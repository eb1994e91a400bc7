// @ts-check
/** All views of the tab, and where each one is on the page. */

import { html } from "../vendor/preact_htm.js";
import { Attribution } from "./attribution.js";
import { createBar } from "./bar.js";
import { Channel } from "./channel.js";
import { Charts } from "./charts.js";
import { RankedLayers, Sides } from "./columns.js";
import { SMALL, h, mount, show } from "./controls.js";
import { createFilm } from "./film.js";
import { ChannelKernels, createGrid } from "./grid.js";
import { Head } from "./head.js";
import { createHelp } from "./help.js";
import { createLayers } from "./layers.js";
import { Empty, Notices, Order, ReportNote } from "./notices.js";
import { createOverview } from "./overview.js";
import { Pixel } from "./point.js";

/** @import {App} from "../app.js" */
/** @import {Model} from "../model/look.js" */

/** @typedef {"layers"|"details"} Drawer */

/**
 * In a small window, the list of layers and the details are drawers over the maps.
 * @param {App} app @param {HTMLElement} body @param {{[name in Drawer]: HTMLElement}} drawers
 */
export function createDrawers(app, body, drawers) {
  for (const name of /** @type {Drawer[]} */ (["layers", "details"])) {
    drawers[name].id = `drawer-${name}`;
    drawers[name].addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || body.dataset.drawer !== name) return;
      if (window.innerWidth > SMALL) return; // in a large window there are no drawers
      event.stopPropagation(); // the channel stays open
      open(null);
      /** @type {HTMLElement|null} */ (
        document.querySelector(`[aria-controls=drawer-${name}]`)
      )?.focus();
    });
  }
  /** @type {{layer: string, channel: number|null}|null} */
  let before = null;

  /** @param {Drawer|null} name @param {boolean} enter move the focus into it */
  function open(name, enter = false) {
    if (name) body.dataset.drawer = name;
    else delete body.dataset.drawer;
    if (name && enter) {
      const first = drawers[name].querySelector("[tabindex='0'], button, input");
      if (first instanceof HTMLElement) first.focus();
    }
    app.redraw();
  }

  /** Follows what the user chose: a layer closes its list, a channel opens the details. */
  function draw() {
    const { layer, channel } = app.state;
    const drawer = body.dataset.drawer;
    if (before && layer !== before.layer && drawer === "layers") open(null);
    if (before && channel !== before.channel) {
      if (channel !== null && !drawer) open("details");
      if (channel === null && drawer === "details") open(null);
    }
    before = { layer, channel };
  }
  const pull = (/** @type {Drawer} */ name) =>
    open(body.dataset.drawer === name ? null : name, true);
  return { pull, draw };
}

/** What is above the maps. @param {{app: App, model: Model, hovered: number|null}} props */
const Above = (props) => html`
  <${Head} ...${props} /><${Sides} ...${props} /><${RankedLayers} ...${props} /><${Order} ...${props} />
`;

/** What is beside the maps. @param {{app: App, model: Model}} props */
const Details = (props) => html`
  <${Pixel} ...${props} /><${Channel} ...${props} /><${ChannelKernels} ...${props} /><${Charts} ...${props} />
`;

/** @param {App} app */
export function createPage(app) {
  const bar = createBar(app);
  const report = mount(ReportNote);
  report.draw({ report: app.report });
  const notices = mount(Notices);
  const layers = createLayers(app);
  const above = mount(Above);
  const grid = createGrid(app);
  const aside = h("aside", { "aria-label": "Channel and layer over steps" });
  const details = mount(Details, aside);
  const film = createFilm(app);
  const attribution = mount(Attribution);
  const empty = mount(Empty);
  const help = createHelp(Boolean(app.report));
  const overview = createOverview(app);
  const main = h("main", {}, above.element, grid.element);
  const body = h("div", { class: "body" }, layers.element, main, aside, attribution.element);
  const drawers = createDrawers(app, body, { layers: layers.element, details: aside });
  const bars = h("header", { class: "bars" }, report.element, bar.element, notices.element);
  const views = [bars, body, overview.element, empty.element, help.element];
  const element = h("div", { class: "app" }, ...views);
  show(body, false); // nor laid out in vain

  /** @param {Model} model @param {{nothing: boolean, busy: boolean, hovered: number|null}} how `nothing`: there is no layer */
  function draw(model, { nothing, busy, hovered }) {
    const isFront = model.state.view === "overview";
    show(body, !nothing && !isFront);
    empty.draw({ model, shown: nothing, reload: () => app.renewal.reload() });
    notices.draw({ app, model });
    controls(model, nothing, busy);
    overview.draw(nothing ? { ...model, front: null } : model);
    if (!app.isStarting) help.draw();
    if (nothing || isFront) return;
    drawers.draw();
    layers.draw(model);
    const { view } = model.state;
    for (const each of [main, aside]) show(each, view === "maps");
    show(layers.element, view !== "attribution");
    attribution.draw({ model });
    if (view === "film") {
      if (!film.element.isConnected) body.append(film.element);
      film.draw(model);
      return;
    }
    film.rest();
    film.element.remove();
    if (view === "attribution") return;
    above.draw({ app, model, hovered });
    grid.draw(model);
    details.draw({ app, model });
  }

  /** @param {Model} model @param {boolean} nothing @param {boolean} busy */
  function controls(model, nothing, busy) {
    const drawer = /** @type {Drawer|undefined} */ (body.dataset.drawer);
    bar.draw({ model, nothing, drawer, pull: drawers.pull }, busy);
  }

  /** Only the slider has moved: marks as old what is still of another step. @param {Model} model */
  function age(model) {
    controls(model, false, true);
    layers.draw(model);
    if (model.state.view === "film") film.draw(model);
    else if (model.state.view === "attribution") attribution.draw({ model });
    else grid.mark(model);
  }

  /** @param {Model} model @param {number|null} channel under the pointer */
  const hover = (model, channel) => above.draw({ app, model, hovered: channel });
  return { element, bar, layers, hover, grid, film, help, overview, draw, age };
}
