// @ts-check
/** TensorBoard's page around the frame: address bar, dark mode, messages. All of it is optional. */

import { readHash, writeHash } from "./state.js";

const PREFIX = "p.feature_maps.";

/**
 * TensorBoard's window, or the tab's own if opened alone: its address is the one that users copy.
 * @returns {Window}
 */
export function shell() {
  try {
    if (window.parent !== window && window.parent.location.hash !== undefined) return window.parent;
  } catch {
    // a parent of another origin, whose address cannot be read
  }
  return window;
}

/** Entries of the address without their prefix. @returns {[string, string][]} */
export function readAddress() {
  return readHash(shell().location.hash, PREFIX);
}

/**
 * @param {[string, string][]} entries of what is shown
 * @param {boolean} isNew the Back button leads to the last one
 */
export function writeAddress(entries, isNew = false) {
  try {
    const where = shell();
    const hash = writeHash(where.location.hash, PREFIX, entries);
    if (hash === where.location.hash) return;
    const { history } = where;
    // With its path: a hash alone would be resolved against the <base> of the tab's own page.
    const href = `${where.location.pathname}${where.location.search}${hash}`;
    // Neither fires a hashchange, which TensorBoard listens to.
    if (isNew) history.pushState(history.state, "", href);
    else history.replaceState(history.state, "", href);
  } catch {
    // an address that cannot be written: the view works, but cannot be shared
  }
}

/** The address of this view, for copying. */
export function address() {
  return shell().location.href;
}

/**
 * Offers a file. The link belongs to TensorBoard's page: Firefox applies that page's `frame-src`,
 * which allows no blobs, to the links of a frame.
 * @param {string} url @param {string} name of the file
 */
export function download(url, name) {
  const link = shell().document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

/** @param {() => void} changed called when the user edits the address or goes back */
export function onAddress(changed) {
  shell().addEventListener("hashchange", changed);
  shell().addEventListener("popstate", changed);
}

/** Applies TensorBoard's dark mode; the system's if opened alone. @param {() => void} changed */
export function followTheme(changed) {
  const root = document.documentElement;
  const apply = (/** @type {boolean} */ dark) => {
    const theme = dark ? "dark" : "light";
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    root.style.colorScheme = theme;
    changed();
  };
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const { body } = shell().document;
  const isAlone = shell() === window;
  const look = () => apply(isAlone ? system.matches : body.classList.contains("dark-mode"));
  look();
  system.addEventListener("change", look);
  new MutationObserver(look).observe(body, { attributes: true, attributeFilter: ["class"] });
}

/** True while TensorBoard hides the tab, which it does by setting the frame's height to 0. */
export function hidden() {
  return window.innerHeight === 0;
}

/**
 * Answers messages of TensorBoard.
 * @param {() => void} reloaded called when it has reloaded its data
 */
export function listen(reloaded) {
  if (window.parent === window) return;
  const channel = new MessageChannel();
  channel.port1.onmessage = ({ data }) => {
    /** @type {{type: string, id: number, isReply?: boolean}} */
    const { type, id, isReply } = JSON.parse(data);
    if (isReply) return;
    const reply = { type, id, payload: null, error: null, isReply: true };
    channel.port1.postMessage(JSON.stringify(reply));
    if (/DataReloaded|RunsChanged/.test(type)) reloaded();
  };
  window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
}

/** What tells a face from others. @param {string[]} of its weight, style and range of letters */
const keyOf = (...of) => of.join("/").replace(/\s/g, "");

/**
 * The rules of a page that declare the font.
 * @param {Document} page
 * @returns {CSSFontFaceRule[]}
 */
function rulesOf(page) {
  return [...page.styleSheets].flatMap((sheet) => {
    try {
      // The page has classes of its own, so that instanceof cannot tell; the text of all rules
      // takes 10 ms.
      const rules = /** @type {CSSFontFaceRule[]} */ ([...sheet.cssRules]);
      return rules.filter((of) => of.type === 5 && /font-family: "?Roboto"?;/.test(of.cssText));
    } catch {
      return []; // a style sheet of another origin
    }
  });
}

/**
 * Declares TensorBoard's font, also when more of it has loaded: only the files of loaded faces are
 * known to be there. Else the style sheet's next font is used.
 * @param {() => void} changed
 */
export function followFont(changed) {
  const style = document.head.appendChild(document.createElement("style"));
  const page = shell().document;
  const copy = async () => {
    const loaded = [...page.fonts].filter(({ status }) => status === "loaded");
    const known = new Set(loaded.map((of) => keyOf(of.weight, of.style, of.unicodeRange)));
    const facts = ["font-weight", "font-style", "unicode-range"];
    const rules = rulesOf(page).filter(({ style: of }) =>
      known.has(keyOf(...facts.map((name) => of.getPropertyValue(name)))),
    );
    const whole = (/** @type {string} */ _, /** @type {string} */ url) =>
      `url("${new URL(url, page.baseURI).href}")`;
    const text = rules
      .map(({ cssText }) => cssText.replace(/url\(["']?([^"')]+)["']?\)/g, whole))
      .join("\n");
    if (style.textContent === text) return;
    style.textContent = text;
    await document.fonts.ready;
    changed();
  };
  if (page === document) return;
  void copy();
  page.fonts.addEventListener("loadingdone", copy);
}
