// @ts-check
/** Requests again what may have grown: when TensorBoard has reloaded, and at intervals. */

import * as host from "../host.js";
import { isFresh } from "./freshness.js";

const LIVE_EVERY_MS = 10000;
const EMPTY_EVERY_MS = 3000;
/** A new run is looked for even while the shown one gets no new steps. */
const RUNS_EVERY_MS = 30000;

export class Renewal {
  /** @param {import("../app.js").App} app */
  constructor(app) {
    this.app = app;
    /** @type {boolean|null} null for live while the run is fresh */
    this.liveChosen = null;
    this.wasLive = false;
    this.reloadedAt = performance.now();
    this.listedRunsAt = this.reloadedAt;
    this.missed = false; // TensorBoard reloaded while the tab was hidden
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
    source.store.retry();
    this.app.redraw();
  }

  /** Called every second. */
  tick() {
    if (host.hidden()) return;
    const { model, source } = this.app;
    const now = performance.now();
    if (this.wasLive !== this.live) this.app.redraw(); // the run has become old, or fresh
    this.wasLive = this.live;
    const since = now - this.reloadedAt;
    const empty = model?.listed && !model.layers.length && !source.store.busy;
    if (this.missed || (this.live && since > LIVE_EVERY_MS) || (empty && since > EMPTY_EVERY_MS)) {
      this.reload();
    } else if (this.liveChosen !== false && now - this.listedRunsAt > RUNS_EVERY_MS) {
      this.listedRunsAt = now;
      source.renew(true);
      this.app.redraw();
    } else if (model) {
      this.app.page.time.draw(model); // "newest" may have to say as of when
    }
  }
}
