// @ts-check
/** Starts the page of a report: unpacks the front end, which is stored as its answers are. */

/** The tab replaces the page's content, so the elements are kept here. */
const stored = new Map(
  [...document.querySelectorAll("script[type='text/plain']")].map((each) => [each.id, each]),
);

/**
 * @param {string} name of an element with base64, compressed if it begins with `z`
 * @returns {Promise<ArrayBuffer>}
 */
async function embedded(name) {
  const text = atob(stored.get(name)?.textContent ?? "");
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
