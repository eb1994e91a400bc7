// @ts-check
/** The one row of controls: page, run, step, what is shown and how, and actions on the view. */

import { ROLE_NAMES, partners } from "../model/compare.js";
import { faultsOf, faultsOfLayer } from "../model/health_states.js";
import { address } from "../model/host.js";
import { selected } from "../model/palette_choice.js";
import { timeText } from "../model/renewal.js";
import { RUN_STATES, apart } from "../model/run_states.js";
import * as states from "../model/state.js";
import { GLOSSARY, explanation } from "../model/terms.js";
import { callName, counted, inWordsOf, kindOf, stepText, tileText } from "../model/words.js";
import { prepare, theme } from "../picture/canvas.js";
import { ROW_SHARE } from "../picture/layouts.js";
import { FAULT_COLOURS } from "../server/palettes.js";
import { indexOf, keptText } from "../server/steps.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact_htm.js";
import {
  Button,
  Choice,
  Group,
  Icon,
  Labelled,
  Segments,
  Toggle,
  typed,
  useFolding,
} from "./controls.js";
import { hasPictures, showsPictures } from "./overview.js";
import { RunPicker } from "./runs.js";
import { saveAttribution, savePicture } from "./save.js";

/** @import {App} from "../app.js" */
/** @import {Front, Kind, Model, State} from "../model/model.js" */
/** @import {FaultName, Role} from "../server/server.js" */
/** @import {BarProps, Drawer, ModelProps} from "./view.js" */

const PAGES = [
  ["overview", "Overview", "What is wrong in the run, and since when: all layers and steps (v)"],
  ["maps", "Maps", "The channels of one layer at one step (v)"],
  ["film", "Film", "Chosen channels at all steps, one column per step (m)"],
];

/** @param {ModelProps} props */
function Run({ app, model: { runs, state } }) {
  if (!runs.length) return null;
  const choose = (/** @type {string} */ run) => app.update({ run });
  const names = runs.map(({ run }) => run);
  const verdicts = apart([...app.overview.verdicts.values()], names);
  const stateOf = (/** @type {string} */ run) => {
    const verdict = verdicts.find((each) => each.run === run);
    if (!verdict) return "";
    const { sign, word } = RUN_STATES[verdict.state];
    return ` · ${sign} ${word.toLowerCase()}`;
  };
  const chosen = state.run;
  return html`<${RunPicker} label="Run" runs=${names} ...${{ chosen, stateOf, choose }} />`;
}

const ROLES = Object.entries(ROLE_NAMES).map(
  ([role, text]) =>
    /** @type {[Role, string, string]} */ ([role, text, GLOSSARY[text.toLowerCase()] ?? text]),
);

const ATTRIBUTION = ["attribution", "Attribution", GLOSSARY.attribution];

/**
 * What is shown: the kind of pictures, the channels of a film strip, the sample.
 * @param {ModelProps} props
 */
function Data({ app, model }) {
  const { state, layer, attribution } = model;
  const isFilm = state.view === "film";
  const isAttribution = state.view === "attribution" && attribution !== null;
  const roles = [
    ...ROLES.filter(([id]) => id === state.role || layer?.roles.includes(id)),
    ...(attribution && !isFilm ? [ATTRIBUTION] : []),
  ];
  const samples = isAttribution ? attribution.samples : (layer?.samples ?? 1);
  const hasSamples = samples > 1 && (state.role !== "kernels" || isAttribution);
  if (roles.length < 2 && !hasSamples && !isFilm) return null;
  const show = (/** @type {Role|"attribution"} */ role) =>
    app.update(
      role === "attribution" ? { view: role } : { role, ...(isFilm ? {} : { view: "maps" }) },
    );
  const numbers = Array.from({ length: samples }, (_, k) => [k, `Sample ${k}`]);
  return html`
    <${Group} label="Data" what="What is shown" folds="3">
      ${isFilm && html`<${Channels} ...${{ app, model }} />`}
      ${
        roles.length > 1 &&
        html`<${Segments} label="What is drawn" options=${roles}
          value=${isAttribution ? "attribution" : state.role} choose=${show} />`
      }
      ${
        hasSamples &&
        html`<${Choice} label="Sample" terms="sample" options=${numbers}
          value=${isAttribution ? attribution.sample : state.sample} choose=${app.set("sample")} />`
      }
    <//>
  `;
}

