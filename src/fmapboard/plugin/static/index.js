// @ts-check
/** Entry point that TensorBoard imports; shows an error instead of an empty tab. */

/** Draws the tab into TensorBoard's frame. */
export async function render() {
  document.documentElement.lang = "en";
  document.title = "Feature maps";
  try {
    preload("./data/runs");
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

/** Asks for an answer that the script will ask for. @param {string} path */
function preload(path) {
  const link = document.createElement("link");
  Object.assign(link, { rel: "preload", as: "fetch", crossOrigin: "anonymous" });
  link.href = new URL(path, import.meta.url).href;
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
