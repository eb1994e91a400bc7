// @ts-check
/** The application: draws the tab after each change of the state and each answer. */

import { firstOther, mainSide, partners, swapped } from "./state/compare.js";
import { h } from "./views/dom.js";
import * as host from "./host.js";
import { installKeys } from "./state/keys.js";
import { CALM_MS, look } from "./state/look.js";
import { Renewal } from "./state/renewal.js";
import { Source } from "./data/tab_data.js";
import { START, fromEntries, toEntries } from "./state/state.js";
import { indexOf, neighbours, walk } from "./state/steps.js";
import { Store } from "./data/store.js";
import { createBarView } from "./views/view_bar.js";
import { createChannel } from "./views/view_channel.js";
import { createCharts } from "./views/view_charts.js";
import { createEmpty } from "./views/view_empty.js";
import { createFirstFault } from "./views/view_first_fault.js";
import { createGrid } from "./views/view_grid.js";
import { createHead } from "./views/view_head.js";
import { createHelp } from "./views/view_help.js";
import { createLayers } from "./views/view_layers.js";
import { createLegend } from "./views/view_legend.js";
import { createSampling } from "./views/view_sampling.js";
import { createSides } from "./views/view_sides.js";
import { createTime } from "./views/view_time.js";

/** @typedef {import("./data/tab_data.js").Model} Model */
/** @typedef {import("./state/state.js").State} State */

const FRAME_MS = 200;
const REACH = 6;

export class App {
  constructor() {
    /** @type {State} */
    this.state = { ...START };
    this.source = new Source(
      new Store((prefetched) => (prefetched ? this.prefetch() : this.redraw())),
    );
    this.stepOnly = false;
    /** @type {Model|null} */
    this.model = null;
    this.playing = false;
    this.renewal = new Renewal(this);
    this.direction = 1;
    this.scheduled = false;
    /** @type {number|null} */
    this.hovered = null;
    this.steppedAt = -Infinity;
    /** @type {Set<string>} */
    this.relisted = new Set();
    this.bar = createBarView(this);
    this.time = createTime(this);
    this.sampling = createSampling();
    this.firstFault = createFirstFault(this);
    this.layers = createLayers(this);
    this.head = createHead(this);
    this.legend = createLegend();
    this.sides = createSides();
    this.grid = createGrid(this);
    this.channel = createChannel(this);
    this.charts = createCharts(this);
    this.empty = createEmpty(this);
    this.help = createHelp();
    const main = h(
      "main",
      {},
      this.head.element,
      this.legend.element,
      this.sides.element,
      this.grid.element,
    );
    const aside = h(
      "aside",
      { "aria-label": "Channel and layer over steps" },
      this.channel.element,
      this.charts.element,
    );
    this.body = h("div", { class: "body" }, this.layers.element, main, aside);
    this.root = h(
      "div",
      { class: "app" },
      this.bar.element,
      this.time.element,
      this.firstFault.element,
      this.sampling.element,
      this.body,
      this.empty.element,
      this.help.element,
    );
  }

  /** Puts the tab into the page and installs all listeners and timers. */
  start() {
    this.state = fromEntries(host.readAddress());
    document.body.replaceChildren(this.root);
    host.followTheme(() => this.redraw());
    host.listen(() => this.reload());
    host.onAddress(() => this.follow());
    installKeys(this);
    window.addEventListener("resize", () => this.redraw());
    window.setInterval(() => this.renewal.tick(), 1000);
    window.focus(); // so that keys work without a click into the frame
    this.redraw();
  }

  /** Takes over the state of an address that was changed by the user. */
  follow() {
    const asked = host.readAddress();
    if (host.hidden() || !asked.length) return;
    this.state = fromEntries(asked);
    this.redraw();
  }

  /** @param {Partial<State>} patch */
  update(patch) {
    const before = this.state;
    this.state = { ...before, ...patch };
    this.stepOnly = Object.keys(patch).length === 1 && "step" in patch;
    if ("step" in patch) {
      this.direction = (patch.step ?? Infinity) >= (before.step ?? Infinity) ? 1 : -1;
      this.steppedAt = performance.now();
      window.setTimeout(() => this.redraw(), CALM_MS + 10);
    }
    this.state.other = swapped(this.state, before);
    this.redraw();
  }

  redraw() {
    if (this.scheduled) return;
    this.scheduled = true;
    window.requestAnimationFrame(() => {
      this.scheduled = false;
      if (!host.hidden()) this.draw();
    });
  }

  /** Requests again what may have grown, without changing the state. */
  reload() {
    this.renewal.reload();
  }

