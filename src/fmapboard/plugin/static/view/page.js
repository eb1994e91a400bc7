// @ts-check
/** All views of the tab, and where each one is on the page. */

import { Attribution } from "./attribution.js";
import { createBar } from "./bar.js";
import { Channel } from "./channel.js";
import { Charts } from "./charts.js";
import { Sides } from "./columns.js";
import { h, mount, show } from "./dom.js";
import { createFilm } from "./film.js";
import { createGrid } from "./grid.js";
import { SMALL } from "./controls.js";
import { Head } from "./head.js";
import { createHelp } from "./help.js";
import { ChannelKernels } from "./kernels.js";
import { createLayers } from "./layers.js";
import { Empty, FirstFault, Gone, Order, Arrival, ReportNote, Sampling } from "./notices.js";
import { createOverview } from "./overview.js";
import { Pixel } from "./point.js";
import { RankedLayers } from "./ranked.js";

/** @typedef {"layers"|"details"} Drawer */

/**
 * In a small window, the list of layers and the details are drawers over the maps.
 * @param {import("../app.js").App} app @param {HTMLElement} body what holds both drawers
 * @param {{[name in Drawer]: HTMLElement}} drawers
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

/** @typedef {import("../model/look.js").Model} Model */

/**
 * @typedef {object} Circumstances
 * @property {boolean} nothing there is no layer to show
 * @property {boolean} busy an answer is awaited
 * @property {number|null} hovered channel under the pointer
 */

/** @param {import("../app.js").App} app */
export function createPage(app) {
  const bar = createBar(app);
  const sampling = mount(Sampling);
  const report = mount(ReportNote);
  report.draw({ report: app.report });
  const firstFault = mount(FirstFault);
  const gone = mount(Gone);
  const layers = createLayers(app);
  const head = mount(Head);
  const sides = mount(Sides);
  const ranked = mount(RankedLayers);
  const order = mount(Order);
  const grid = createGrid(app);
  const pixel = mount(Pixel);
  const channel = mount(Channel);
  const kernels = mount(ChannelKernels);
  const charts = mount(Charts);
  const film = createFilm(app);
  const attribution = mount(Attribution);
  const empty = mount(Empty);
  const help = createHelp(Boolean(app.report));
  const overview = createOverview(app);
  const arrival = mount(Arrival);
  const main = h(
    "main",
    {},
    head.element,
    sides.element,
    ranked.element,
    order.element,
    grid.element,
  );
  const aside = h(
    "aside",
    { "aria-label": "Channel and layer over steps" },
    pixel.element,
    channel.element,
    kernels.element,
    charts.element,
  );
  const body = h("div", { class: "body" }, layers.element, main, aside, attribution.element);
  const drawers = createDrawers(app, body, { layers: layers.element, details: aside });
  const bars = h(
    "header",
    { class: "bars" },
    report.element,
    bar.element,
    gone.element,
    firstFault.element,
    arrival.element,
    sampling.element,
  );
  const element = h(
    "div",
    { class: "app" },
    bars,
    body,
    overview.element,
    empty.element,
    help.element,
  );
  show(body, false); // nor laid out in vain

  /** @param {Model} model @param {Circumstances} circumstances */
  function draw(model, { nothing, busy, hovered }) {
    show(body, !nothing && !model.front);
    const isAttribution = model.state.view === "attribution";
    empty.draw({ model, shown: nothing, reload: () => app.reload() });
    sampling.draw(model);
    gone.draw(model);
    firstFault.draw({ model, visit: (target) => app.update(target, "visit") });
    controls(model, nothing, busy);
    const { isThere, arrived } = app.overview;
    const isLed = isThere && model.state.view === "maps";
    arrival.draw({ note: (isLed && arrived?.note) || "" });
    overview.draw(nothing ? { ...model, front: null } : model);
    if (nothing || model.front) return;
    drawers.draw();
    layers.draw(model);
    const isFilm = model.state.view === "film";
    show(main, !isFilm && !isAttribution);
    show(aside, !isFilm && !isAttribution);
    show(layers.element, !isAttribution);
    attribution.draw({ model });
    if (isFilm) {
      if (!film.element.isConnected) body.append(film.element);
      film.draw(model);
      return;
    }
    film.rest();
    film.element.remove();
    if (isAttribution) return;
    head.draw({ model, hovered });
    sides.draw({ app, model });
    ranked.draw({ app, model });
    order.draw(model);
    grid.draw(model);
    pixel.draw({ app, model });
    channel.draw({ app, model });
    kernels.draw({ app, model });
    charts.draw({ app, model });
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
  return { element, bar, layers, head, grid, film, help, overview, draw, age };
}
