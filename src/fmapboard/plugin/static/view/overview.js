// @ts-check
/** The overview page: how the runs are, and below it the contact sheet or the map of states. */

import { scope, unreadText } from "../model/front.js";
import { CODE, largeText, tableOf } from "../model/health_states.js";
import { NOTHING_FOUND, RUN_STATES, SIGNS, apart, counts, rowsOf } from "../model/run_states.js";
import { MAIN } from "../model/scene.js";
import { explanation } from "../model/terms.js";
import {
  callName,
  counted,
  inWordsOf,
  kindOf,
  runText,
  stepText,
  tileText,
  wordOf,
} from "../model/words.js";
import { prepare } from "../picture/canvas.js";
import { faultOf } from "../picture/captions.js";
import { fits } from "../picture/layouts.js";
import { drawLine, frameOf } from "../picture/painter.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact_htm.js";
import { HealthKey, HealthMap } from "./cells.js";
import { Kept, Painted } from "./hooks.js";
import { MapTile } from "./point.js";
import { ContactSheet, frameOfCode, isShown } from "./sheet.js";

/** @import {App} from "../app.js" */
/** @import {Front, MapsScene, Model, RunState, RunVerdict, State} from "../model/model.js" */
/** @import {Health} from "../server/server.js" */
/** @import {DifferenceTable} from "../server/routes.js" */
/** @import {Child} from "../vendor/preact_htm.js" */
/** @import {FrontProps} from "./view.js" */

/** Smallest height of the map; a smaller window scrolls, CSS px. */
const LEAST = 240;
const MARGIN = 12;

/** What is above the contact sheet or the map. @param {FrontProps & {isSheet: boolean}} props */
function Above({ app, model, front, isSheet }) {
  const { health, problem } = front;
  const facts = health ? factsText(health, isSheet) : "";
  return html`
    <${Verdicts} ...${{ app, model, front }} />
    ${front.shown.length > 0 && html`<${Findings} ...${{ app, model, front }} />`}
    <p class="problem" role="alert" hidden=${!problem}>${problem}</p>
    <div class="overview-head" hidden=${!facts && isSheet}>
      <span class="about" hidden=${!facts}>${facts}</span>
      ${health && !isSheet && html`<${HealthKey} ...${{ health }} />`}
    </div>
  `;
}

/** How much there is, and what is missing. @param {Health} health @param {boolean} isSheet */
function factsText(health, isSheet) {
  const { layers, steps, written, step_words: words } = health;
  const size = scope({ layers: layers.length, steps: steps.length, written }, kindOf(words));
  return [isSheet ? "" : size, lost(health)].filter(Boolean).join(" · ");
}

