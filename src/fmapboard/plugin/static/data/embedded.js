// @ts-check
/** Answers the tab's questions from what is embedded in the page of a report. */

/**
 * @typedef {object} Embedded
 * @property {Record<string, string[]>} answers names of an answer's parts, by question
 * @property {(name: string) => Promise<ArrayBuffer>} embedded the bytes of a part
 */

/**
 * The function for `answerFrom`.
 * @param {Embedded} of @returns {import("./api.js").Answering}
 */
export function answersIn({ answers, embedded }) {
  return async (path, query) => {
    const parts = answers[question(path, query)];
    if (!parts?.length) {
      const error = "this report does not hold it";
      return new Response(JSON.stringify({ error }), { status: 404 });
    }
    return new Response(new Blob(await Promise.all(parts.map(embedded))));
  };
}

/**
 * How the index names a question; times, which only the server's caches need, are left out.
 * @param {string} path @param {import("./api.js").Query} query
 */
export function question(path, query) {
  const entries = Object.entries(query).filter(([name]) => name !== "ts");
  const texts = entries.map(([name, value]) => [name, String(value)]);
  return JSON.stringify([path, ...texts.sort(([a], [b]) => (a < b ? -1 : 1))]);
}