/** The channels of the film strip, as text. @param {ModelProps} props */
function Channels({ app, model: { state, layer, history } }) {
  const [refused, refuse] = useState("");
  const field = useRef(/** @type {HTMLInputElement|null} */ (null));
  const drawn = (state.role === "kernels" ? layer?.channels : layer?.drawn) ?? 0;
  const shown = states.filmChannels(state, drawn, history?.shown).join(", ");
  useEffect(() => void (field.current && (field.current.value = shown)), [shown]);
  const choose = () => {
    const { channels, refused: why } = states.readChannels(field.current?.value ?? "", drawn);
    refuse(inWordsOf(why.join("; ")));
    if (channels.length) app.update({ channels });
  };
  return html`
    <label class="labelled">
      <span class="sublabel">${tileText(layer ?? {})}s</span>
      <input type="search" class="film-channels"
        aria-label=${inWordsOf("Channels of the film strip, such as 3, 17 or 8-11")}
        title=${`${inWordsOf("Channels")}, such as 3, 17 or 8-11; ${states.MOST_CHANNELS} at most`}
        ref=${field}
        onChange=${choose}
        onKeyDown=${(/** @type {KeyboardEvent} */ { key }) => {
          if (key === "Enter") choose();
          if (key === "Enter" || key === "Escape") field.current?.blur();
        }} />
    </label>
    <span class="differs" role="status" hidden=${!refused}>${refused}</span>
  `;
}

const COLOURS = ["Grey", "Viridis", "Magma", "Signed"].map((name) => [name.toLowerCase(), name]);
const SCALES = [
  ["channel", "Channel", "each channel between its own extremes (s)"],
  ["layer", "Layer", "one scale for all channels of the layer (s)"],
];
/** @param {string[][]} options */
const inUnits = (options) =>
  options.map(([id, ...texts]) => [id, ...texts.map((t) => inWordsOf(t))]);
const SORTS = ["index", "strength", "change", "similarity"].map((sort) => [sort, `by ${sort}`]);

/** How pictures are drawn. @param {ModelProps} props */
function Display({ app, model }) {
  const { state, scene } = model;
  const isFilm = state.view === "film";
  const isKernels = state.role === "kernels" && !isFilm;
  const isMoved =
    ["strength", "similarity"].includes(state.sort) &&
    state.sort_step !== null &&
    state.sort_step !== app.shownStep();
  const pinned =
    `The order is that of step ${state.sort_step}, and stays while steps change; ` +
    `take it from this step`;
  const isLocked = isFilm ? state.film_scale === "locked" : state.locked;
  const lock = () =>
    app.update(isFilm ? { film_scale: isLocked ? "step" : "locked" } : { locked: !isLocked });
  const isRows = scene?.kind === "maps" && scene.rows && !isFilm;
  const share = isRows ? ROW_SHARE : 1;
  const sizes = states.TILES.map((side) => [side, side ? `${side / share} px` : "auto"]);
  const sort = (/** @type {State["sort"]} */ by) =>
    app.update({ sort: by, sort_step: app.shownStep() });
  return html`
    <${Group} label="Display" what="How it is drawn" folds="1">
      ${
        !isKernels &&
        html`
          <${Labelled} text="scale" term="scale">
            ${
              !isFilm &&
              html`<${Segments} label="Scale" options=${inUnits(SCALES)} value=${state.scale}
                choose=${app.set("scale")} />`
            }
            <${Toggle} text="Lock" aria-label="Lock the scale over steps" isOn=${isLocked}
              press=${lock} ...${explanation("locked", "Lock the scale over steps (l)")} />
          <//>
          <${Labelled} text="colours" term="colours">
            <${Choice} label="Colours" terms="colours" options=${COLOURS} value=${state.colours}
              choose=${(/** @type {State["colours"]} */ colours) =>
                app.update(selected(app.state, colours))} />
          <//>
        `
      }
      ${
        !isKernels &&
        !isFilm &&
        html`
          <${Labelled} text="sort" term="sort">
            <${Choice} label="Sort" terms="sort strength similarity change" options=${SORTS}
              value=${state.sort} choose=${sort} />
            ${
              isMoved &&
              html`<button type="button" class="again" title=${pinned}
                onClick=${() => sort(state.sort)}>
                Re-sort
              </button>`
            }
          <//>
        `
      }
      <${Labelled} text=${isFilm ? "frames" : "tiles"} term="tile">
        <${Choice} label="Tile" terms="tile" options=${sizes} value=${state.tile}
          choose=${app.set("tile")} />
      <//>
    <//>
  `;
}

