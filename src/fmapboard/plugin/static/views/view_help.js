// @ts-check
/** The list of keyboard shortcuts and the meaning of the tab's terms, opened by `?`. */

import { button, h } from "./dom.js";
import { GLOSSARY, termId } from "./glossary.js";
import { KEYS } from "../state/keys.js";

/** Terms that a report has no use for. */
const OF_SERVER = new Set(["kept", "live"]);

/** @param {boolean} isReport */
export function createHelp(isReport) {
  const dialog = h("dialog", { class: "help", "aria-label": "Help" });
  const rows = KEYS.map(([keys, what]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...keys.split(" ").map((key) => h("kbd", { text: key }))),
      h("td", { text: what }),
    ),
  );
  const entries = Object.entries(GLOSSARY).filter(([term]) => !isReport || !OF_SERVER.has(term));
  const terms = entries.flatMap(([term, [name, text]]) => [
    h("dt", { text: name }),
    h("dd", { id: termId(term), text }),
  ]);
  dialog.append(
    h(
      "div",
      { class: "row spread" },
      h("h2", { text: "Keys" }),
      button({ icon: "close", label: "Close", press: () => dialog.close() }),
    ),
    h("table", {}, h("tbody", {}, ...rows)),
    h("h2", { text: "Terms" }),
    h("dl", { class: "terms" }, ...terms),
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
