// @ts-check
/** In a small window, the list of layers and the details are drawers over the maps. */

import { createAttribution } from "./attribution.js";
import { createBarView } from "./bar.js";
import { createChannel } from "./channel.js";
import { createCharts } from "./charts.js";
import { createSides } from "./columns.js";
import { h, show } from "./dom.js";
import { createFilm } from "./film.js";
import { createGrid } from "./grid.js";
import { createHead } from "./head.js";
import { createHelp } from "./help.js";
import { createKernels } from "./kernels.js";
import { createLayers } from "./layers.js";
import { Legend } from "./legend.js";
import { mount } from "./mount.js";
import {
  Empty,
  FirstFault,
  Gone,
  Order,
  createArrival,
  createReport,
  createSampling,
} from "./notices.js";
import { createOverview } from "./overview.js";
import { createPixel } from "./point.js";
import { createRanked } from "./ranked.js";
import { createTime } from "./time.js";

// In a small window, the list of layers and the details are drawers over the maps.

/** @typedef {"layers"|"details"} Drawer */

/**
 * Buttons that open the drawers; the style sheet shows them only where the window is too small.
 * @param {import("../app.js").App} app @param {HTMLElement} body what holds both drawers
 * @param {{[name in Drawer]: HTMLElement}} drawers
 */
export function createDrawers(app, body, drawers) {
  const button = (/** @type {Drawer} */ name, /** @type {string} */ text) =>
    h("button", {
      type: "button",
      class: "drawer-button",
      text,
      "aria-expanded": "false",
      "aria-controls": `drawer-${name}`,
      on: { click: () => open(body.dataset.drawer === name ? null : name, true) },
    });
  const buttons = { layers: button("layers", "Layers"), details: button("details", "Details") };
  for (const name of /** @type {Drawer[]} */ (["layers", "details"])) {
    drawers[name].id = `drawer-${name}`;
    drawers[name].addEventListener("keydown", (event) => {
      const isSmall = buttons[name].offsetWidth > 0; // in a large window there are no drawers
      if (event.key !== "Escape" || body.dataset.drawer !== name || !isSmall) return;
      event.stopPropagation(); // the channel stays open
      open(null);
      buttons[name].focus();
    });
  }
  /** @type {{layer: string, channel: number|null}|null} */
  let before = null;

  /** @param {Drawer|null} name @param {boolean} enter move the focus into it */
  function open(name, enter = false) {
    if (name) body.dataset.drawer = name;
    else delete body.dataset.drawer;
    for (const [each, of] of Object.entries(buttons)) {
      of.setAttribute("aria-expanded", String(each === name));
    }
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
  return { buttons, draw };
}

// All views of the tab, and where each one is on the page.

/** @typedef {import("../server/source.js").Model} Model */

/**
 * @typedef {object} Circumstances
 * @property {boolean} nothing there is no layer to show
 * @property {boolean} busy an answer is awaited
 * @property {boolean} live
 * @property {number|null} hovered channel under the pointer
 */

/** @param {import("../app.js").App} app */
export function createPage(app) {
  const bar = createBarView(app);
  const time = createTime(app);
  const sampling = createSampling();
  const report = createReport(app.report);
  const firstFault = mount(FirstFault);
  const gone = mount(Gone);
  const layers = createLayers(app);
  const head = createHead(app);
  const legend = mount(Legend);
  const sides = createSides(app);
  const ranked = createRanked(app);
  const order = mount(Order);
  const grid = createGrid(app);
  const pixel = createPixel(app);
  const channel = createChannel(app);
  const kernels = createKernels(app);
  const charts = createCharts(app);
  const film = createFilm(app);
  const attribution = createAttribution();
  const empty = mount(Empty);
  const help = createHelp(Boolean(app.report));
  const overview = createOverview(app);
  const arrival = createArrival(app);
  const main = h(
    "main",
    {},
    head.element,
    legend.element,
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
  head.toolbar.prepend(drawers.buttons.layers);
  head.toolbar.append(drawers.buttons.details);
  const bars = h(
    "header",
    { class: "bars" },
    report.element,
    bar.element,
    time.element,
    gone.element,
    firstFault.element,
    arrival.element,
    sampling.element,
    head.toolbar,
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
  for (const each of [body, time.element, head.toolbar]) show(each, false); // nor laid out in vain

  /** @param {Model} model @param {Circumstances} circumstances */
  function draw(model, { nothing, busy, live, hovered }) {
    show(body, !nothing && !model.front);
    show(time.element, !nothing && !model.front);
    const isAttribution = model.state.view === "attribution";
    show(head.toolbar, !nothing && (model.state.view === "maps" || isAttribution));
    empty.draw({ model, shown: nothing, reload: () => app.reload() });
    sampling.draw(model);
    gone.draw(model);
    firstFault.draw({ model, visit: (target) => app.update(target, "visit") });
    bar.draw(model, busy, live);
    arrival.draw();
    overview.draw(nothing ? { ...model, front: null } : model);
    if (nothing || model.front) return;
    drawers.draw();
    time.draw(model);
    layers.draw(model);
    const isFilm = model.state.view === "film";
    show(main, !isFilm && !isAttribution);
    show(aside, !isFilm && !isAttribution);
    show(layers.element, !isAttribution);
    for (const each of Object.values(drawers.buttons)) show(each, !isAttribution);
    attribution.draw(model);
    if (isFilm) {
      if (!film.element.isConnected) body.append(film.element);
      pixel.rest();
      film.draw(model);
      return;
    }
    film.rest();
    film.element.remove();
    head.draw(model);
    if (isAttribution) return pixel.rest();
    legend.draw({ model, hovered });
    sides.draw(model);
    ranked.draw(model);
    order.draw(model);
    grid.draw(model);
    pixel.draw(model);
    channel.draw(model);
    kernels.draw(model);
    charts.draw(model);
  }

  /** Only the slider has moved: marks as old what is still of another step. @param {Model} model */
  function age(model) {
    time.draw(model);
    layers.age(model);
    if (model.state.view === "film") film.draw(model);
    else if (model.state.view === "attribution") attribution.draw(model);
    else grid.mark(model);
  }
  return { element, bar, time, layers, legend, grid, film, pixel, help, overview, draw, age };
}
