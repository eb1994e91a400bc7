// @ts-check
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  RUN_STATES,
  apart,
  counts,
  firstRun,
  noteVerdict,
  rowsOf,
} from "../../src/fmapboard/plugin/static/model/run_states.js";
import { explanation } from "../../src/fmapboard/plugin/static/model/terms.js";

/** @import {RunState, RunVerdict} from "../../src/fmapboard/plugin/static/model/model.js" */
/** @import {Verdict} from "../../src/fmapboard/plugin/static/server/routes.js" */

/** @param {string} run @param {Partial<Verdict>} line */
function noted(run, line) {
  const verdicts = /** @type {Map<string, RunVerdict>} */ (new Map());
  noteVerdict(
    verdicts,
    run,
    { state: "learns", text: "", progress: "", rest: [], name: "", label: "", ...line },
    "",
  );
  return verdicts.get(run);
}

/** @param {RunState[]} states */
const runs = (...states) => states.map((state, i) => ({ run: `${i}`, state }));

test("only a run that learns has a tick, and each state a sign and a word of its own", () => {
  const ticks = Object.entries(RUN_STATES).filter(([, { sign }]) => sign === "✓");
  assert.deepEqual(
    ticks.map(([state]) => state),
    ["learns"],
  );
  const every = Object.values(RUN_STATES);
  assert.equal(new Set(every.map(({ sign }) => sign)).size, 8);
  assert.equal(new Set(every.map(({ word }) => word)).size, 8);
  for (const { term } of every) assert.match(explanation(term).title, /\.$/);
});

test("a run that holds a difference is no training that learns, whatever its verdict", () => {
  assert.equal(noted("diff/difference", { state: "learns" })?.state, "difference");
  assert.equal(noted("difference", { state: "not known" })?.state, "difference");
  assert.equal(noted("difference", { state: "fault" })?.state, "fault");
  assert.equal(noted("indifference", { state: "learns" })?.state, "learns");
});

test("a verdict that names no layer has no pictures to open", () => {
  const verdict = noted("a", { state: "not known" });
  assert.deepEqual([verdict?.key, verdict?.shown_at, verdict?.since], [null, null, null]);
});

test("a run whose findings cannot be read says why", () => {
  const verdicts = /** @type {Map<string, RunVerdict>} */ (new Map());
  noteVerdict(verdicts, "a", null, "no such run");
  const { state, text } = verdicts.get("a") ?? {};
  assert.deepEqual([state, text], ["unreadable", "cannot be read: no such run"]);
});

test("rows have the worst first; runs that learn, or are not known to, share one each", () => {
  /** @type {RunState[]} */
  const first = ["learns", "not known", "fault", "difference", "learns"];
  const rows = rowsOf(runs(...first, "suspicion", "does not learn", "not known", "fault"));
  assert.deepEqual(
    rows.map((row) => [row[0].state, row.map(({ run }) => run).join("")]),
    [
      ["fault", "2"],
      ["fault", "8"],
      ["suspicion", "5"],
      ["does not learn", "6"],
      ["not known", "17"],
      ["difference", "3"],
      ["learns", "04"],
    ],
  );
});

test("further runs are counted by state, the worst first", () => {
  const found = counts(runs("learns", "not known", "does not learn", "fault", "learns"));
  assert.deepEqual(
    found.map(({ text }) => text),
    ["1 faulty", "1 not learning", "1 not known", "2 learning"],
  );
  assert.equal(found[0].state, "fault");
});

test("runs that diff wrote are apart from trainings, unless something was found in them", () => {
  const all = ["diff/a", "diff/b", "diff/difference", "other/a", "a"];
  const learns = all.map((run) => ({
    ...{ run, state: /** @type {RunState} */ ("learns"), text: "nothing found" },
  }));
  const states = (/** @type {{state: RunState}[]} */ of) => of.map(({ state }) => state);
  const three = ["difference", "difference", "difference"];
  assert.deepEqual(states(apart(learns, all)), [...three, "learns", "learns"]);
  assert.deepEqual(states(apart([{ run: "diff/a", state: "fault", text: "" }], all)), ["fault"]);
  const texts = apart(learns, all).map(({ text }) => text);
  const ofModel = "one of the two models; see diff/difference";
  assert.deepEqual(texts, [ofModel, ofModel, ...Array(3).fill("nothing found")]);
  assert.deepEqual(rowsOf(apart(learns, all)).length, 2);
});

test("a training is shown first, and a difference where there is none", () => {
  assert.equal(firstRun(["diff/a", "diff/b", "diff/difference", "train"]), "train");
  assert.equal(firstRun(["diff/a", "diff/b", "diff/difference"]), "diff/difference");
  assert.equal(firstRun(["b", "c"]), "b");
});
