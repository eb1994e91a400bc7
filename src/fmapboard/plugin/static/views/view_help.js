// @ts-check
/** The list of keyboard shortcuts, opened by `?`. */

import { button, h } from "./dom.js";
import { KEYS } from "../state/keys.js";

export function createHelp() {
  const dialog = h("dialog", { class: "help", "aria-label": "Keys" });
  const rows = KEYS.map(([keys, what]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...keys.split(" ").map((key) => h("kbd", { text: key }))),
      h("td", { text: what }),
    ),
  );
  dialog.append(
    h(
      "div",
      { class: "row spread" },
      h("h2", { text: "Keys" }),
      button({ icon: "close", label: "Close", press: () => dialog.close() }),
    ),
    h("table", {}, h("tbody", {}, ...rows)),
    h("p", {
      class: "note",
      text: "In the list of layers, the strip at the right of a row shows: the range of values (the line is zero), the share of dead, constant and not finite channels, and how far the layer moved since the kept step before.",
    }),
  );
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  return {
    element: dialog,
    isOpen: () => dialog.open,
    close: () => dialog.close(),
    toggle: () => (dialog.open ? dialog.close() : dialog.showModal()),
  };
}