/** @param {{app: App, model: Model}} props */
export function Overview({ app, model }) {
  const { front, state } = model;
  const isSheet = front !== null && showsPictures(front, state);
  if (!isSheet) app.overview.isUp = true;
  return html`
    <main class="overview" aria-label="Overview" hidden=${!front} onScroll=${() => app.redraw()}>
      <${Kept} shown=${front !== null}>
        ${front && html`<${Above} ...${{ app, model, front, isSheet }} />`}
        ${
          front &&
          isSheet &&
          html`<${ContactSheet} ...${{ app, front }} palette=${state.colours}
            scale=${state.sheet_scale}>
              ${front.health && html`<${Frames} ...${{ front, health: front.health }} />`}
            <//>`
        }
        ${
          front?.health &&
          !isSheet &&
          html`<${States} ...${{ app, health: front.health }}
          />`
        }
      <//>
    </main>
  `;
}

/**
 * The map of states, in what is left of the page.
 * @param {{app: App, health: Health}} props
 */
function States({ app, health }) {
  const room = useRef(/** @type {HTMLElement|null} */ (null));
  const [size, setSize] = useState({ width: 0, height: 0 });
  const { width, height } = size;
  // Once more after it has been drawn: a scroll bar may have come, or gone.
  useLayoutEffect(() => {
    const { current: element } = room;
    if (!element?.parentElement) return;
    const left = element.parentElement.clientHeight - element.offsetTop - MARGIN;
    const now = { width: element.clientWidth, height: Math.max(LEAST, left) };
    if (now.width !== width || now.height !== height) setSize(now);
  });
  return html`
    <div class="health-room" ref=${room}>
      ${width > 0 && html`<${HealthMap} ...${{ app, health, width, height }} />`}
    </div>
  `;
}

/** True if there is a contact sheet. @param {Front} front */
export function hasPictures({ health }) {
  return Boolean(health?.layers.some(isShown));
}

/** True for the contact sheet, not the map of states. @param {Front} front @param {State} state */
export function showsPictures(front, state) {
  if (!hasPictures(front)) return false;
  return state.front === "auto" ? fits(window.innerWidth - 2 * MARGIN) : state.front === "pictures";
}

/** Of a frame in the legend, CSS px. */
const BOX = { left: 3, top: 3, width: 16, height: 10 };

/**
 * What frames, empty cells and red steps mean.
 * @param {{front: Front, health: Health}} props
 */
function Frames({ front: { difference, findings }, health }) {
  const begins = findings.some(({ since }) => since);
  const present = Object.values(CODE).filter((code) => tableOf(health).present.has(code));
  const kinds = new Map(present.reverse().map((code) => [frameOfCode(code), code]));
  const large = largeText(health);
  return html`
    <ul class="states">
      ${[...kinds].map(([kind, code]) => {
        if (!kind) return null;
        const paint = (/** @type {HTMLCanvasElement} */ canvas) =>
          drawLine(prepare(canvas, 22, 16), frameOf(kind), BOX);
        const { word, what } = health.states[code];
        return html`
          <li key=${kind} title=${what}>
            <${Painted} paint=${paint} of=${[window.devicePixelRatio]} />
            ${kind === "large" ? large : inWordsOf(word)}
            ${kind === "dead" && " after the activation"}
          </li>
        `;
      })}
      ${large && !kinds.has("large") && html`<li>${large}</li>`}
      ${
        difference &&
        html`<li key="signs">${SIGNS}</li>
          <li key="identical">empty: identical</li>`
      }
      ${
        begins &&
        html`<li key="begins"><b
        class="onset">bold</b>${"\u00a0"}step: start of a finding</li>`
      }
    </ul>
  `;
}

/** Steps whose numbers are missing because their records cannot be read. @param {Health} health */
function lost({ errors = {} }) {
  const steps = Object.keys(errors);
  if (!steps.length) return "";
  return (
    `${steps.length === 1 ? "step" : "steps"} ${steps.join(", ")} cannot be read: ` +
    `${errors[steps[0]]}`
  );
}

// How the runs are: a line on the shown one, a row per further run, and the list of findings.

/** A message with the text between backticks as code. @param {string} message */
function sentence(message) {
  return message
    .split("`")
    .map((part, i) => (i % 2 ? html`<code>${part}</code>` : part.replace(/(\d) %/g, "$1\u00a0%")));
}

/**
 * The sign of a state; its word is for screen readers, if it is not written beside it.
 * @param {{state: RunState, isBesideWord?: boolean}} props
 */
function Mark({ state, isBesideWord = false }) {
  const { sign, word, term } = RUN_STATES[state];
  const spoken = isBesideWord ? { "aria-hidden": "true" } : { role: "img", "aria-label": word };
  const { title } = explanation(term);
  return html`<span class="mark" data-state=${state} title=${`${word}: ${title}`}
    ...${spoken}>${sign}</span>`;
}

/** @param {{run: string, end?: string}} props */
function Name({ run, end = "" }) {
  return html`<span class="of-run" title=${runText(run)}>${runText(run) + end}</span>`;
}

/**
 * How the shown run is, in one large line, and below it rows of the further runs.
 * @param {FrontProps} props
 */
