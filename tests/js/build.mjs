// @ts-check
/**
 * Bundles the front end with esbuild and terser into static/dist, which is committed:
 *   npm --prefix tests/js run build
 * With --check, nothing is written: it fails if static/dist is not what its modules give.
 * The first line of a bundle has a digest of the modules, which a test without npm compares.
 */

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { minify } from "terser";

const STATIC = join(import.meta.dirname, "../../src/fmapboard/plugin/static");
const ENTRIES = ["app.js", "report.js"];

const digest = createHash("sha256");
const files = /** @type {string[]} */ (readdirSync(STATIC, { recursive: true }));
for (const path of files.filter((file) => file.endsWith(".js")).sort()) {
  if (!path.startsWith("dist")) digest.update(readFileSync(join(STATIC, path)));
}

/** Templates without the gaps between their elements, which htm leaves out of the page. */
const compact = {
  name: "compact",
  /** @param {import("esbuild").PluginBuild} of */
  setup({ onLoad }) {
    onLoad({ filter: /\/view\/\w+\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replace(/(?<=[>}`])\n +(?=[<$])/g, "")
        .replace(/>\n +(?=`)/g, ">")
        .replace(/\n +(?=[\w-]+=|\.\.\.\$|\/?>)/g, " ") // between attributes
        .replace(/\n +/g, "\n"),
    }));
  },
};

const isCheck = process.argv.includes("--check");
const { outputFiles } = await build({
  absWorkingDir: STATIC,
  entryPoints: ENTRIES,
  outdir: "dist",
  bundle: true,
  plugins: [compact],
  format: "esm",
  target: "es2023",
  charset: "utf8",
  sourcemap: "external",
  logLevel: "warning",
  write: false,
});
const banner = `// sources ${digest.digest("hex")}`;
/** @param {string} path */
const textOf = (path) => outputFiles.find((file) => file.path === path)?.text ?? "";
for (const { path, text } of outputFiles.filter((file) => file.path.endsWith(".js"))) {
  // Terser's scripts are 5 % smaller than those of esbuild's minifier.
  const { code, map } = await minify(text, {
    module: true,
    ecma: 2020,
    // No getter has an effect here, no function without `this` is a constructor, and functions that
    // are inlined once more only repeat text.
    compress: { passes: 3, pure_getters: true, inline: 1, unsafe_arrows: true },
    format: { comments: /^!/, preamble: banner },
    sourceMap: { content: textOf(`${path}.map`) },
  });
  if (!isCheck) {
    writeFileSync(path, `${code}\n`);
    writeFileSync(`${path}.map`, String(map)); // for developer tools; not committed, not installed
  } else if (readFileSync(path, "utf8") !== `${code}\n`) {
    console.error(`${relative(STATIC, path)} is out of date: npm --prefix tests/js run build`);
    process.exitCode = 1;
  }
}
