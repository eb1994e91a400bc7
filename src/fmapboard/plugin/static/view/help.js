// @ts-check
/** Keyboard shortcuts, and the list of them and of the tab's terms that `?` opens. */

import { ATTRIBUTION_KEYS, nextKind } from "../model/attribution_rows.js";
import { OVERVIEW_ACTS } from "../model/overview_acts.js";
import { inPalette, selected } from "../model/palette_choice.js";
import { CHOICES, TILES } from "../model/state.js";
import { GLOSSARY, termId, termName } from "../model/terms.js";
import { html, useMemo, useRef } from "../vendor/preact_htm.js";
import { Button, STEP_KEY, byPointer } from "./controls.js";
import { useKeys } from "./hooks.js";
import { isPointing, movePoint, togglePoint } from "./point.js";

/** @import {App} from "../app.js" */

/** @type {readonly (readonly [string, string])[]} */
export const KEYS = Object.freeze([
  ["v", "overview, or the maps again"],
  ["Enter", "in the overview: show the maps of the cell; arrow keys move over the cells"],
  ["← →", "previous step, next step"],
  ["Home End", "first step, newest step"],
  ["Space", "play or pause"],
  ["↑ ↓", "previous layer, next layer; in the grid: one row of channels up, down"],
  ["[ ]", "previous channel, next channel"],
  ["Esc", "close what is open"],
  ["/", "filter layers"],
  ["f", "fold or open the group of the layer"],
  ["c", "next palette"],
  ["s", "scale per channel or per layer"],
  ["l", "lock the scale over steps"],
  ["r", "maps, inputs, gradients, kernels, attribution"],
  ["d", "compare with another step, on or off; brings a removed column back"],
  ["o", "lay the channel over the input image"],
  ["+ − 0", "larger tiles, smaller tiles, tiles that fit the window"],
  ["x", "point at a pixel: which channels respond there; the arrow keys move the point"],
  ["m", "film strip of the open or chosen channels, or back to the maps"],
  ["p", "save the view as PNG"],
  ["?", "open or close this help"],
]);

/**
 * The value after `now`; after the last, the first.
 * @template T
 * @param {readonly T[]} among @param {T} now
 */
export function next(among, now) {
  return among[(among.indexOf(now) + 1) % among.length];
}

/**
 * The next larger or smaller tile size.
 * @param {number} shown size on the screen, CSS px @param {number} by 1 or -1
 */
export function nextTile(shown, by) {
  const sides = TILES.filter(Boolean);
  if (by > 0) return sides.find((side) => side > shown * 1.1) ?? sides[sides.length - 1];
  return sides.findLast((side) => side < shown * 0.9) ?? sides[0];
}

/** What makes tiles larger or smaller. @param {number} by 1 or -1 */
function resize(by) {
  return (/** @type {App} */ app) => {
    const { film, grid } = app.page;
    app.update({ tile: nextTile((app.state.view === "film" ? film : grid).shownTile(), by) });
  };
}

/** Installs the shortcuts of the whole tab. @param {App} app */
export function useShortcuts(app) {
  useKeys("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A slider has no use for other keys than these.
    const isText = !target.matches("[type=range]") || /^(Arrow|Home|End|Page)/.test(event.key);
    const isTyped = target.matches("input") && event.key !== "Escape" && isText;
    if (byPointer(target) && STEP_KEY.test(event.key)) target.blur();
    else if (target.matches("select, textarea") || isTyped) return;
    const { view } = app.state;
    if (view === "attribution" && !ATTRIBUTION_KEYS.has(event.key)) return;
    const ofPoint = view === "maps" && isPointing(app) ? POINT_ACTS[event.key] : undefined;
    const act = ofPoint ?? (view === "overview" ? OVERVIEW_ACTS : ACTS)[event.key];
    if (!act) return;
    // The space bar presses a focused button, as on any page.
    if (event.key === " " && target.matches("button")) return;
    if (act(app, target) !== false) event.preventDefault();
  });
}

