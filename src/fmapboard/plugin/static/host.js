// @ts-check
/** TensorBoard around our frame: its address bar, its dark mode, its messages; none is relied on. */

import { readHash, writeHash } from "./state/state.js";

const PREFIX = "p.feature_maps.";

/** The window whose address people copy: TensorBoard's, or our own when opened alone. @returns {Window} */
function shell() {
  try {
    if (window.parent !== window && window.parent.location.hash !== undefined) return window.parent;
  } catch {
    // another origin: we may not look
  }
  return window;
}

/** @returns {[string, string][]} */
export function readAddress() {
  try {
    return readHash(shell().location.hash, PREFIX);
  } catch {
    return [];
  }
}

/** @param {[string, string][]} entries */
export function writeAddress(entries) {
  try {
    const where = shell();
    const hash = writeHash(where.location.hash, PREFIX, entries);
    // TensorBoard listens to hashchange; replaceState keeps it and the back button out of this.
    if (hash !== where.location.hash) where.history.replaceState(where.history.state, "", hash);
  } catch {
    // an address that may not be written: the view still works, it just cannot be shared
  }
}

/** The address of this view, to be copied. */
export function address() {
  try {
    return shell().location.href;
  } catch {
    return window.location.href;
  }
}

/** @param {() => void} changed someone pasted another address, or went back */
export function onAddress(changed) {
  try {
    shell().addEventListener("hashchange", changed);
    shell().addEventListener("popstate", changed);
  } catch {
    window.addEventListener("hashchange", changed);
  }
}

/** Follows TensorBoard's dark mode live, or the system's when opened alone. @param {() => void} changed */
export function followTheme(changed) {
  const root = document.documentElement;
  const apply = (/** @type {boolean} */ dark) => {
    const theme = dark ? "dark" : "light";
    if (root.dataset.theme === theme) return;
    root.dataset.theme = theme;
    root.style.colorScheme = theme;
    changed();
  };
  try {
    if (window.parent === window) throw new Error("alone");
    const body = window.parent.document.body;
    const look = () => apply(body.classList.contains("dark-mode"));
    look();
    new MutationObserver(look).observe(body, { attributes: true, attributeFilter: ["class"] });
  } catch {
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    apply(system.matches);
    system.addEventListener("change", () => apply(system.matches));
  }
}

/** TensorBoard hides a tab by giving its frame no height. */
export function hidden() {
  return window.innerHeight === 0;
}

/** Answers the host's messages; calls back when its data was reloaded. @param {() => void} reloaded */
export function listen(reloaded) {
  if (window.parent === window) return;
  try {
    const channel = new MessageChannel();
    channel.port1.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (message.isReply) return;
      const reply = { type: message.type, id: message.id, payload: null, error: null, isReply: true };
      channel.port1.postMessage(JSON.stringify(reply));
      if (/DataReloaded|RunsChanged/.test(message.type)) reloaded();
    };
    window.parent.postMessage("experimental.bootstrap", "*", [channel.port2]);
  } catch {
    // no host that speaks our protocol: the reload button is still there
  }
}