const KINDS = /** @type {[Kind, string][]} */ ([
  ["step", "another step"],
  ["run", "another run"],
  ["sample", "another sample"],
  ["role", "inputs or gradients"],
]);
const SIDES = [
  ["both", "Side by side"],
  ["difference", "Difference", "column A minus column B"],
  ["all", "Both"],
];

/** Further columns, how they are drawn, the ranking of layers. @param {ModelProps} props */
function Compare({ app, model }) {
  const { state, layer } = model;
  const isOn = state.compare !== null;
  const isKernels = state.role === "kernels";
  const runs = partners(state.run, model.runs);
  const offered = KINDS.filter(([id]) => {
    const column = isOn ? null : states.newColumn(id, state, layer, runs);
    return column && (!isKernels || states.comparesKernels(column));
  });
  const options = isOn
    ? [
        ["", "Two columns"],
        ["off", "Remove column B"],
      ]
    : [["", "Compare with …"], ...offered];
  const add = (/** @type {Kind|"off"|""} */ kind) => (kind ? app.compare(kind) : app.redraw());
  return html`
    <${Group} label="Compare" what="What it is compared with" folds="2">
      <${Choice} label="Compare with" value="" options=${options} choose=${add} />
      ${
        isOn &&
        html`<${Segments} label="How to compare" options=${SIDES} value=${state.show}
          choose=${app.set("show")} />`
      }
      ${
        isOn &&
        !isKernels &&
        !app.report &&
        html`<${Toggle} text="Rank layers"
          title="List the layers by how much column B differs from column A" isOn=${state.rank}
          press=${() => app.update({ rank: !app.state.rank })} />`
      }
    <//>
  `;
}

const FRONTS = [
  ["pictures", "Pictures", "one channel of each layer at each step"],
  ["states", "States", "the state of every layer at every step, also of those without pictures"],
];

/** What the overview shows. @param {ModelProps & {front: Front}} props */
function OverviewTools({ app, model: { state }, front }) {
  const { isOpen } = app.overview;
  const { length: count } = front.findings;
  return html`
    ${
      hasPictures(front) &&
      html`<${Segments} label="Layers over steps as" options=${FRONTS}
        value=${showsPictures(front, state) ? "pictures" : "states"}
        choose=${app.set("front")} />`
    }
    ${
      count > 0 &&
      html`<button type="button" title="List what was found, with pictures"
        aria-expanded=${String(isOpen)}
        onClick=${() => app.update({ findings: isOpen ? "closed" : "open" })}>
        <span>Findings: ${count}</span><${Icon} name="open" />
      </button>`
    }
  `;
}

/** How long the outcome of an action is said, ms. */
const SAID_MS = 2500;

/** What was said last, for a while, and what says it. */
function useSaid() {
  const [said, say] = useState("");
  const timer = useRef(0);
  const tell = (/** @type {string} */ text) => {
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => say(""), SAID_MS);
    say(text);
  };
  return { said, tell };
}

