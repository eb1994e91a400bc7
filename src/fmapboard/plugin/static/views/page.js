// @ts-check
/** All views of the tab, and where each one is on the page. */

import { h, show } from "./dom.js";
import { createDrawers } from "./drawers.js";
import { mount } from "./mount.js";
import { createAttribution } from "./view_attribution.js";
import { createArrival } from "./view_arrival.js";
import { createBarView } from "./view_bar.js";
import { createChannel } from "./view_channel.js";
import { createCharts } from "./view_charts.js";
import { Empty } from "./view_empty.js";
import { createFilm } from "./view_film.js";
import { FirstFault } from "./view_first_fault.js";
import { Gone } from "./view_gone.js";
import { createGrid } from "./view_grid.js";
import { createHead } from "./view_head.js";
import { createHelp } from "./view_help.js";
import { createKernels } from "./view_kernels.js";
import { createLayers } from "./view_layers.js";
import { Legend } from "./view_legend.js";
import { Order } from "./view_order.js";
import { createOverview } from "./view_overview.js";
import { createPixel } from "./view_pixel.js";
import { createRanked } from "./view_ranked.js";
import { createReport } from "./view_report.js";
import { createSampling } from "./view_sampling.js";
import { createSides } from "./view_sides.js";
import { createTime } from "./view_time.js";

/** @typedef {import("../data/tab_data.js").Model} Model */

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
