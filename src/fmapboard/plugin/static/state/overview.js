// @ts-check
/** Actions of the overview page: going to a layer and step, and back. */

import { HealthSource } from "../data/health.js";
import { SheetSource } from "../data/sheet.js";
import { choosing } from "./chosen_runs.js";
import { front, noteVerdict, targetOf } from "./front.js";

/** @typedef {import("./front.js").Target} Target */

export class Overview {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    this.source = new HealthSource(app.source.store);
    this.sheet = new SheetSource(app.source.store);
    this.all = false; // show all lines
    /** Where the user was led to, while there is something to say about it. @type {Target|null} */
    this.arrived = null;
    /** Number of warnings of each run whose findings are known. @type {Map<string, number>} */
    this.warnings = new Map();
    /** What is known of each run, in one line. @type {Map<string, import("./front.js").RunVerdict>} */
    this.verdicts = new Map();
    /** All that is in sight is drawn. */
    this.isUp = false;
    /** The address names no run, and the user has done nothing yet. */
    this.isFree = false;
  }

  /** Lets the first look at all runs decide which one is shown, until the user does something. */
  free() {
    this.isFree = true;
    const keep = () => void (this.isFree = false);
    for (const act of ["pointerdown", "keydown"]) {
      document.addEventListener(act, keep, { capture: true, once: true });
    }
  }

  /** What the page shows now. @param {import("../data/routes.js").RunEntry[]} runs */
  look(runs) {
    const { app } = this;
    const shown = front(app.source, this, app.state, runs);
    for (const { run, answer } of shown.answers) {
      const warnings = answer?.findings.filter((each) => each.class === "warning");
      if (warnings) this.warnings.set(run, warnings.length);
    }
    const [worst] = shown.lines;
    if (!this.isFree || !shown.complete || shown.unread || !worst) return shown;
    this.isFree = false;
    if (worst.run !== app.state.run) {
      app.state = { ...app.state, run: worst.run, layer: "" };
      app.redraw();
    }
    return shown;
  }

  /** Looks through the runs that are neither shown nor chosen, one after the other. */
  further() {
    const { front: shown, runs } = this.app.model ?? {};
    if (!shown?.complete || !this.isUp || this.app.state.chosen) return;
    for (const { run } of runs ?? []) {
      if (this.verdicts.has(run)) continue;
      const { value, error } = this.source.findings(run, "", true);
      if (!value && !error) return; // it comes back here
      noteVerdict(this.verdicts, run, value ?? null, error?.message ?? "");
      const found = value?.findings.filter((each) => each.class === "warning");
      if (found) this.warnings.set(run, found.length);
      this.app.redraw();
    }
  }

  /** True if the list of findings is to be seen: in a report from the beginning. */
  get isOpen() {
    const { findings } = this.app.state;
    return findings === "auto" ? Boolean(this.app.report) : findings === "open";
  }

  /** True if the maps are those that the user was led to. */
  get isThere() {
    const { run, layer, step } = this.app.state;
    const to = this.arrived;
    return Boolean(to && to.run === run && to.layer === layer && to.step === step);
  }

  /**
   * Shows the maps of a layer call at a step, or of the nearest drawn layer.
   * @param {Parameters<typeof targetOf>[1]} asked @param {number|null} channel
   * @returns {boolean} false if there are no pictures to go to
   */
  go(asked, channel = null) {
    const layers = this.app.source.layers(asked.run).value?.layers ?? [];
    const to = targetOf(layers, asked, this.app.report ? "the report" : "TensorBoard");
    if (!to) return false;
    this.arrived = to;
    const { run, layer, step } = to;
    this.app.update({ view: "maps", run, layer, step, channel, role: "feature_maps" });
    return true;
  }

  /** @param {readonly string[]} runs */
  choose(runs) {
    this.all = false;
    this.app.update(choosing(this.app.state, runs));
  }

  /** @param {boolean} all */
  showLines(all) {
    this.all = all;
    this.app.redraw();
  }

  /** Shows the overview, or the maps again. */
  toggle() {
    this.app.update({ view: this.app.state.view === "overview" ? "maps" : "overview" });
  }
}

/** @typedef {(app: import("../app.js").App, target: HTMLElement) => void|boolean} Act */

/** @param {number} rows @param {number} columns @returns {Act} */
function moving(rows, columns) {
  return (app, target) => {
    const isElsewhere = target.closest("button, summary, [role=dialog]") !== null;
    if (!isElsewhere) app.page.overview.move(rows, columns);
    return !isElsewhere;
  };
}

/** What keys do on the overview page. @type {Readonly<Record<string, Act>>} */
export const OVERVIEW_ACTS = Object.freeze({
  ArrowUp: moving(-1, 0),
  ArrowDown: moving(1, 0),
  ArrowLeft: moving(0, -1),
  ArrowRight: moving(0, 1),
  Home: moving(0, -Infinity),
  End: moving(0, Infinity),
  PageUp: moving(-10, 0),
  PageDown: moving(10, 0),
  Enter: (app, target) =>
    target.matches("button, summary, input") ? false : app.page.overview.enter(),
  Escape: (app, target) => {
    if (app.page.help.isOpen()) app.page.help.close();
    else if (!app.page.overview.close()) target.blur();
  },
  "/": (app) => app.page.overview.search(),
  v: (app) => app.overview.toggle(),
  "?": (app) => app.page.help.toggle(),
});
