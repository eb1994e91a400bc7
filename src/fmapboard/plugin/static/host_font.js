// @ts-check
/** The font of TensorBoard's page, used in the tab as far as that page has loaded it. */

const FAMILY = "Roboto";

/** @param {string} family */
const bare = (family) => family.replace(/["']/g, "");

/**
 * Keys of the font faces that a page has loaded: only their files are known to be there.
 * @param {FontFaceSet} fonts
 */
function loadedFaces(fonts) {
  return new Set(
    [...fonts]
      .filter((face) => face.status === "loaded" && bare(face.family) === FAMILY)
      .map((face) => `${face.weight}/${face.style}/${face.unicodeRange.replace(/\s/g, "")}`),
  );
}

/** The rules of a page that declare a font. @param {Document} page */
function rulesOf(page) {
  return [...page.styleSheets].flatMap((sheet) => {
    try {
      // The page has classes of its own, so that instanceof cannot tell.
      return [...sheet.cssRules].filter((rule) => rule.cssText.startsWith("@font-face"));
    } catch {
      return []; // a style sheet of another origin
    }
  });
}

/**
 * Declares TensorBoard's font in this document, now and when TensorBoard has loaded more of it.
 * Without TensorBoard's page, or if the page has no such font, the next font of the style sheet
 * is used.
 * @param {() => void} changed called when text may have a new size
 */
export function followFont(changed) {
  /** @type {Set<string>} */
  const known = new Set();
  /** @param {Document} page */
  const copy = async (page) => {
    const loaded = loadedFaces(page.fonts);
    const faces = [];
    for (const rule of rulesOf(page)) {
      const { style } = /** @type {CSSFontFaceRule} */ (rule);
      const get = (/** @type {string} */ name) => style.getPropertyValue(name);
      const [weight, slant, range] = ["font-weight", "font-style", "unicode-range"].map(get);
      const key = `${weight}/${slant}/${range.replace(/\s/g, "")}`;
      if (bare(get("font-family")) !== FAMILY || known.has(key) || !loaded.has(key)) continue;
      known.add(key);
      const source = get("src").replace(/url\(["']?([^"')]+)["']?\)/g, (_, url) => {
        return `url("${new URL(url, page.baseURI).href}")`;
      });
      const of = {
        weight,
        style: slant,
        unicodeRange: range,
        display: /** @type {const} */ ("swap"),
      };
      faces.push(new FontFace(FAMILY, source, of));
    }
    for (const face of faces) document.fonts.add(face);
    await Promise.allSettled(faces.map((face) => face.load()));
    if (faces.length) changed();
  };
  try {
    const page = window.parent.document;
    if (window.parent === window) return;
    void copy(page);
    page.fonts.addEventListener("loadingdone", () => void copy(page));
  } catch {
    // a page of another origin, or a browser without these interfaces
  }
}