/** @param {BarProps} props */
export function Bar({ app, model, nothing, busy, drawer, pull }) {
  const row = useRef(/** @type {HTMLElement|null} */ (null));
  useFolding(row);
  const { said, tell } = useSaid();
  const going = busy && !model.playing ? "Loading…" : "";
  const save = async () => {
    if (app.state.view === "film") tell(await app.page.film.save(tell));
    else if (app.state.view === "attribution") tell(await saveAttribution(model));
    else tell(await savePicture(model));
  };
  const share = async () => {
    try {
      await navigator.clipboard.writeText(address());
      tell("Link copied");
    } catch {
      tell("The address bar holds the link");
    }
  };
  app.page.bar = { save };
  const { state, front } = model;
  const { view } = state;
  const isMaps = view === "maps" && !nothing;
  const isFront = view === "overview";
  const hasSteps = !nothing && !isFront;
  const of = { app, model };
  /** @param {Drawer} name @param {string} text */
  const drawerButton = (name, text) =>
    isMaps || (view === "film" && name === "layers" && !nothing)
      ? html`<button type="button" class="drawer-button" aria-expanded=${String(drawer === name)}
          aria-controls=${`drawer-${name}`} onClick=${() => pull(name)}>
          ${text}
        </button>`
      : null;
  return html`
    <div class="toolbar" ref=${row}>
      ${drawerButton("layers", "Layers")}
      <${Segments} label="Page" kind="switch" options=${PAGES}
        value=${view === "attribution" ? "maps" : view}
        choose=${app.set("view")} />
      <${Run} ...${of} />
      ${front && !nothing && html`<${OverviewTools} ...${of} front=${front} />`}
      ${hasSteps && html`<${Time} ...${of} />`}
      ${hasSteps && html`<${Data} ...${of} />`}
      ${hasSteps && view !== "attribution" && html`<${Display} ...${of} />`}
      ${isMaps && html`<${Compare} ...${of} />`}
      <span class="space" />
      <span class="said" role="status">${said || going}</span>
      <${Group} label="More" what="Link, picture, help" folds="4">
        ${
          !app.report &&
          html`<${Toggle} text="Live" isOn=${app.renewal.live}
              press=${() => {
                app.renewal.liveChosen = !app.renewal.live;
                app.renewal.reload();
              }} ...${explanation("live")} />
            <${Button} icon="reload" label="Look for new steps"
              press=${() => app.renewal.reload()} />`
        }
        <${Button} icon="link" label="Copy a link to this view" press=${share} />
        ${
          !isFront &&
          html`<${Button} icon="save" label="Save the view as PNG" keys="p"
          press=${save} />`
        }
        <${Button} text="?" label="Keys and terms" keys="?" press=${() => app.page.help.toggle()} />
      <//>
      ${drawerButton("details", "Details")}
    </div>
  `;
}

// The step slider, which applies to the whole tab, with the faults of each step below it.

const THUMB = 16;
/** Height of the marks, CSS px; those of faults of other layers than the shown one are smaller. */
const HEIGHT = 6;

/**
 * Place of a step on the slider, 0…1: kept ones are evenly spaced.
 * @param {readonly number[]} steps @param {number} step
 */
export function along(steps, step) {
  if (steps.length < 2) return 0;
  const i = indexOf(steps, step);
  const [from, to] = [steps[i], steps[i + 1]];
  const within = to === undefined || step <= from ? 0 : (step - from) / (to - from);
  return (i + within) / (steps.length - 1);
}

/** @param {HTMLCanvasElement} canvas @param {number} width CSS px @param {Model} model */
function paintMarks(canvas, width, { steps, layer, health }) {
  const context = prepare(canvas, width, HEIGHT);
  context.clearRect(0, 0, width, HEIGHT);
  const at = (/** @type {number} */ step) =>
    Math.round(THUMB / 2 + along(steps, step) * (width - THUMB));
  const faults = health ? faultsOf(health) : [];
  const network = new Map(faults.map(({ step, kind }) => [step, kind]));
  /** @type {Map<number, FaultName>} */
  const own = health && layer ? faultsOfLayer(health, layer.key) : new Map();
  for (const step of new Set([...(layer?.steps ?? []), ...network.keys()])) {
    const kind = own.get(step) ?? network.get(step);
    const wide = own.has(step) ? 5 : kind ? 3 : 1;
    context.fillStyle = kind ? FAULT_COLOURS[kind] : theme().strong;
    context.fillRect(at(step) - (wide - 1) / 2, 0, wide, own.has(step) ? HEIGHT : HEIGHT - 2);
  }
}

