// @ts-check
/**
 * Joins what is used of Preact and htm in one module without imports: npm install
 * --prefix DIR --ignore-scripts preact@11.2.0 htm@3.1.1 && node tests/js/vendor.mjs DIR
 */

import { build } from "esbuild";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../src/fmapboard/plugin/static/vendor");
const packages = join(process.argv[2] ?? "", "node_modules");
const read = (/** @type {string[]} */ ...path) => readFileSync(join(packages, ...path), "utf8");
const version = (/** @type {string} */ name) => JSON.parse(read(name, "package.json")).version;
const { outputFiles } = await build({
  stdin: {
    contents: `
      import htm from "htm";
      import { h } from "preact";
      export { Fragment, h, render } from "preact";
      export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
      export const html = htm.bind(h);`,
    resolveDir: process.argv[2] ?? "",
  },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2023",
  write: false,
});
writeFileSync(
  join(FOLDER, "preact_htm.js"),
  `/*!
Preact ${version("preact")} and htm ${version("htm")}, joined by tests/js/vendor.mjs from \
their npm packages.

htm: Copyright 2018 Google Inc., licensed under the Apache License, Version 2.0 (LICENSE_htm.txt).

Preact: ${read("preact", "LICENSE").trim()}
*/
${outputFiles[0].text}`,
);
copyFileSync(join(packages, "htm", "LICENSE"), join(FOLDER, "LICENSE_htm.txt"));
