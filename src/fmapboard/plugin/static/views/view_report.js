// @ts-check
/** What a report says about itself: which images it shows, and what it leaves out. */

import { h } from "./dom.js";

/**
 * Written by `fmapboard.report`.
 * @typedef {object} ReportFacts
 * @property {string} title
 * @property {string} version of fmapboard
 * @property {string} written date and time
 * @property {string} privacy which images it contains
 * @property {string[]} left_out in words
 */

/** @param {ReportFacts|null} report null in TensorBoard */
export function createReport(report) {
  const element = h("details", { class: "report-note", hidden: !report });
  if (!report) return { element };
  const { privacy, left_out: left, version, written } = report;
  element.append(
    h(
      "summary",
      {},
      h("strong", { text: privacy }),
      h("span", { text: left.length ? ` Left out: ${left.join("; ")}` : "" }),
    ),
    h("ul", {}, ...left.map((text) => h("li", { text }))),
    h("p", { text: `Written by fmapboard ${version}, ${written}. Nothing is sent or loaded.` }),
  );
  return { element };
}