/** The marks in words. @param {Model} model */
function marksText({ health }) {
  const faults = health ? faultsOf(health) : [];
  const said = faults.slice(0, 3).map(({ step, kind, layers }) => {
    const others = layers.length > 1 ? ` and ${layers.length - 1} more` : "";
    return `step ${stepText(step)}: ${inWordsOf(kind)} in ${callName(layers[0])}${others}`;
  });
  return `faults of the network: ${said.join("; ") || "none"}${faults.length > 3 ? "; …" : ""}`;
}

const KEEPS_MORE =
  "TensorBoard keeps more steps if it is started with fmapboard serve; --standalone keeps all.";

const HOLDS_MORE =
  "This report holds pictures of these steps; fmapboard report --steps N holds those of more.";

/** @param {{app: App, model: Model}} props */
export function Time({ app, model }) {
  const { steps, state, scene, stepWords, playing, unread } = model;
  const marks = useRef(/** @type {HTMLCanvasElement|null} */ (null));
  const slider = useRef(/** @type {HTMLElement|null} */ (null));
  const paint = useRef(() => {});
  paint.current = () => {
    if (marks.current && slider.current) {
      paintMarks(marks.current, slider.current.clientWidth, model);
    }
  };
  useLayoutEffect(() => paint.current());
  useLayoutEffect(() => {
    const sized = new ResizeObserver(() => paint.current()); // groups beside it become menus
    if (slider.current) sized.observe(slider.current);
    return () => sized.disconnect();
  }, []);
  const i = indexOf(steps, state.step);
  const asked = steps[i];
  const word = stepWords[asked];
  const at = scene ? timeText(scene.maps.wallTime * 1000) : "";
  const isOfImages = kindOf(stepWords) === "image";
  const newest = state.step === null && !isOfImages ? " · newest" : "";
  const kept =
    unread === null
      ? keptText(steps.length, model.written, isOfImages ? "image" : "logged step")
      : `${counted(steps.length, "step")} read so far, the log goes up to step ${stepText(unread)}`;
  const explained = app.report
    ? { title: HOLDS_MORE }
    : model.keepsAll
      ? explanation("live", kept)
      : explanation("kept live", `${kept}\n${KEEPS_MORE}`);
  const moved = typed((to) => app.update({ step: steps.slice(0, -1)[Number(to)] ?? null }));
  return html`
    <div class="time" role="group" aria-label="Step">
      <${Button} icon="previous" label="Previous step" keys="←" press=${() => app.stepBy(-1)} />
      <${Button} icon=${playing ? "pause" : "play"} label=${playing ? "Pause" : "Play"} keys="space"
        press=${() => app.play()} />
      <${Button} icon="next" label="Next step" keys="→" press=${() => app.stepBy(1)} />
      <div class="slider-room">
        <input type="range" min="0" max=${Math.max(0, steps.length - 1)} step="1" class="slider"
          aria-label="Step"
          aria-valuetext=${asked === undefined ? "none" : (word ?? `step ${asked}`)}
          disabled=${steps.length < 2} value=${Math.max(0, i)} ref=${slider} onInput=${moved} />
        <canvas class="step-marks" role="img" aria-label=${marksText(model)} ref=${marks} />
      </div>
      <div class="now">
        <span title=${[word, at && `Logged at ${at}`].filter(Boolean).join("\n")}>
          <span class="label" hidden=${Boolean(word)}>Step ${""}</span>
          <output class="step">${asked === undefined ? "–" : (word ?? stepText(asked))}</output>
          <span class="newest">${unread === null && newest}</span>
        </span>
        <span class="kept" ...${explained}>${kept}</span>
      </div>
    </div>
  `;
}