  draw() {
    const before = this.model;
    const model = look(this);
    this.model = model;
    if (this.stepOnly && model.stale && model.scene && model.scene === before?.scene) {
      // Only the slider has moved: redraw the rest together with the new pictures.
      this.time.draw(model);
      this.layers.age(model);
      this.grid.mark(model);
      this.announce(model);
      return;
    }
    this.stepOnly = false;
    host.writeAddress(toEntries(this.state));
    const nothing = model.listed && !model.layers.length && !this.source.store.busy;
    this.body.hidden = nothing;
    this.time.element.hidden = nothing;
    this.empty.draw(model, nothing);
    this.sampling.draw(model);
    this.firstFault.draw(model);
    this.bar.draw(model, this.source.store.busy, this.renewal.live);
    if (nothing) {
      this.announce(model);
      return;
    }
    this.time.draw(model);
    this.layers.draw(model);
    this.head.draw(model);
    this.legend.draw(model, this.hovered);
    this.sides.draw(model);
    this.grid.draw(model);
    this.channel.draw(model);
    this.charts.draw(model);
    this.announce(model);
    this.prefetch();
  }

  /** Reloads once after TensorBoard dropped a listed step. @param {string} what layer and step */
  relist(what) {
    if (this.relisted.has(what)) return;
    this.relisted.add(what);
    window.setTimeout(() => this.reload(), 0);
  }

  /** Publishes what is shown on the document, for tests and scripts. @param {Model} model */
  announce(model) {
    const { dataset } = document.documentElement;
    const done = !model.stale && !this.source.store.busy;
    if (model.scene && !model.stale) {
      dataset.step = String(model.scene.question.step);
      dataset.layer = model.scene.question.key;
      dataset.drawn = String(Number(dataset.drawn ?? 0) + 1);
    }
    const usable = model.problem || (model.listed && (model.scene || !model.layers.length));
    if (done && usable && !dataset.ready) performance.mark("usable");
    if (done && usable) dataset.ready = "true";
    else if (!usable) delete dataset.ready;
    dataset.busy = String(!done);
  }

  /** Requests a likely next step; one at a time, and only if no other request is in flight. */
  prefetch() {
    const { layer, scene, stale } = this.model ?? {};
    const { state } = this;
    if (!layer || !scene || stale || host.hidden() || this.source.store.pending.size) return;
    const at = indexOf(layer.steps, state.step);
    for (const i of neighbours(layer.steps.length, at, this.direction, REACH)) {
      const question = mainSide({ ...state, step: layer.steps[i] }, layer);
      if (question && !this.source.knows(question)) {
        this.source.maps(question, true);
        return; // its answer calls prefetch() again
      }
    }
  }

  // User actions.

  shownStep() {
    return this.model?.scene?.question.step ?? this.state.step;
  }

  /** @param {number} by number of steps */
  stepBy(by) {
    this.update({ step: walk(this.model?.steps ?? [], this.state.step, by) });
  }

  /** @param {"first"|"last"} end */
  stepTo(end) {
    this.update({ step: end === "last" ? null : (this.model?.steps[0] ?? null) });
  }

  play() {
    this.playing = !this.playing;
    const steps = this.model?.steps ?? [];
    if (this.playing && indexOf(steps, this.state.step) === steps.length - 1) this.stepTo("first");
    if (this.playing) window.setTimeout(() => this.advance(), FRAME_MS);
    this.redraw();
  }

  /** Shows the next step once the current one is drawn; stops at the last. */
  advance() {
    if (!this.playing) return;
    const steps = this.model?.steps ?? [];
    if (host.hidden() || indexOf(steps, this.state.step) >= steps.length - 1) {
      this.playing = false;
      this.update({ step: this.state.step });
      return;
    }
    if (!this.model?.stale) this.stepBy(1);
    window.setTimeout(() => this.advance(), FRAME_MS);
  }

  /** @param {number|null} channel under the pointer */
  hover(channel) {
    this.hovered = channel;
    if (this.model) this.legend.draw(this.model, channel);
  }

  /** @param {import("./state/state.js").Comparison} kind */
  compare(kind) {
    const runs = partners(this.state.run, this.model?.runs ?? []);
    const other = firstOther(kind, this.state, this.model?.layer, runs);
    this.update(other === null ? { compare: "off", other: "" } : { compare: kind, other });
  }

  /** @param {number} by number of channels */
  moveChannel(by) {
    this.grid.move(by, false);
  }

  toggleOverlay() {
    this.update({ overlay: this.state.overlay > 0 ? 0 : 60 });
  }
}
