// @ts-check
/** Entry point that TensorBoard imports; shows an error instead of an empty tab. */

/** Draws the tab into TensorBoard's frame. */
export async function render() {
  document.documentElement.lang = "en";
  document.title = "Feature maps";
  try {
    void ahead();
    const [{ App }] = await Promise.all([import("./app.js"), style()]);
    new App().start();
  } catch (error) {
    const said = document.createElement("pre");
    said.textContent =
      `The Feature maps tab could not start: ${error}\n\nReload the page; if it ` +
      "comes back, please report it with the browser's name and version.";
    document.body.replaceChildren(said);
    document.documentElement.dataset.ready = "failed";
  }
}

/** Asks, while the script is loading, for what it will ask first: the runs, and all about one. */
async function ahead() {
  try {
    const hash = `${window.location.hash}&${window.parent.location.hash}`;
    const named = /p\.feature_maps\.run=([^&]*)/.exec(hash);
    const answer = named ? null : fetch(new URL("./data/runs", import.meta.url));
    preload("runs"); // after that: one preloaded answer serves one request
    const run = named ? decodeURIComponent(named[1]) : (await (await answer)?.json()).runs[0].run;
    preload("layers", { run });
    if (/p\.feature_maps\.view=(?!overview)/.test(hash)) return;
    for (const path of ["health", "findings"]) preload(path, { run });
  } catch {
    // no run, or no answer: the script will say so
  }
}

/** @param {string} path @param {Record<string, string>} query */
function preload(path, query = {}) {
  const link = document.createElement("link");
  Object.assign(link, { rel: "preload", as: "fetch", crossOrigin: "anonymous" });
  const url = new URL(`./data/${path}`, import.meta.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.append(name, value);
  link.href = url.href;
  document.head.append(link);
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
