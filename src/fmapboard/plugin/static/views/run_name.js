// @ts-check
/** A run's name with its colour; a name too long for its place is cut in the middle. */

import { parted } from "../state/run_search.js";
import { runText } from "../state/run_text.js";
import { html } from "../vendor/preact_htm.js";

/** Length of the end of a name that is always shown. */
const END = 22;

/** @param {{run: string, colour: string}} props */
export function RunName({ run, colour }) {
  const [head, tail] = parted(runText(run), END);
  return html`
    <span class="run-name" title=${runText(run)}>
      <i class="dot" aria-hidden="true" style=${{ background: colour }} />
      <span class="run-head" hidden=${!head}>${head}</span>
      <span class="run-tail"><bdi dir="ltr">${tail}</bdi></span>
    </span>
  `;
}
