// @ts-check
/** Instructions, shown while there are no feature maps. */

import { html } from "../vendor/preact_htm.js";

const CODE = `import fmapboard

with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):
    train(...)`;
const SERVE =
  "Then point TensorBoard at the log directory; fmapboard serve also keeps enough steps in memory:";

/**
 * What was looked at, in words.
 * @param {Pick<import("../app.js").Model, "isUnread"|"logdir">} model
 */
function whereText({ isUnread, logdir }) {
  if (isUnread) {
    const inLogdir = logdir ? ` in ${logdir}` : "";
    return `There are event files of fmapboard${inLogdir} that TensorBoard has not read yet.`;
  }
  return logdir
    ? `TensorBoard reads ${logdir}; no run in it holds records of fmapboard.`
    : "No run that TensorBoard reads holds records of fmapboard.";
}

/**
 * @param {object} props
 * @param {Pick<import("../app.js").Model, "isUnread"|"logdir"|"problem">} props.model
 * @param {boolean} props.shown
 * @param {() => void} props.reload
 */
export function Empty({ model, shown, reload }) {
  const { isUnread, problem } = model;
  return html`
    <main class="empty" hidden=${!shown}>
      <h1>${isUnread ? "Feature maps are being read" : "No feature maps here yet"}</h1>
      <p class="problem" role="alert" hidden=${!problem}>${problem}</p>
      <p>${whereText(model)}</p>
      <div hidden=${isUnread}>
        <p>Two lines around your training loop write them:</p>
        <pre>${CODE}</pre>
        <p>${SERVE}</p>
        <pre>fmapboard serve runs</pre>
        <p>No model at hand? This trains a small one on bundled images, in seconds:</p>
        <pre>fmapboard demo</pre>
      </div>
      <p class="note">
        This page looks again every few seconds: the first logged step appears by itself.
      </p>
      <button type="button" onClick=${reload}>Look again</button>
    </main>
  `;
}
