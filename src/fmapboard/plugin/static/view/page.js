// @ts-check
/** All views of the tab, and where each one is on the page. */

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact_htm.js";
import { Attribution } from "./attribution.js";
import { Bar } from "./bar.js";
import { inWordsOf } from "../model/words.js";
import { Channel } from "./channel.js";
import { Charts } from "./charts.js";
import { RankedLayers, Sides } from "./columns.js";
import { SMALL } from "./controls.js";
import { Film } from "./film.js";
import { ChannelKernels, Grid, Loading } from "./grid.js";
import { Head } from "./head.js";
import { Help, useShortcuts } from "./help.js";
import { Kept } from "./hooks.js";
import { Layers } from "./layers.js";
import { Empty, Notices, Order, ReportNote } from "./notices.js";
import { Overview } from "./overview.js";
import { Pixel } from "./point.js";
import { Tokens } from "./tokens.js";

/** @import {App} from "../app.js" */
/** @import {Model} from "../model/model.js" */
/** @import {Drawer} from "./view.js" */

/**
 * In a small window, the list of layers and the details are drawers over the maps: a layer that is
 * chosen closes its list, a channel opens the details. @param {App} app
 */
function useDrawers(app) {
  const [drawer, open] = useState(/** @type {Drawer|null} */ (null));
  const body = useRef(/** @type {HTMLElement|null} */ (null));
  const isEntered = useRef(false); // the focus moves into it
  const { layer, channel } = app.state;
  const before = useRef({ layer, channel });
  useLayoutEffect(() => {
    const last = before.current;
    before.current = { layer, channel };
    if (layer !== last.layer && drawer === "layers") open(null);
    if (channel === last.channel) return;
    if (channel !== null && !drawer) open("details");
    if (channel === null && drawer === "details") open(null);
  }, [layer, channel]);
  useLayoutEffect(() => {
    const all = body.current?.querySelectorAll(
      `#drawer-${drawer} :is([tabindex='0'], button, input)`,
    );
    if (isEntered.current && all?.length) /** @type {HTMLElement} */ (all[0]).focus();
    isEntered.current = false;
    app.redraw();
  }, [drawer]);
  const pull = (/** @type {Drawer} */ name) => {
    isEntered.current = drawer !== name;
    open(drawer === name ? null : name);
  };
  const leave = (/** @type {KeyboardEvent} */ event) => {
    // In a large window there are no drawers.
    if (event.key !== "Escape" || !drawer || window.innerWidth > SMALL) return;
    event.stopPropagation(); // the channel stays open
    open(null);
    /** @type {HTMLElement|null} */ (
      document.querySelector(`[aria-controls=drawer-${drawer}]`)
    )?.focus();
  };
  return { body, drawer, pull, leave };
}

/** The maps of a layer. @param {{app: App, model: Model, shown: boolean, isOld: boolean}} props */
function Maps({ app, model, shown, isOld }) {
  const [hovered, hover] = useState(/** @type {number|null} */ (null));
  const of = { app, model, hovered };
  return html`
    <main hidden=${!shown}>
      <${Kept} shown=${shown && !isOld}>
        <${Head} ...${of} /><${Sides} ...${of} /><${RankedLayers} ...${of} /><${Order} ...${of} />
      <//>
      <div class="grid-room">
        <${Kept} shown=${shown && !isOld}><${Grid} ...${of} hover=${hover} /><//>
        ${shown && html`<${Loading} model=${model} />`}
      </div>
    </main>
  `;
}

/**
 * `nothing`: there is no layer to show; `isOld`: only the slider has moved, and the maps are those
 * of another step.
 * @param {{app: App, model: Model, nothing: boolean, busy: boolean, isOld: boolean}} props
 */
export function Page({ app, model, nothing, busy, isOld }) {
  useShortcuts(app);
  const { body, drawer, pull, leave } = useDrawers(app);
  const { view } = model.state;
  const of = { app, model };
  const isBody = !nothing && view !== "overview";
  const isMaps = view === "maps";
  const front = nothing ? null : model.front;
  const reload = () => app.renewal.reload();
  return html`
    <div class="app">
      <header class="bars">
        <${ReportNote} report=${app.report} />
        <${Bar} ...${{ ...of, nothing, busy, drawer, pull }} />
        <${Notices} ...${of} />
      </header>
      <div class="body" hidden=${!isBody} data-drawer=${drawer} ref=${body}>
        <${Kept} shown=${isBody}>
          <${Layers} ...${of} id="drawer-layers" isShown=${view !== "attribution"} leave=${leave} />
          <${Maps} ...${of} shown=${isMaps} isOld=${isOld} />
          <aside id="drawer-details" hidden=${!isMaps} onKeyDown=${leave}
            aria-label=${inWordsOf("Channel and layer over steps")}>
            <${Kept} shown=${isMaps && !isOld}>
              <${Pixel} ...${of} /><${Channel} ...${of} /><${ChannelKernels} ...${of} />
              <${Tokens} ...${of} /><${Charts} ...${of} />
            <//>
          </aside>
          <${Attribution} model=${model} />
          ${view === "film" && html`<${Film} ...${of} />`}
        <//>
      </div>
      <${Overview} app=${app} model=${{ ...model, front }} />
      <${Empty} model=${model} shown=${nothing} reload=${reload} />
      <${Help} app=${app} />
    </div>
  `;
}
