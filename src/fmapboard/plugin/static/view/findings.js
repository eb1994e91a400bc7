// @ts-check
/** How the runs are: a line on the shown one, a row per further run, and the list of findings. */

import { opening, scope, unreadText } from "../model/front.js";
import { explanation } from "../model/terms.js";
import { callName, counted, runText, stepText, wordOf } from "../model/words.js";
import { runColour } from "../picture/canvas.js";
import { faultOf } from "../picture/captions.js";
import { html } from "../vendor/preact_htm.js";
import { MapTile } from "./tile.js";

/** @typedef {import("../app.js").App} App */
/** @typedef {import("../app.js").Model} Model */
/** @typedef {import("../server/health.js").Finding} Finding */
/** @typedef {import("../server/health.js").Verdict} Verdict */
/** @typedef {import("../model/front.js").Front} Front */
/** @typedef {import("../model/scene.js").MapsScene} MapsScene */
/** @typedef {{app: App, model: Model, front: Front}} Props */

/** Word and sign of each class, and its place in the list: without colour they can be told apart too. */
const SIGNS = Object.freeze({
  warning: { word: "Fault:", sign: "✕", rank: 0 },
  note: { word: "Suspicion:", sign: "!", rank: 1 },
  unreadable: { word: "", sign: "?", rank: 2 },
  well: { word: "", sign: "✓", rank: 3 },
});

/** A message with the text between backticks as code. @param {string} message */
function sentence(message) {
  return message
    .split("`")
    .map((part, i) => (i % 2 ? html`<code>${part}</code>` : part.replace(/(\d) %/g, "$1\u00a0%")));
}

/** @param {{of: Verdict["class"]|"unreadable"}} props */
function Mark({ of }) {
  return html`<span class="mark" data-class=${of} title=${of}>${SIGNS[of].sign}</span>`;
}

/** @param {{run: string, runs: Model["runs"], end?: string}} props */
function Name({ run, runs, end = "" }) {
  return html`
    <span class="of-run" title=${runText(run)}>
      <i class="dot" aria-hidden="true" style=${{ background: runColour(run, runs) }} />${
        runText(run) + end
      }
    </span>
  `;
}

/** How the shown run is, in one large line, and below it a row per further run. @param {Props} props */
export function Verdicts({ app, model, front }) {
  const { runs, stepWords, unread } = model;
  const shown = front.verdicts.find(({ run }) => run === front.run);
  const others = front.verdicts
    .filter(({ run }) => run !== front.run)
    .sort((a, b) => SIGNS[a.class].rank - SIGNS[b.class].rank);
  // Runs in which nothing was found share a row.
  const well = others.filter((each) => each.class === "well");
  const isShared = (/** @type {{class: string}} */ each) =>
    well.length > 1 && each.class === "well";
  const press = (
    /** @type {string} */ run,
    /** @type {import("../vendor/preact_htm.js").Child} */ content,
    title = "",
  ) => html`
    <button type="button" key=${run} data-run=${run} title=${title || null}
      onClick=${() => app.update({ ...opening(app.state, run), layer: "" })}>
      ${content}
    </button>
  `;
  const text =
    shown && unread !== null
      ? shown.text.replace(/^Nothing found/, "Nothing found so far")
      : shown?.text;
  return html`
    <div class="verdicts">
      <h1 class="verdict">
        ${shown && html`<${Mark} of=${shown.class} />`}
        ${shown && SIGNS[shown.class].word && html`<b>${SIGNS[shown.class].word}</b>`}
        <span class="sentence">${text === undefined ? "Looking through the run…" : sentence(text)}</span>
        ${
          shown &&
          shown.shown_at !== null &&
          shown.since !== null &&
          html`<button type="button" class="go"
            onClick=${() => void app.overview.go({ ...shown, step: shown.since ?? 0 })}>
            Open ${wordOf(stepWords, shown.since)} →
          </button>`
        }
      </h1>
      ${
        shown?.rest?.length
          ? html`<details class="why">
              <summary>Evidence, next step</summary>
              <ul>${shown.rest.map((each) => html`<li>${sentence(each)}</li>`)}</ul>
            </details>`
          : null
      }
      <ol class="run-rows" aria-label="Further runs" hidden=${!others.length}>
        ${others
          .filter((each) => !isShared(each))
          .map(
            (of) => html`
              <li key=${of.run}>
                ${press(
                  of.run,
                  html`<${Mark} of=${of.class} /><${Name} run=${of.run} runs=${runs} /><span
                      class="sentence">${sentence(of.text)}</span
                    >`,
                )}
              </li>
            `,
          )}
        ${
          well.length > 1 &&
          html`<li class="together" key="">
            <${Mark} of="well" /><span>Nothing found in</span>
            ${well.map(({ run, text: said }) =>
              press(run, html`<${Name} ...${{ run, runs }} />`, said.replaceAll("\`", "")),
            )}
          </li>`
        }
      </ol>
    </div>
  `;
}

