// @ts-check
/** No line of the front end is longer than 100 columns, comments included. */

export default [
  { ignores: ["**/vendor/**", "**/dist/**"] },
  {
    files: ["**/*.js", "**/*.mjs"],
    linterOptions: { reportUnusedDisableDirectives: true },
    rules: { "max-len": ["error", { code: 100 }], "no-unused-vars": "off" },
  },
];
