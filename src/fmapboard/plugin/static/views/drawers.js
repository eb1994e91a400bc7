// @ts-check
/** In a small window, the list of layers and the details are drawers over the maps. */

import { h } from "./dom.js";

/** @typedef {"layers"|"details"} Drawer */

/**
 * Buttons that open the drawers; the style sheet shows them only where the window is too small.
 * @param {import("../app.js").App} app @param {HTMLElement} body what holds both drawers
 * @param {{[name in Drawer]: HTMLElement}} drawers
 */
export function createDrawers(app, body, drawers) {
  const button = (/** @type {Drawer} */ name, /** @type {string} */ text) =>
    h("button", {
      type: "button",
      class: "drawer-button",
      text,
      "aria-expanded": "false",
      "aria-controls": `drawer-${name}`,
      on: { click: () => open(body.dataset.drawer === name ? null : name, true) },
    });
  const buttons = { layers: button("layers", "Layers"), details: button("details", "Details") };
  for (const name of /** @type {Drawer[]} */ (["layers", "details"])) {
    drawers[name].id = `drawer-${name}`;
    drawers[name].addEventListener("keydown", (event) => {
      const isSmall = buttons[name].offsetWidth > 0; // in a large window there are no drawers
      if (event.key !== "Escape" || body.dataset.drawer !== name || !isSmall) return;
      event.stopPropagation(); // the channel stays open
      open(null);
      buttons[name].focus();
    });
  }
  /** @type {{layer: string, channel: number|null}|null} */
  let before = null;

  /** @param {Drawer|null} name @param {boolean} enter move the focus into it */
  function open(name, enter = false) {
    if (name) body.dataset.drawer = name;
    else delete body.dataset.drawer;
    for (const [each, of] of Object.entries(buttons)) {
      of.setAttribute("aria-expanded", String(each === name));
    }
    if (name && enter) {
      const first = drawers[name].querySelector("[tabindex='0'], button, input");
      if (first instanceof HTMLElement) first.focus();
    }
    app.redraw();
  }

  /** Follows what the user chose: a layer closes its list, a channel opens the details. */
  function draw() {
    const { layer, channel } = app.state;
    const drawer = body.dataset.drawer;
    if (before && layer !== before.layer && drawer === "layers") open(null);
    if (before && channel !== before.channel) {
      if (channel !== null && !drawer) open("details");
      if (channel === null && drawer === "details") open(null);
    }
    before = { layer, channel };
  }
  return { buttons, draw };
}
