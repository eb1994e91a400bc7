// @ts-check
/** Entry point of a report: the tab over the answers in the page. */

import { App } from "./app.js";
import { answerFrom } from "./data/api.js";
import { answersIn } from "./data/embedded.js";
import { differences } from "./data/embedded_difference.js";
import { sheetInputs, sheets } from "./data/embedded_sheet.js";

/** @typedef {import("./data/embedded.js").Embedded} Embedded */

const { report, ...embedded } =
  /** @type {{fmapboardReport: Embedded & {report: import("./views/view_report.js").ReportFacts}}} */ (
    /** @type {unknown} */ (window)
  ).fmapboardReport;
document.title = report.title;
const stored = answersIn(embedded);
/** @type {Partial<Record<string, import("./data/api.js").Answering>>} */
const made = {
  difference: (_, ...of) => differences(...of),
  sheet: (_, ...of) => sheets(...of),
  sheet_input: (_, ...of) => sheetInputs(...of),
};
answerFrom((path, ...of) => (made[path] ?? stored)(path, ...of));
new App(report).start();
