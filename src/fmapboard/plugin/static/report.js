// @ts-check
/** Entry point of a report: the tab over the answers in the page. */

import { App } from "./app.js";
import { answerFrom } from "./data/api.js";
import { answersIn } from "./data/embedded.js";
import { differences } from "./data/embedded_difference.js";

/** @typedef {import("./data/embedded.js").Embedded} Embedded */

const { report, ...embedded } =
  /** @type {{fmapboardReport: Embedded & {report: import("./views/view_report.js").ReportFacts}}} */ (
    /** @type {unknown} */ (window)
  ).fmapboardReport;
document.title = report.title;
const stored = answersIn(embedded);
answerFrom((path, query, signal) =>
  path === "difference" ? differences(query, signal) : stored(path, query, signal),
);
new App(report).start();
