// @ts-check
/** A line above the maps, if the overview led to another layer or step than it named. */

import { h, say, show } from "./dom.js";

/** @param {import("../app.js").App} app */
export function createArrival(app) {
  const element = h("p", { class: "arrival", role: "status", hidden: true });

  function draw() {
    const { isThere, arrived } = app.overview;
    const note = isThere && arrived ? arrived.note : "";
    show(element, Boolean(note) && app.state.view === "maps");
    say(element, note);
  }
  return { element, draw };
}
