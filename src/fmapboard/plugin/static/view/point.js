// @ts-check
/** The point tool: a place in the input or a map, and the channels by their values there. */

import { inputOf } from "../model/sides.js";
import { MAIN } from "../model/scene.js";
import { cellOf, movedPoint, pointWithin } from "../model/state.js";
import { inWordsOf, short, stepText, tileText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { faultOf, positionText, valueText } from "../picture/captions.js";
import { channelsAt, drawCrosshair } from "../picture/crosshair.js";
import { frameOf, paint as paintTiles, pictureTile } from "../picture/painter.js";
import { html, useMemo, useRef, useState } from "../vendor/preact_htm.js";
import { Button } from "./controls.js";
import { Painted } from "./hooks.js";

/** @import {App} from "../app.js" */
/** @import {MapsScene, Model, Point} from "../model/model.js" */
/** @import {Child} from "../vendor/preact_htm.js" */

/** Entries that are listed until all are asked for. */
const FIRST = 24;
/** Largest height of the input image, CSS px. */
const INPUT = 200;
const MEASURE =
  "Ordered by how far each channel here lies from its own mean over the map, in standard " +
  "deviations " +
  "(σ); non-finite channels come first.";

/** @param {App} app @returns {MapsScene|null} */
const sceneOf = ({ model }) => (model?.scene?.kind === "maps" ? model.scene : null);

/** @param {App} app @param {Point} point */
export const putPoint = (app, point) => app.update({ pixel: pointWithin(point) });

/** @param {App} app */
export const togglePoint = (app) =>
  app.update({ pixel: app.state.pixel ? null : { u: 0.5, v: 0.5 } });

/** @param {App} app */
export const isPointing = (app) => Boolean(sceneOf(app) && app.state.pixel);

/**
 * Moves the point by cells of the layer's maps.
 * @param {App} app @param {number} down @param {number} right
 */
export function movePoint(app, down, right) {
  const [point, scene] = [app.state.pixel, sceneOf(app)];
  if (!point || !scene) return;
  const { height, width } = scene.a.planes;
  putPoint(app, movedPoint(point, height, width, down, right));
}

/** @param {{app: App, model: Model}} props */
export function Pixel({ app, model: { state, scene, stale } }) {
  const shown = useRef(/** @type {Child} */ (null));
  if (scene?.kind !== "maps") return null;
  const point = state.pixel;
  if (!point || !stale) {
    const { drawn, channels } = scene.picture;
    const rest =
      drawn < channels ? ` Only the ${drawn} drawn of ${channels} channels are compared.` : "";
    const of = { app, scene, point, palette: state.colours };
    shown.current =
      point &&
      html`<div class="pixel-body">
        <${Input} ...${of} />
        <p class="pixel-where" role="status">${placeText(scene, point)}</p>
        <p class="pixel-measure">${inWordsOf(MEASURE + rest)}</p>
        <${List} key=${scene.question.key} ...${of} />
      </div>`;
  }
  return html`
    <section class="pixel" aria-label="Point">
      <div class="row spread">
        <${Button} text="Point at a pixel"
          label=${inWordsOf("Which channels respond at a place of the input or of a map")}
          keys="x" aria-pressed=${String(Boolean(point))} press=${() => togglePoint(app)} />
        ${
          point &&
          html`<${Button} icon="close" label="Leave the point" keys="Esc"
            press=${() => app.update({ pixel: null })} />`
        }
      </div>
      ${shown.current}
    </section>
  `;
}

/** The network's input with the point. @param {{app: App, scene: MapsScene, point: Point}} props */
function Input({ app, scene, point }) {
  const { step, sample } = scene.question;
  const { picture: input, loading } = scene.rows
    ? { picture: null, loading: false }
    : inputOf(app.source, scene.question);
  if (!input) {
    const why = scene.rows
      ? "A sequence: the point is a position in it."
      : `The network's input of step ${stepText(step)} is not stored: point at a map.`;
    return html`<figure><figcaption>${loading ? "Loading the input…" : why}</figcaption></figure>`;
  }
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const room = Math.max(100, canvas.parentElement?.clientWidth ?? 0);
    const factor = Math.min(room / input.width, INPUT / input.height);
    const [width, height] = [input.width * factor, input.height * factor];
    const context = prepare(canvas, width, height);
    context.imageSmoothingEnabled = factor < 1;
    context.drawImage(input, 0, 0, width, height);
    // The outline is the part of the input that has the place of the cell.
    drawCrosshair(context, { left: 0, top: 0, width, height }, point, scene.a.planes);
  };
  const click = (/** @type {MouseEvent & {currentTarget: HTMLElement}} */ event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    putPoint(app, { u: x / box.width, v: y / box.height });
  };
  return html`
    <figure>
      <figcaption>Input of step ${stepText(step)}, sample ${sample}: click to point</figcaption>
      <${Painted} role="img" aria-label=${`network's input; ${placeText(scene, point)}`}
        onClick=${click}
        paint=${paint} of=${[input, scene, point.u, point.v, window.innerWidth]} />
    </figure>
  `;
}

/**
 * The channels of the layer.
 * @param {{app: App, scene: MapsScene, point: Point, palette: string}} props
 */
function List({ app, scene, point, palette }) {
  const [isWhole, setWhole] = useState(false);
  return useMemo(() => {
    const readings = channelsAt(scene.a, point);
    const items = readings.slice(0, isWhole ? Infinity : FIRST).map((of) => {
      const { channel, deviation } = of;
      const isBad = Number.isNaN(of.value);
      const sigmas = ` · ${deviation > 0 ? "+" : ""}${short(deviation, 2)} σ`;
      const fault = isBad ? null : faultOf(scene, MAIN, channel);
      const tile = tileText(scene.maps.header, channel);
      const name = `${tile}${fault ? ` · ${fault.word}` : ""}`;
      return html`
        <li key=${channel}>
          <button type="button" class=${isBad ? "not-finite" : null}
            onClick=${() => app.update({ channel })}>
            <span class="pixel-tile"><${MapTile} ...${{ scene, channel, palette, point }} /></span>
            <span class="pixel-name" title=${name}>${name}</span>
            <span
              class="pixel-value">${valueText(of)}${Number.isNaN(deviation) ? "" : sigmas}</span>
          </button>
        </li>
      `;
    });
    const more = readings.length - items.length;
    return html`
      <ol class="pixel-list">
        ${items}
        ${
          more > 0 &&
          html`<li><button type="button"
          onClick=${() => setWhole(true)}>Show ${more} more</button></li>`
        }
      </ol>
    `;
  }, [scene, point.u, point.v, palette, isWhole]);
}

/** Where the point is, in words. @param {MapsScene} scene @param {Point} point */
function placeText(scene, point) {
  const { height, width } = scene.a.planes;
  const { y, x } = cellOf(point, height, width);
  const { block } = scene.picture;
  if (scene.rows) {
    return (
      `${positionText(true, block, y, x)} of the sequence; other sequences at the same ` +
      `relative position`
    );
  }
  const averaged = block > 1 ? `, each the mean of ${block}×${block} values` : "";
  return (
    `Cell y ${y}, x ${x} of ${height}×${width} in this layer${averaged}: the same relative ` +
    `place as in the ` +
    "input. Strides and padding make this approximate."
  );
}

// The map of one channel as a small picture.

/** Longer side; sequences are one row of pixels. CSS px. */
const SIDE = 36;
const ROW = Object.freeze({ width: 96, height: 14 });
/** Space for the line around a faulty channel. */
const FRAME = 3;

/** @param {{scene: MapsScene, channel: number, palette: string, point?: Point|null}} props */
export function MapTile({ scene, channel, palette, point = null }) {
  const fault = faultOf(scene, MAIN, channel);
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    const { height: rows, width: columns } = scene.a.planes;
    const factor = SIDE / Math.max(columns, rows, 1);
    const size = { width: Math.max(4, columns * factor), height: Math.max(4, rows * factor) };
    const { width, height } = scene.rows ? ROW : size;
    const out = fault ? FRAME : 0;
    const box = { left: out, top: out, width, height };
    const ratio = window.devicePixelRatio || 1;
    const where = { top: 0, width: width + 2 * out, height: height + 2 * out, ratio };
    const look = { ...theme(), palette };
    const isSmooth = columns > width * ratio || rows > height * ratio;
    const tile = { ...pictureTile(scene, MAIN, channel, box, look), isSmooth, point };
    const lines = fault ? [frameOf(fault.kind)] : [];
    paintTiles(prepare(canvas, where.width, where.height), where, look, [{ ...tile, lines }]);
  };
  const { theme: name } = document.documentElement.dataset;
  const of = [scene, channel, palette, point?.u, point?.v, name, window.devicePixelRatio];
  return html`<${Painted} aria-hidden="true" ...${{ paint, of }} />`;
}
