// @ts-check
/** Above the channels: the layer's title, the network's input, and what the colours mean. */

import { callName, counted, stepText, wordOf } from "../model/words.js";
import { explanation } from "../model/terms.js";
import { indexOf } from "../server/steps.js";
import { html, useRef } from "../vendor/preact_htm.js";
import { Painted } from "./controls.js";
import { Legend } from "./legend.js";

/** @typedef {import("../app.js").Model} Model */

/** @param {{picture: ImageBitmap, label: string, isOld?: boolean}} props */
export function Thumbnail({ picture, label, isOld = false }) {
  const paint = (/** @type {HTMLCanvasElement} */ canvas) => {
    [canvas.width, canvas.height] = [picture.width, picture.height];
    canvas.getContext("2d")?.drawImage(picture, 0, 0);
  };
  const name = isOld ? "thumbnail old" : "thumbnail";
  return html`
    <${Painted} class=${name} role="img" aria-label=${label} title=${label} ...${{ paint, of: [picture] }} />
  `;
}

/** @param {{model: Model, hovered: number|null}} props `hovered` is the channel under the pointer */
export function Head({ model, hovered }) {
  const { layer, scene, steps, state, stepWords, input, hasInput, sides } = model;
  const last = useRef(/** @type {ImageBitmap|null} */ (null));
  if (input || !hasInput) last.current = input;
  const asked = steps[indexOf(steps, state.step)];
  const isReduced = scene?.kind === "maps" && scene.picture.block > 1;
  const own = sides?.each[0]?.input ? null : last.current; // columns have their own
  return html`
    <header class="head">
      ${own && html`<${Thumbnail} picture=${own} isOld=${!input} label="The network's input" />`}
      <div class="title">
        <h1>${layer ? callName(layer) : ""}</h1>
        <p class="facts" ...${isReduced ? explanation("block") : {}}>
          ${layer ? described(layer, scene, asked, stepWords) : ""}
        </p>
      </div>
      <${Legend} ...${{ model, hovered }} />
    </header>
  `;
}

/**
 * Facts about the layer and its picture, in words.
 * @param {import("../server/answers.js").Layer} layer
 * @param {import("../model/scene.js").Scene|null} scene @param {number|undefined} asked step
 * @param {Record<string, string>} words for steps
 */
function described(layer, scene, asked, words) {
  const kernel = layer.kernel_shape ? ` ${layer.kernel_shape.join("×")}` : "";
  const said = [`${layer.type}${kernel}`];
  if (scene?.kind === "maps") {
    const { picture } = scene;
    said.push(
      picture.drawn < picture.channels
        ? `${picture.drawn} of ${picture.channels} channels drawn`
        : counted(picture.channels, "channel"),
    );
    const [height, width] = picture.tile;
    const size = scene.rows ? counted(width, "column") : `${height}×${width} px`;
    const block = scene.rows ? `${picture.block} positions` : `${picture.block}×${picture.block}`;
    said.push(`${size}${picture.block > 1 ? `, each the mean of ${block}` : ""}`);
    if (picture.view) said.push(picture.view);
    if (picture.scale === "locked") {
      said.push("stored scale locked to the first step: later values may be cut off");
    }
  }
  if (scene) {
    const { step } = scene.question;
    if (asked !== undefined && asked !== step) {
      said.push(`${wordOf(words, step)}, the last before ${stepText(asked)} that was kept`);
    }
  }
  return said.join(" · ");
}
