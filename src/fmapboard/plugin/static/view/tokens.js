// @ts-check
/** The tokens of a layer at several steps, in colours that mean the same, beside the inputs. */

import { inputOf } from "../model/sides.js";
import { kindOf, wordOf } from "../model/words.js";
import { thinned } from "../picture/layouts.js";
import { samePixels } from "../server/decode.js";
import { indexOf } from "../server/steps.js";
import { html } from "../vendor/preact_htm.js";
import { Thumbnail } from "./head.js";

/** @import {ModelProps} from "./view.js" */

/** Steps that are shown at most. */
const MOST = 8;
const OTHER_IMAGES = " The images differ: see each picture beside its own.";

/** @param {ModelProps} props */
export function Tokens({ app, model: { tokens, scene, stepWords: words } }) {
  if (!tokens?.steps.length || scene?.kind !== "maps") return null;
  const { steps, pictures } = tokens;
  const now = steps[indexOf(steps, scene.question.step)];
  const shown = thinned(steps, MOST, [now]);
  const inputs = shown.map(
    (step) => inputOf(app.source, { ...scene.question, sample: 0, step }).picture,
  );
  const [first] = inputs;
  const isSame = inputs.every((each) => each && first && samePixels(each, first));
  const meaning =
    "Tokens of one colour are alike: red, green and blue are the three directions in which this " +
    `layer's tokens differed most at ${wordOf(words, steps[0])}, the same at every ` +
    `${kindOf(words)}. Magenta is not finite.`;
  return html`
    <section class="tokens" aria-label="Tokens as colours">
      <h2>Tokens as colours</h2>
      <p class="note">${meaning}${isSame ? "" : OTHER_IMAGES}</p>
      <div class="patches">
        ${
          isSame &&
          first &&
          html`<figure><${Thumbnail} picture=${first} label="The network's input" />
            <figcaption>input</figcaption></figure>`
        }
        ${shown.map((step, i) => {
          const text = wordOf(words, step);
          const input = isSame ? null : inputs[i];
          return html`
            <button type="button" key=${step} aria-current=${step === now ? "true" : null}
              onClick=${() => app.update({ step })}>
              ${input && html`<${Thumbnail} picture=${input} label=${`The input of ${text}`} />`}
              <${Thumbnail} picture=${pictures[steps.indexOf(step)]} label=${`Tokens, ${text}`} />
              ${text}
            </button>
          `;
        })}
      </div>
    </section>
  `;
}
