// @ts-check
/** The application: draws the tab after each change of the state and each answer. */

import { mainSide, partners } from "./model/compare.js";
import * as host from "./model/host.js";
import { CALM_MS, SHEER, corrected, look } from "./model/look.js";
import { Overview } from "./model/overview_acts.js";
import { Visits } from "./model/visits.js";
import { Renewal } from "./model/renewal.js";
import { Scenes } from "./model/scene.js";
import * as states from "./model/state.js";
import { callRoot, kindOf, speakOf } from "./model/words.js";
import { takeFrom } from "./server/api.js";
import { Cache } from "./server/cache.js";
import { Source } from "./server/source.js";
import { indexOf, neighbours, walk } from "./server/steps.js";
import { html, render } from "./vendor/preact_htm.js";
import { Page } from "./view/page.js";
import { putPoint } from "./view/point.js";

/** @import {Gone, How, Kind, Model, State} from "./model/model.js" */
/** @import {Acts, ReportFacts} from "./view/view.js" */

const FRAME_MS = 200;
const REACH = 6;
/** At the start, so long more answers are waited for before what is known is drawn. */
const PATIENCE_MS = 150;

export class App {
  /** @param {ReportFacts|null} report null in TensorBoard */
  constructor(report = null) {
    this.report = report;
    /** @type {State} */
    this.state = { ...states.START };
    const changed = (/** @type {boolean} */ early) => {
      if (early) return this.prefetch();
      if (this.isStarting) this.look(); // what is to be asked next does not wait for a frame
      this.redraw();
    };
    this.source = new Source(new Cache(changed));
    this.scenes = new Scenes(this.source);
    this.overview = new Overview(this);
    this.visits = new Visits();
    this.stepOnly = false;
    /** @type {Model|null} */
    this.model = null;
    this.playing = false;
    this.renewal = new Renewal(this);
    this.direction = 1;
    this.scheduled = false;
    /** Nothing could be used yet. */
    this.isStarting = true;
    this.hasLayers = false; // when it was last drawn
    this.drawnAt = performance.now();
    /** Column that was removed last, which `d` brings back. @type {State["compare"]} */
    this.removed = null;
    this.steppedAt = -Infinity;
    /** @type {Gone[]} */
    this.gone = [];
    /** @type {Set<string>} */
    this.relisted = new Set();
    /**
     * Layer that is shown until the first one with a difference is known.
     * @type {{run: string, layer: string}|null}
     */
    this.provisional = null;
    /** What can be done with the views that are on the page. */
    this.page = /** @type {Acts} */ ({});
  }

  /**
   * Puts the tab into the page and installs all listeners and timers.
   * @param {Parameters<typeof takeFrom>[0]} asked while the script was loading
   */
  start(asked = new Map()) {
    takeFrom(asked);
    this.state = states.fromEntries(host.readAddress());
    if (!this.state.run) this.overview.free();
    document.body.replaceChildren();
    host.followTheme(() => this.redraw());
    host.followFont(() => this.redraw());
    host.listen(() => this.renewal.reload());
    host.onAddress(() => this.follow());
    window.addEventListener("resize", () => this.redraw());
    if (!this.report) window.setInterval(() => this.renewal.tick(), 1000);
    this.look();
    this.redraw();
  }

  /** Takes over the state of an address that was changed by the user. */
  follow() {
    const asked = host.readAddress();
    if (host.hidden() || !asked.length) return;
    this.visits.leave();
    this.state = states.fromEntries(asked);
    this.redraw();
  }

  /** @param {Partial<State>} patch @param {How} how */
  update(patch, how = "auto") {
    const before = this.state;
    this.state = { ...before, ...patch };
    if (this.state.run !== before.run) this.overview.opened = "";
    if (this.visits.note(before, this.state, how)) host.writeAddress(states.toEntries(before));
    this.stepOnly = Object.keys(patch).length === 1 && "step" in patch;
    if ("step" in patch) {
      this.direction = (patch.step ?? Infinity) >= (before.step ?? Infinity) ? 1 : -1;
      this.steppedAt = performance.now();
      window.setTimeout(() => this.redraw(), CALM_MS + 10);
    }
    this.state.compare = states.swapped(this.state, before);
    this.redraw();
  }

  /** What sets one field of the state. @param {keyof State} field */
  set(field) {
    return (/** @type {State[keyof State]} */ value) =>
      this.update(/** @type {Partial<State>} */ ({ [field]: value }));
  }

  redraw() {
    if (this.scheduled) return;
    this.scheduled = true;
    window.requestAnimationFrame(() => {
      this.scheduled = false;
      if (host.hidden()) return;
      if (this.isAwaiting()) this.redraw();
      else this.draw();
    });
  }

  /** True at the start while more is about to come: drawing with each answer would take longer. */
  isAwaiting() {
    if (!this.isStarting || performance.now() - this.drawnAt > PATIENCE_MS) return false;
    const { front, layers } = this.model ?? { front: null, layers: [] };
    const isNew = front ? front.ready : layers.length > 0 && !this.hasLayers;
    return !isNew && this.source.cache.left() > 0;
  }

  /** Looks at what is known, and asks for what is missing. */
  look() {
    this.source.cache.begin();
    callRoot(this.source.runs().value?.root);
    Object.assign(this, corrected(this));
    this.model = look(this);
    return this.model;
  }