/** What is still being looked through; "" for nothing. @param {Model} model @param {Front} front */
export function awaitedText({ unread }, { awaited, verdicts, run }) {
  const isKnown = verdicts.some((each) => each.run === run);
  const further = awaited && isKnown ? `looking through ${counted(awaited, "further run")}…` : "";
  return [unreadText(unread), further].filter(Boolean).join(" · ");
}

/**
 * A button with the map of one channel.
 * @param {{scene: MapsScene, channel: number, palette: string, of: string, press: () => void}} props
 *   `of` names layer and step
 */
function Tile({ of, press, ...tile }) {
  const fault = faultOf(tile.scene, "a", tile.channel);
  const label = `channel ${tile.channel} of ${of}${fault ? `: ${fault.word}` : ""}`;
  return html`
    <button type="button" class="tile" title=${label} aria-label=${label} onClick=${press}>
      <${MapTile} ...${tile} />
      ${fault && html`<span class="tile-state">${fault.brief}</span>`}
    </button>
  `;
}

/** What is wrong, one line per finding, each with pictures that show it. @param {Props} props */
export function Findings({ app, model, front }) {
  const { runs, state } = model;
  const isSeveral = front.chosen.length > 1;
  const rest = front.lines.length - front.shown.length;
  const named = (/** @type {string} */ run) =>
    isSeveral && html`<${Name} run=${run} runs=${runs} end=" · " />`;
  return html`
    <div>
      <ol class="findings">
        ${front.shown.map((line) => {
          const { finding, layer, scene, channels, text, step, run } = line;
          const go = (/** @type {number|null} */ channel) =>
            void app.overview.go({ ...finding, run, step: finding.since }, channel);
          const of = `layer ${layer ? callName(layer) : ""} at step ${stepText(step)}`;
          const { explanation: why } = finding;
          const stems = [further(finding), line.loading ? "loading its pictures…" : text];
          return html`
            <li class=${finding.follows ? "line follows" : "line"}>
              <button type="button" class="finding" disabled=${!layer} onClick=${() => go(null)}>
                <span class="finding-class" data-class=${finding.class} ...${explanation(finding.class)}>
                  ${finding.class}
                </span>
                <span class="sentence">${named(run)}${sentence(finding.message)}</span>
                ${why && html`<span class="explanation" title=${why.replaceAll("\`", "")}>${sentence(why)}</span>`}
                <span class="stems">${stems.filter(Boolean).join(" · ")}</span>
              </button>
              <div class="tiles">
                ${
                  scene &&
                  channels.map(
                    (channel) => html`<${Tile} key=${channel} palette=${state.colours}
                      press=${() => go(channel)} ...${{ scene, channel, of }} />`,
                  )
                }
              </div>
            </li>
          `;
        })}
        ${quiet(front.answers, named)}
      </ol>
      <button type="button" class="more" hidden=${rest <= 0 && !app.overview.all}
        onClick=${() => app.overview.showLines(!app.overview.all)}>
        ${rest > 0 ? `Show ${rest} more` : "Show fewer"}
      </button>
      <p class="visually-hidden" role="status">
        ${counted(front.lines.length, "finding")} in ${counted(front.chosen.length, "run")}
      </p>
    </div>
  `;
}

/**
 * What is said of runs without findings, and of those that were not read from their own series.
 * @param {Front["answers"]} answers
 * @param {(run: string) => import("../vendor/preact_htm.js").Child} named
 */
function quiet(answers, named) {
  const lines = [];
  const healthy = answers.filter(({ answer }) => answer && isQuiet(answer));
  const together = healthy.length > 1;
  if (together) {
    const runs = healthy.map(({ run, answer }, i) => [
      i ? "; " : "",
      named(run),
      answer ? scope(answer) : "",
    ]);
    lines.push(html`<li class="quiet">nothing found in ${runs}</li>`);
  }
  for (const { run, answer, error } of answers) {
    if (error) {
      lines.push(
        html`<li class="quiet problem">${named(run)}findings cannot be read: ${error}</li>`,
      );
    } else if (answer && !(together && isQuiet(answer))) {
      const sofar = answer.unread === null ? "" : "so far ";
      const nothing = answer.findings.length ? "" : `nothing found ${sofar}in ${scope(answer)}`;
      const text = [nothing, unreadText(answer.unread)].filter(Boolean).join("; ");
      if (text) lines.push(html`<li class="quiet">${named(run)}${text}</li>`);
    }
  }
  const awaited = answers.filter(({ answer, error }) => !answer && !error);
  if (awaited.length) {
    const of =
      awaited.length < answers.length ? ` in ${counted(awaited.length, "further run")}` : "";
    lines.push(html`<li class="quiet">looking for findings${of}…</li>`);
  }
  return lines;
}

/** True if nothing was found in the whole run. @param {import("../server/health.js").FindingsAnswer} of */
function isQuiet({ findings, unread }) {
  return !findings.length && unread === null;
}

/** The layers that a line stands for besides its own, unless its message says so. @param {Finding} of */
function further({ more, message }) {
  if (!more || message.includes(`${more} further`)) return "";
  return `the same in ${more} further layer${more === 1 ? "" : "s"}`;
}