/** What arrow keys do while a point is looked at. @type {typeof ACTS} */
const POINT_ACTS = {
  ArrowUp: (app) => movePoint(app, -1, 0),
  ArrowDown: (app) => movePoint(app, 1, 0),
  ArrowLeft: (app) => movePoint(app, 0, -1),
  ArrowRight: (app) => movePoint(app, 0, 1),
};

/** @param {App} app @param {HTMLElement} target @param {number} by */
function vertical(app, target, by) {
  if (target.closest(".grid")) app.page.grid.move(by, true);
  else app.page.layers.move(by);
}

/** @type {Readonly<Record<string, (app: App, target: HTMLElement) => void|boolean>>} */
const ACTS = Object.freeze({
  ArrowLeft: (app) => app.stepBy(-1),
  ArrowRight: (app) => app.stepBy(1),
  Home: (app) => app.stepTo("first"),
  End: (app) => app.stepTo("last"),
  " ": (app) => app.play(),
  ArrowUp: (app, target) => vertical(app, target, -1),
  ArrowDown: (app, target) => vertical(app, target, 1),
  "[": (app) => app.moveChannel(-1),
  "]": (app) => app.moveChannel(1),
  Enter: (app, target) => {
    if (target.matches(".film-strip")) return void app.page.film.enter();
    return target.matches(".grid") ? app.moveChannel(0) : false;
  },
  Escape: (app, target) => {
    if (app.page.help.isOpen()) app.page.help.close();
    else if (target.matches("input")) target.blur();
    else if (app.state.pixel) app.update({ pixel: null });
    else if (["film", "attribution"].includes(app.state.view)) app.update({ view: "maps" });
    else app.update({ channel: null });
  },
  v: (app) => app.overview.toggle(),
  "/": (app) => app.page.layers.search(),
  f: (app) => app.page.layers.fold(),
  c: (app) => app.update(selected(app.state, next(CHOICES.colours, inPalette(app.state).colours))),
  s: (app) => app.update({ scale: next(CHOICES.scale, app.state.scale) }),
  l: (app) =>
    app.update(
      app.state.view === "film"
        ? { film_scale: next(CHOICES.film_scale, app.state.film_scale) }
        : { locked: !app.state.locked },
    ),
  m: (app) => app.toggleFilm(),
  x: togglePoint,
  r: nextKind,
  d: (app) => app.toggleColumn(),
  o: (app) => app.toggleOverlay(),
  "+": resize(1),
  "=": resize(1),
  "-": resize(-1),
  0: (app) => app.update({ tile: 0 }),
  p: (app) => void app.page.bar.save(),
  "?": (app) => app.page.help.toggle(),
});

// The list of keyboard shortcuts and the meaning of the tab's terms, opened by `?`.

/** Terms that a report has no use for. */
const OF_SERVER = new Set(["kept", "live"]);

/** @param {{app: App}} props */
export function Help({ app }) {
  const dialog = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const close = () => dialog.current?.close();
  const isOpen = () => Boolean(dialog.current?.open);
  const toggle = () => (isOpen() ? close() : dialog.current?.showModal());
  app.page.help = { isOpen, close, toggle };
  // Controls are described by the terms, which nobody waits for at the start.
  const terms = useMemo(() => !app.isStarting && termsOf(app, close), [app.isStarting]);
  return html`
    <dialog class="help" aria-label="Help" ref=${dialog}
      onClick=${(/** @type {Event} */ { target }) => target === dialog.current && close()}>
      ${terms}
    </dialog>
  `;
}

/** @param {App} app @param {() => void} close */
function termsOf(app, close) {
  const entries = Object.entries(GLOSSARY).filter(([term]) => !app.report || !OF_SERVER.has(term));
  return html`
    <div class="row spread"><h2>Terms</h2><${Button} icon="close" label="Close" press=${close}
      /></div>
    <dl class="terms">
      ${entries.map(
        ([term, text]) => html`<dt>${termName(term)}</dt><dd
        id=${termId(term)}>${text}</dd>`,
      )}
    </dl>
    <h2>Keys</h2>
    <table>
      <tbody>
        ${KEYS.map(
          ([keys, what]) => html`
            <tr>
              <th scope="row">${keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</th>
              <td>${what}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}