export function Verdicts({ app, model, front }) {
  const { runs, stepWords } = model;
  const verdicts = apart(
    front.verdicts,
    runs.map(({ run }) => run),
  );
  const shown = verdicts.find(({ run }) => run === front.run);
  const isDifference = !shown || shown.state === "difference";
  const difference = isDifference ? front.difference : null;
  const others = verdicts.filter(({ run }) => run !== front.run);
  const first = difference?.layer;
  const [cause] = front.findings; // the verdict names it
  const text = difference?.text ?? shown?.text ?? "Looking through the run…";
  const word = shown && difference === null ? wordOfRun(shown.state, model) : "";
  const progress = shown?.progress ?? "";
  const awaited = awaitedText(model, front);
  const rest = shown?.rest ?? [];
  const labels = new Set(rest.map(({ label }) => label));
  labels.delete("not checked"); // which alone is worth no click
  const evidence = labels.has("next") ? "Evidence, next step" : labels.size ? "Evidence" : "";
  return html`
    <div class="verdicts">
      <h1 class="verdict">
        ${shown && html`<${Mark} state=${shown.state} isBesideWord=${word !== ""} />`}
        <span class="verdict-text">
          ${others.length > 0 && html`<${Name} run=${front.run} end=":" /> `}
          ${word && html`<b>${word}</b> `}<span class="sentence">${sentence(text)}</span>
        </span>
        ${
          cause?.shown_at &&
          html`<button type="button" class="go"
            onClick=${() => void app.overview.go({ ...cause, run: front.run, step: cause.since })}>
            Open ${wordOf(stepWords, cause.since)} →
          </button>`
        }
        ${
          first &&
          html`<button type="button" class="go"
            onClick=${() => app.update({ view: "maps", layer: first.key })}>
            Open layer →
          </button>`
        }
      </h1>
      <div class="more">
        ${progress && html`<span>${sentence(progress)}</span>`}
        ${
          evidence
            ? html`<details class="why">
                <summary>${evidence}</summary>
                <dl class="terms">
                  ${rest.map(({ label, text }, i) => {
                    const isFirst = i === 0 || rest[i - 1].label !== label;
                    return html`${isFirst && html`<dt>${label}</dt>`}<dd>${sentence(text)}</dd>`;
                  })}
                </dl>
              </details>`
            : null
        }
        ${front.difference?.table && html`<${Differences} ...${front.difference.table} />`}
        ${others.length > 0 && html`<${Others} ...${{ app, others }} />`}
        ${awaited && html`<span class="awaited">${awaited}</span>`}
      </div>
    </div>
  `;
}

const ERRORS =
  "Relative errors: about 1.4 is unrelated, inf not comparable. In and out: of what the layer " +
  "receives and returns in each model alone; added: of what it returns when b gets a's input.";

/** What `fmapboard diff` printed. @param {DifferenceTable} props */
function Differences({ rows, compared }) {
  const left = compared - rows.length;
  return html`
    <details class="why">
      <summary>All layers</summary>
      <table class="differences">
        <tr>${["layer", "type", "error in", "error out", "added", ""].map(
          (text) => html`<th>${text}</th>`,
        )}</tr>
        ${rows.map(
          (row) => html`<tr class=${row.is_different ? "differs" : ""}>
            <td>${row.name}</td><td>${row.type}</td><td>${row.error_in}</td>
            <td>${row.error_out}</td><td>${row.added}</td><td>${row.note}</td>
          </tr>`,
        )}
      </table>
      <p class="label">${left > 0 && `${left} more are not listed. `}${ERRORS}</p>
    </details>
  `;
}

/**
 * The word before the verdict; "" where there is no training that could learn.
 * @param {RunState} state @param {Model} model
 */
function wordOfRun(state, { unread }) {
  const word = state === "no training" ? "" : RUN_STATES[state].word;
  // Later steps do not take back what was found.
  const isSoFar = unread !== null && NOTHING_FOUND.has(state);
  const said = isSoFar ? `${word} so far`.trim() : word;
  return said && `${said}:`;
}

/** Rows of further runs, and names in a row, that are shown before all are asked for. */
const FEW_ROWS = 3;
/** Height of a window in which none of several rows is shown at first, CSS px. */
const LOW = 560;
const FEW_NAMES = 6;

/**
 * How many further runs are in each state, and a row per run, the worst first, in which runs that
 * need no attention share one; a button shows those beyond the first.
 * @param {{app: App, others: RunVerdict[]}} props
 */
