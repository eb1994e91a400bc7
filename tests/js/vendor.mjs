// @ts-check
/**
 * Joins Preact and htm, from their npm packages, in one module without imports: npm install
 * --prefix DIR --ignore-scripts preact@11.2.0 htm@3.1.1 && node tests/js/vendor.mjs DIR
 */

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../src/fmapboard/plugin/static/vendor");
const EXPORTED = {
  preact: ["Fragment", "h", "render"],
  hooks: ["useEffect", "useLayoutEffect", "useMemo", "useRef", "useState"],
};

const packages = join(process.argv[2] ?? "", "node_modules");
const read = (/** @type {string[]} */ ...path) => readFileSync(join(packages, ...path), "utf8");
const version = (/** @type {string} */ name) => JSON.parse(read(name, "package.json")).version;
const body = (/** @type {string[]} */ ...path) =>
  read(...path)
    .replace(/\n\/\/# sourceMappingURL.*\s*$/, "")
    .replace(/^import\{(.*?)\}from"preact";/, (_, names) => `const{${pairs(names)}}=preact;`)
    .replace(/export\{([^}]*)\};?$/, (_, names) => `return{${pairs(names, true)}};`)
    .replace("export default ", "return ")
    .trim();

/**
 * "a as b" as pairs of an object: "a:b", or "b:a".
 * @param {string} names @param {boolean} turned
 */
function pairs(names, turned = false) {
  const each = names.split(",").map((name) => name.trim().split(" as "));
  return each.map(([from, to = from]) => (turned ? `${to}:${from}` : `${from}:${to}`)).join(",");
}

const modules = {
  preact: body("preact", "dist", "preact.mjs"),
  hooks: body("preact", "hooks", "dist", "hooks.mjs"),
  htm: body("htm", "dist", "htm.module.js"),
};
const exported = Object.entries(EXPORTED).flatMap(([module, names]) =>
  names.map((name) => `export const ${name} = ${module}.${name};`),
);
writeFileSync(
  join(FOLDER, "preact_htm.js"),
  `/*!
Preact ${version("preact")} and htm ${version("htm")}, joined by tests/js/vendor.mjs from \
their npm packages.

htm: Copyright 2018 Google Inc., licensed under the Apache License, Version 2.0 (LICENSE_htm.txt).

Preact: ${read("preact", "LICENSE").trim()}
*/
${Object.entries(modules)
  .map(([name, code]) => `const ${name} = (() => {\n${code}\n})();\n`)
  .join("")}${exported.join("\n")}
export const html = htm.bind(preact.h);
`,
);
copyFileSync(join(packages, "htm", "LICENSE"), join(FOLDER, "LICENSE_htm.txt"));
