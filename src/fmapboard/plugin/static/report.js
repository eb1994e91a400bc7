// @ts-check
/** Entry point of a report: the tab over the answers in the page. */

import { App } from "./app.js";
import { answerFrom } from "./server/api.js";
import { answersIn, input, page } from "./server/embedded.js";
import { loaders } from "./server/health.js";

/** @import {Embedded} from "./server/server.js" */
/** @import {ReportFacts} from "./view/view.js" */

const { report, ...embedded } = /** @type {{fmapboardReport: Embedded & {report: ReportFacts}}} */ (
  /** @type {unknown} */ (window)
).fmapboardReport;
document.title = report.title;
answerFrom(answersIn(embedded));
Object.assign(loaders, { page, input });
new App(report).start();
