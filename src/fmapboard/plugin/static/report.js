// @ts-check
/** Entry point of a report: the tab over the answers in the page. */

import { App } from "./app.js";
import { answerFrom } from "./server/api.js";
import { answersIn, sheetInputs, sheets } from "./server/embedded.js";

/** @typedef {import("./server/embedded.js").Embedded} Embedded */

const { report, ...embedded } =
  /** @type {{fmapboardReport: Embedded & {report: import("./view/notices.js").ReportFacts}}} */ (
    /** @type {unknown} */ (window)
  ).fmapboardReport;
document.title = report.title;
const stored = answersIn(embedded);
/** @type {Partial<Record<string, import("./server/api.js").Answering>>} */
const made = { sheet: (_, ...of) => sheets(...of), sheet_input: (_, ...of) => sheetInputs(...of) };
answerFrom((path, ...of) => (made[path] ?? stored)(path, ...of));
new App(report).start();
