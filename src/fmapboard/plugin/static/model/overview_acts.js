// @ts-check
/** Actions of the overview page: going to a layer and step, and back. */

import { front, targetOf } from "./front.js";
import { apart, noteVerdict, worstFirst } from "./run_states.js";
import { HealthSource, SheetSource } from "../server/health.js";

/** @import {App} from "../app.js" */
/** @import {RunEntry} from "../server/routes.js" */
/** @import {Act, RunState, RunVerdict, Target} from "./model.js" */

/** Runs whose stored verdicts are asked for at once. */
const AT_ONCE = 100;
/** States of which the worst is what the user must look at. @type {ReadonlySet<RunState>} */
const OPENED_FIRST = new Set(["fault", "suspicion", "does not learn"]);

export class Overview {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.source = new HealthSource(app.source.cache);
    this.sheet = new SheetSource(app.source.cache);
    this.all = false; // show all lines
    this.isWhole = false; // list the further runs
    /** Where the user was led to, while there is something to say about it. @type {Target|null} */
    this.arrived = null;
    /** What is known of each run, in one line. @type {Map<string, RunVerdict>} */
    this.verdicts = new Map();
    /** All that is in sight is drawn. */
    this.isUp = false;
    /** The address names no run, and the user has done nothing yet. */
    this.isFree = false;
    /** The run that was opened by itself; "" once the user has chosen one. */
    this.opened = "";
    /** Answers whose verdicts have been taken over. @type {WeakSet<object>} */
    this.taken = new WeakSet();
  }

  /** Lets the first look at all runs decide which one is shown, until the user does something. */
  free() {
    this.isFree = true;
    const keep = () => void (this.isFree = false);
    for (const act of ["pointerdown", "keydown"]) {
      document.addEventListener(act, keep, { capture: true, once: true });
    }
  }

  /** What the page shows now. @param {RunEntry[]} runs */
  look(runs) {
    const { app } = this;
    const shown = front(app.source, this, app.state, runs);
    if (!this.isFree) return shown;
    this.opened = app.state.run;
    const names = runs.map(({ run }) => run);
    if (!this.isKnown(names) || !shown.ready || shown.unread !== null) return shown;
    const [worst] = worstFirst(apart(shown.verdicts, names));
    if (!worst || (shown.awaited && worst.state !== "fault")) return shown;
    this.isFree = false;
    if (OPENED_FIRST.has(worst.state) && worst.run !== app.state.run) {
      this.opened = worst.run;
      app.state = { ...app.state, run: worst.run, layer: "" };
      app.redraw();
    }
    return shown;
  }

  /**
   * Learns how the other runs are: what is stored of them all, then one after the other those that
   * have to be looked through.
   */
  further() {
    const { front: shown, runs = [] } = this.app.model ?? {};
    if (!shown?.ready || !this.isUp) return;
    const names = runs.map(({ run }) => run);
    if (!this.isKnown(names)) return;
    for (const run of names) {
      if (this.verdicts.has(run)) continue;
      const { value, error } = this.source.findings(run, "", true);
      if (!value && !error) return; // it comes back here
      noteVerdict(this.verdicts, run, value?.line ?? null, error?.message ?? "");
      this.app.redraw();
    }
  }

  /**
   * Takes over what is stored of these runs; false while it is not there. A report has the findings
   * of its runs instead.
   * @param {readonly string[]} runs
   */
  isKnown(runs) {
    const { app, source } = this;
    for (let i = 0; i < runs.length && runs.length > 1 && !app.report; i += AT_ONCE) {
      const { value, error } = source.verdicts(runs.slice(i, i + AT_ONCE), app.source.epoch);
      if (!value && !error) return false;
      if (!value || this.taken.has(value)) continue;
      this.taken.add(value);
      for (const line of value.verdicts) noteVerdict(this.verdicts, line.run, line, "");
      app.redraw();
    }
    return true;
  }

  /** True if the list of findings is to be seen. */
  get isOpen() {
    return this.app.state.findings === "open";
  }

  /** True if the maps are those that the user was led to. */
  get isThere() {
    const { run, layer, step } = this.app.state;
    const to = this.arrived;
    return Boolean(to && to.run === run && to.layer === layer && to.step === step);
  }

  /**
   * Shows the maps of a layer call; false if there are none.
   * @param {Parameters<typeof targetOf>[1]} asked with the sentence of a finding, if that is why
   * @param {number|null} channel
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

  /** @param {boolean} all */
  showLines(all) {
    this.all = all;
    this.app.redraw();
  }

  /** Lists the further runs, or only counts them. @param {boolean} isWhole */
  showRuns(isWhole) {
    this.isWhole = isWhole;
    this.app.redraw();
  }

  /** Shows the overview, or the maps again. */
  toggle() {
    this.app.update({ view: this.app.state.view === "overview" ? "maps" : "overview" });
  }
}

/** @param {number} rows @param {number} columns @returns {Act} */
function moving(rows, columns) {
  return (app, target) => {
    const isElsewhere = target.closest("button, summary, [role=dialog]") !== null;
    if (!isElsewhere) app.page.cells?.move(rows, columns);
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
    target.matches("button, summary, input") ? false : app.page.cells?.enter(),
  Escape: (app, target) => {
    if (app.page.help.isOpen()) app.page.help.close();
    else target.blur();
  },
  v: (app) => app.overview.toggle(),
  "?": (app) => app.page.help.toggle(),
});
