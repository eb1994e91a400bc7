// @ts-check
/** Entry point that TensorBoard imports; shows an error instead of an empty tab. */

/** Made of `app.js` and all that it imports; a variable, so that types are not read from it. */
const BUNDLE = "./dist/app.js";

/** Draws the tab into TensorBoard's frame. */
export async function render() {
  document.documentElement.lang = "en";
  document.title = "Feature maps";
  try {
    ahead().catch(() => {}); // TensorBoard's page cannot be read
    const [bundle] = await Promise.all([import(BUNDLE), style()]);
    const { App } = /** @type {typeof import("./app.js")} */ (bundle);
    new App().start(asked);
  } catch (error) {
    const said = document.createElement("pre");
    said.textContent =
      `The Feature maps tab could not start: ${error}\n\nReload the page; if it ` +
      "comes back, please report it with the browser's name and version.";
    document.body.replaceChildren(said);
    document.documentElement.dataset.ready = "failed";
  }
}

/**
 * Answers by address, each for the script's first request.
 * @type {Map<string, Promise<Response>>}
 */
const asked = new Map();

/** Asks, while the script is loading, for what it will ask first: the runs, and all about one. */
async function ahead() {
  const hash = `${window.location.hash}&${window.parent.location.hash}`;
  const named = /p\.feature_maps\.run=([^&]*)/.exec(hash);
  const isFront = !/p\.feature_maps\.view=(?!overview)/.test(hash);
  const about = isFront ? ["layers", "health", "findings"] : ["layers"];
  const askAbout = (/** @type {string} */ run) => about.forEach((path) => ask(path, { run }));
  if (named) askAbout(decodeURIComponent(named[1]));
  ask("runs", {}, async (answer) => {
    // The script gets it when the others have been asked for; without a run, it will say so.
    if (named || !answer.ok) return answer;
    const { runs } = await answer.clone().json();
    if (runs.length) askAbout(runs[0].run);
    return answer;
  });
}

/**
 * @param {string} path @param {Record<string, string>} query
 * @param {(answer: Response) => Promise<Response>|Response} then
 */
function ask(path, query, then = (answer) => answer) {
  const url = new URL(`./data/${path}`, import.meta.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
  const answer = fetch(url).then(then);
  answer.catch(() => {}); // the script says so
  asked.set(url.href, answer);
}

/** Loads the style sheet before the first paint; without it the tab still works, unstyled. */
function style() {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("./style.css", import.meta.url).href;
  const done = new Promise((resolve) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", resolve);
  });
  document.head.append(link);
  return done;
}
