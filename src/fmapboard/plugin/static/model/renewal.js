// @ts-check
/** Whether a run is still being written. */

import * as host from "./host.js";

/** @import {App} from "../app.js" */
/** @import {Layer} from "../server/server.js" */

/** A run whose newest record is younger is fresh, s. */
const FRESH = 600;
/** Longer pauses are expected of a run that logs rarely: this many times its usual interval. */
const PAUSES = 3;
const MOST = 6 * 3600;

/**
 * True if more steps are to be expected.
 * @param {Layer[]} layers @param {number} now s since 1970
 */
export function isFresh(layers, now) {
  const newest = Math.max(...layers.map(({ wall_times: at }) => at[at.length - 1] ?? -Infinity));
  const longest = layers.reduce((most, { wall_times: at, steps_written: written }) => {
    const usual = written > 1 ? (at[at.length - 1] - at[0]) / (written - 1) : 0;
    return Math.max(most, usual || 0);
  }, 0);
  return now - newest < Math.min(MOST, Math.max(FRESH, PAUSES * longest));
}

/** Date and time here; a formatter would take 15 ms to be made. @param {number} ms since 1970 */
export function timeText(ms) {
  const here = new Date(ms - 60000 * new Date(ms).getTimezoneOffset());
  return String(here.toJSON()).slice(0, 19).replace("T", " ");
}

// Requests again what may have grown: when TensorBoard has reloaded, and at intervals.

const LIVE_EVERY_MS = 10000;
/** From a server that reads the files as they grow; TensorBoard looks at them every 5 s. */
const CLOSE_EVERY_MS = 2000;
const EMPTY_EVERY_MS = 3000;
/** While TensorBoard is reading a log that was written before. */
const UNREAD_EVERY_MS = 2000;
/** A new run is looked for even while the shown one gets no new steps. */
const RUNS_EVERY_MS = 30000;
/** TensorBoard may be reading one run after the other when the tab is opened. */
const FIRST_RUNS_EVERY_MS = 5000;
const FIRST_MS = 60000;

export class Renewal {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {boolean|null} null for live while the run is fresh */
    this.liveChosen = app.report ? false : null;
    this.wasLive = false;
    this.reloadedAt = performance.now();
    this.startedAt = this.reloadedAt;
    this.listedRunsAt = this.reloadedAt;
    this.missed = false; // TensorBoard reloaded while the tab was hidden
    /** What of an unread log was read, and since when nothing more. */
    this.read = "";
    this.readAt = this.reloadedAt;
  }

  /** True if new steps are looked for: chosen by the user, otherwise while the run is fresh. */
  get live() {
    return this.liveChosen ?? isFresh(this.app.model?.layers ?? [], Date.now() / 1000);
  }

  /** Requests everything again that may have grown, without changing the state. */
  reload() {
    if (host.hidden()) {
      this.missed = true; // the first tick after the tab is shown reloads
      return;
    }
    const { source } = this.app;
    this.missed = false;
    this.reloadedAt = this.listedRunsAt = performance.now();
    source.renew();
    source.cache.retry();
    this.app.redraw();
  }

  /**
   * Pause before the next look at an unread log, ms: longer if nothing was read for some time.
   * @param {number} now ms
   */
  unreadEvery(now) {
    const { model } = this.app;
    const read = JSON.stringify([model?.state.run, model?.steps.length, model?.front?.read]);
    if (read !== this.read) [this.read, this.readAt] = [read, now];
    return now - this.readAt < FIRST_MS ? UNREAD_EVERY_MS : LIVE_EVERY_MS;
  }

  /** Called every second. */
  tick() {
    if (host.hidden()) return;
    const { model, source } = this.app;
    const now = performance.now();
    if (this.wasLive !== this.live) this.app.redraw(); // the run has become old, or fresh
    this.wasLive = this.live;
    const since = now - this.reloadedAt;
    const isIdle = model?.listed && !source.cache.left();
    const empty = isIdle && !model.layers.length;
    const unread = isIdle && (model.unread ?? model.front?.unread ?? null) !== null;
    const liveEvery = model?.keepsAll ? CLOSE_EVERY_MS : LIVE_EVERY_MS;
    const pauses = [this.live ? liveEvery : Infinity, empty ? EMPTY_EVERY_MS : Infinity];
    if (unread) pauses.push(this.unreadEvery(now));
    const runsEvery = now - this.startedAt < FIRST_MS ? FIRST_RUNS_EVERY_MS : RUNS_EVERY_MS;
    if (this.missed || since > Math.min(...pauses)) {
      this.reload();
    } else if (this.liveChosen !== false && now - this.listedRunsAt > runsEvery) {
      this.listedRunsAt = now;
      source.renew(true);
      this.app.redraw();
    }
  }
}