function Others({ app, others }) {
  const rows = rowsOf(others);
  const isAlone = others.length === 1;
  const isWhole = app.overview.isWhole;
  // Beside a run that the user has chosen, in a low window, and above findings, a line is enough.
  const isOpened = app.overview.opened !== "";
  const hasSpace = isOpened && window.innerHeight > LOW && !app.overview.isOpen;
  const most = isAlone || hasSpace ? FEW_ROWS : 0;
  const shown = isWhole ? rows : rows.slice(0, most);
  const few = (/** @type {RunVerdict[]} */ row) => (isWhole ? row : row.slice(0, FEW_NAMES));
  const isCut = (/** @type {RunVerdict[]} */ row) => row.length > few(row).length;
  const isFolded = rows.length > most || rows.some(({ length }) => length > FEW_NAMES);
  /** @param {string} run @param {Child} content */
  const press = (run, content, title = "") => html`
    <button type="button" key=${run} data-run=${run} title=${title || null}
      onClick=${() => app.update({ run, layer: "" })}>
      ${content}
    </button>
  `;
  return html`
    ${
      !isAlone &&
      html`<p class="run-summary label">
        <span>
          ${others.length} further runs:${" "}
          ${counts(others).map(
            ({ state, text }, i) => html`${i > 0 && ", "}<span data-state=${state}>${text}</span>`,
          )}
        </span>
        <button type="button" aria-expanded=${String(isWhole)} hidden=${!isFolded}
          onClick=${() => app.overview.showRuns(!isWhole)}>
          ${isWhole ? "Show fewer" : "Show all"}
        </button>
      </p>`
    }
    <ol class="run-rows" aria-label="Further runs">
      ${shown.map((row) => {
        const [{ run, state, text }] = row;
        if (row.length > 1) {
          return html`<li class="together" key=${state}>
              <${Mark} state=${state} /><span class="shared">${RUN_STATES[state].many}:</span>
              ${few(row).map((each) =>
                press(each.run, html`<${Name} run=${each.run} />`, each.text.replaceAll("\`", "")),
              )}
              ${isCut(row) && html`<span>and ${row.length - FEW_NAMES} more</span>`}
            </li>`;
        }
        return html`
            <li key=${run}>
              ${press(
                run,
                html`<${Mark} state=${state} /><${Name} run=${run} /><span
                    class="sentence">${sentence(text)}</span
                  >`,
              )}
            </li>
          `;
      })}
    </ol>
  `;
}

/** What is still being looked through; "" for nothing. @param {Model} model @param {Front} front */
export function awaitedText({ unread }, { awaited, verdicts, run }) {
  const isKnown = verdicts.some((each) => each.run === run);
  const further = awaited && isKnown ? `looking through ${counted(awaited, "further run")}…` : "";
  return [unreadText(unread), further].filter(Boolean).join(" · ");
}

/**
 * @param {{scene: MapsScene, channel: number, palette: string, of: string, press: () => void}}
 *   props `of` names layer and step
 */
function Tile({ of, press, ...tile }) {
  const fault = faultOf(tile.scene, MAIN, tile.channel);
  const shown = tileText(tile.scene.maps.header, tile.channel);
  const label = `${shown} of ${of}${fault ? `: ${fault.word}` : ""}`;
  return html`
    <button type="button" class="tile" title=${label} aria-label=${label} onClick=${press}>
      <${MapTile} ...${tile} />
      ${fault && html`<span class="tile-state">${fault.brief}</span>`}
    </button>
  `;
}

/**
 * What is wrong, one line per finding, each with pictures that show it.
 * @param {FrontProps} props
 */
function Findings({ app, model, front }) {
  const { run, colours } = model.state;
  const rest = front.findings.length - front.shown.length;
  return html`
    <div class="overview-findings">
      <ol class="findings">
        ${front.shown.map(({ finding, layer, scene, channels, text, step, loading }, i) => {
          const go = (/** @type {number|null} */ channel) =>
            void app.overview.go({ ...finding, run, step: finding.since }, channel);
          const of = `layer ${layer ? callName(layer) : ""} at step ${stepText(step)}`;
          const { explanation: why, follows } = finding;
          const kind = finding.class === "warning" ? "fault" : "suspicion";
          const isFirst = follows && !front.shown[i - 1]?.finding.follows;
          return html`
            ${isFirst && html`<li class="line followed">May follow from it:</li>`}
            <li class=${follows ? "line follows" : "line"}>
              <button type="button" class="finding" disabled=${!layer} onClick=${() => go(null)}>
                <span class="finding-class" data-state=${kind} ...${explanation(kind)}>
                  ${RUN_STATES[kind].word}
                </span>
                <span class="sentence">${sentence(finding.message)}</span>
                ${why && html`<span class="explanation">${sentence(why)}</span>`}
                <span class="stems">${loading ? "loading its pictures…" : text}</span>
              </button>
              ${
                scene &&
                html`<div class="tiles">
                  ${channels.map(
                    (channel) => html`<${Tile} key=${channel} palette=${colours}
                      press=${() => go(channel)} ...${{ scene, channel, of }} />`,
                  )}
                </div>`
              }
            </li>
          `;
        })}
      </ol>
      <button type="button" class="more" hidden=${rest <= 0 && !app.overview.all}
        onClick=${() => app.overview.showLines(!app.overview.all)}>
        ${rest > 0 ? `Show ${rest} more` : "Show fewer"}
      </button>
    </div>
  `;
}
