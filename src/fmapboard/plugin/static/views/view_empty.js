// @ts-check
/** Instructions, shown while there are no feature maps. */

import { h, say, show } from "./dom.js";

const CODE = `import fmapboard

with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):
    train(...)`;

/** @param {import("../app.js").App} app */
export function createEmpty(app) {
  const title = h("h1");
  const where = h("p");
  const problem = h("p", { class: "problem", role: "alert" });
  const how = h(
    "div",
    {},
    h("p", { text: "Two lines around your training loop write them:" }),
    h("pre", { text: CODE }),
    h("p", {
      text: "Then point TensorBoard at the log directory; fmapboard serve also keeps enough steps in memory:",
    }),
    h("pre", { text: "fmapboard serve runs" }),
    h("p", { text: "No model at hand? This trains a small one on bundled images, in seconds:" }),
    h("pre", { text: "fmapboard demo" }),
  );
  const element = h(
    "main",
    { class: "empty", hidden: true },
    title,
    problem,
    where,
    how,
    h("p", {
      class: "note",
      text: "This page looks again every few seconds: the first logged step appears by itself.",
    }),
    h("button", { type: "button", text: "Look again", on: { click: () => app.reload() } }),
  );

  /** @param {import("../app.js").Model} model @param {boolean} shown */
  function draw(model, shown) {
    show(element, shown);
    show(how, !model.isUnread);
    say(title, model.isUnread ? "Feature maps are being read" : "No feature maps here yet");
    const inLogdir = model.logdir ? ` in ${model.logdir}` : "";
    say(
      where,
      model.isUnread
        ? `There are event files of fmapboard${inLogdir} that TensorBoard has not read yet.`
        : model.logdir
          ? `TensorBoard reads ${model.logdir}; no run in it holds records of fmapboard.`
          : "No run that TensorBoard reads holds records of fmapboard.",
    );
    say(problem, model.problem);
    show(problem, Boolean(model.problem));
  }
  return { element, draw };
}
