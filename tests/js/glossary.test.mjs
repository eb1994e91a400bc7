// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import { GLOSSARY, explanation } from "../../src/fmapboard/plugin/static/model/terms.js";
import { goneText, replaced } from "../../src/fmapboard/plugin/static/model/compare.js";
import { START } from "../../src/fmapboard/plugin/static/model/state.js";

test("a term is explained in the tooltip, and for screen readers by the help", () => {
  const made = explanation("dead large", "Marks");
  assert.equal(
    made.title,
    ["Marks", `dead: ${GLOSSARY.dead}`, `large: ${GLOSSARY.large}`].join("\n"),
  );
  assert.equal(made["aria-describedby"], "term-dead term-large");
  assert.equal(explanation("dead").title, GLOSSARY.dead);
  assert.throws(() => explanation("alive"), /no term alive; there are maps, inputs/);
});

test("what an address names but is not there is said while its replacement is shown", () => {
  const once = replaced([], "run", "old", "new");
  const twice = replaced(once, "layer", "fmapboard/a", "fmapboard/b");
  const shown = { ...START, run: "new", layer: "fmapboard/b" };
  assert.equal(goneText(once, shown), "Run old is gone: showing new.");
  assert.equal(
    goneText(twice, shown),
    "Run old is gone: showing new. Layer a is not in run new: showing b.",
  );
  assert.equal(
    goneText(twice, { ...shown, layer: "fmapboard/c" }),
    "Run old is gone: showing new.",
  );
  assert.equal(goneText(replaced([], "run", "", "new"), shown), "");
});
