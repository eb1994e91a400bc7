// @ts-check
/** Starts the page of a report: unpacks the front end, which is stored as its answers are. */

/** The tab replaces the page's content, so the elements are kept here. */
const stored = new Map(
  [...document.querySelectorAll("script[type='text/plain']")].map((each) => [each.id, each]),
);

/**
 * The base64 in a file of pictures by name. It is a script, as a page from disk may not fetch.
 * @type {Map<string, Promise<Record<string, string>>>}
 */
const files = new Map();

/** @param {string} file */
function picturesIn(file) {
  const asked =
    files.get(file) ??
    new Promise((done, fail) => {
      const script = document.createElement("script");
      script.src = `pictures/${file}.js`;
      script.addEventListener("error", () => fail(new Error(`${script.src} cannot be read`)));
      script.addEventListener("load", () => done(Object(window).fmapboardPictures));
      for (const end of ["error", "load"]) {
        script.addEventListener(end, () => {
          script.remove();
          files.delete(file); // the browser has it, and what is decoded is kept
        });
      }
      document.head.append(script);
    });
  files.set(file, asked);
  return asked;
}

/**
 * @param {string} name of an element with base64, compressed if it begins with `z`; of one that is
 *   in a file, the file's name is behind a dot
 * @returns {Promise<ArrayBuffer>}
 */
async function embedded(name) {
  const [, file] = name.split(".");
  const base64 = file ? (await picturesIn(file))[name] : stored.get(name)?.textContent;
  const text = atob(base64 ?? "");
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  if (!name.startsWith("z")) return bytes.buffer;
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
}

void (async () => {
  const { index = "", script = "" } = document.getElementById("start")?.dataset ?? {};
  try {
    const [listed, code] = await Promise.all([embedded(index), embedded(script)]);
    const read = new TextDecoder();
    Object.assign(window, { fmapboardReport: { ...JSON.parse(read.decode(listed)), embedded } });
    const module = document.createElement("script");
    module.type = "module";
    module.textContent = read.decode(code);
    document.head.append(module);
  } catch (error) {
    document.body.textContent = `This report needs a browser from 2023 or later: ${error}`;
    document.documentElement.dataset.ready = "failed";
  }
})();