  draw() {
    const before = this.model;
    const model = this.look();
    if (model.isLost) this.relist(this.state.layer + this.state.step);
    speakOf(kindOf(model.stepWords), model.front ? {} : model.layer);
    if (this.stepOnly && model.stale && model.scene && model.scene === before?.scene) {
      // Only the slider has moved: redraw the rest together with the new pictures.
      this.render(model, { nothing: false, busy: true, isOld: true });
      this.source.cache.end();
      this.announce(model);
      return;
    }
    this.stepOnly = false;
    if (!this.isStarting)
      host.writeAddress(states.toEntries(this.state), this.visits.take(this.state));
    const busy = this.source.cache.left() > 0;
    const nothing = model.listed && !model.layers.length && !busy;
    this.render(model, { nothing, busy, isOld: false });
    this.source.cache.end(); // the contact sheet asks for what is in sight
    this.announce(model);
    [this.hasLayers, this.drawnAt] = [model.layers.length > 0, performance.now()];
    if (!nothing) this.prefetch();
  }

  /** @param {Model} model @param {{nothing: boolean, busy: boolean, isOld: boolean}} how */
  render(model, how) {
    render(html`<${Page} app=${this} model=${model} ...${how} />`, document.body);
  }

  /** Reloads once after TensorBoard dropped a listed step. @param {string} what layer and step */
  relist(what) {
    if (this.relisted.has(what)) return;
    this.relisted.add(what);
    window.setTimeout(() => this.renewal.reload(), 0);
  }

  /** Publishes what is shown on the document, for tests and scripts. @param {Model} model */
  announce(model) {
    const { dataset } = document.documentElement;
    const isUp = !model.front || this.overview.isUp;
    const done = !model.stale && !this.source.cache.left() && isUp;
    if (model.scene && !model.stale) {
      dataset.step = String(model.scene.question.step);
      dataset.layer = model.scene.question.key;
      dataset.drawn = String(Number(dataset.drawn ?? 0) + 1);
    }
    if (model.front) for (const name of ["step", "layer"]) delete dataset[name];
    dataset.view = this.state.view;
    const shown = model.front ? model.front.ready && isUp : model.scene || !model.layers.length;
    const usable = model.problem || (model.listed && shown);
    // The overview can be read before its findings' tiles.
    const ready = usable && (done || model.front);
    dataset.busy = String(!done || this.isStarting);
    if (ready) dataset.ready = "true";
    else if (!usable) delete dataset.ready;
    if (!ready || !this.isStarting) return;
    performance.mark("usable");
    this.isStarting = false;
    // So that keys work without a click into the frame; a notebook keeps them until then.
    if (!this.report) window.focus();
    this.redraw(); // what nobody waits for
  }

  /** Requests a likely next step; one at a time, and only if no other request is in flight. */
  prefetch() {
    const { state, layer, scene, stale } = this.model ?? {}; // a newer state may have another run
    if (this.model?.front) return this.overview.further();
    if (state?.view === "film") return; // the strip loads its own frames
    if (!state || !layer || !scene || stale || host.hidden()) return;
    if (this.source.cache.left(undefined, true)) return;
    const at = indexOf(layer.steps, state.step);
    for (const i of neighbours(layer.steps.length, at, this.direction, REACH)) {
      const there = { ...state, step: layer.steps[i] };
      const others = this.scenes.placed(there, layer).map((each) => each.question);
      for (const question of [mainSide(there, layer), ...others]) {
        if (!question || this.source.knows(question)) continue;
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

  /** Shows a column beside the main one, or none. @param {Kind|"off"} kind */
  compare(kind) {
    if (kind === "off") {
      this.removed = this.state.compare;
      this.update({ compare: null, rank: false });
      return;
    }
    const runs = partners(this.state.run, this.model?.runs ?? []);
    const compare = states.newColumn(kind, this.state, this.model?.layer, runs);
    if (compare) this.update({ compare });
  }

  /** Removes the column; without one, brings back the last, or adds another step. */
  toggleColumn() {
    if (this.state.compare) this.compare("off");
    else if (this.removed) this.update({ compare: this.removed });
    else this.compare("step");
  }

  /** @param {number} by number of channels */
  moveChannel(by) {
    if (this.state.view === "film") this.page.film.move(by);
    else this.page.grid.move(by, false);
  }

  /**
   * A click on a tile: points at a place, chooses a channel for the film strip, or opens it.
   * @param {number} channel @param {{u: number|null, v: number|null}} place
   * @param {MouseEvent} event
   */
  pick(channel, { u, v }, event) {
    if (this.state.role === "kernels") {
      if (channel >= 0) this.update({ channel });
    } else if ((this.state.pixel || event.altKey) && u !== null && v !== null) {
      putPoint(this, { u, v });
    } else if (event.shiftKey || event.ctrlKey || event.metaKey) {
      this.update({ channels: states.toggled(this.state, channel) });
    } else this.update({ channel });
  }

  /**
   * Opens the film strip of the open channel and those chosen with it, or goes back to the maps.
   */
  toggleFilm() {
    const { view, channel, channels } = this.state;
    if (view === "film") this.update({ view: "maps" });
    else if (channel === null || channels.includes(channel)) this.update({ view: "film" });
    else this.update({ view: "film", channels: [] });
  }

  toggleOverlay() {
    this.update({ overlay: this.model?.overlay ? 0 : SHEER });
  }
}
