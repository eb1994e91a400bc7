"""The choice of checks, what they return in a report, and what is said while a run is logged."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pytest
from check_records import layer, record

from fmapboard.checks import (
    BUILT_IN,
    DeadCheck,
    Finding,
    NotRecorded,
    RunRecord,
    chosen,
    run_checks,
)
from fmapboard.errors import ConfigurationError
from fmapboard.formats.checks import StoredChecks, pack_checks, unpack_checks
from fmapboard.formats.overview import OverviewStep, pack_overview
from fmapboard.health.finding import named
from fmapboard.health.record import RecordBuilder
from fmapboard.health.run import LiveChecks, LiveState, report_of
from fmapboard.records import LoggedStep, TabRecord

KINDS = [
    "constant_images", "identical_images", "repeated_images", "images_not_scaled", "flat_images",
    "scrambled_images", "input_magnitude", "same_batch", "sorted_labels", "one_label",
    "unused_classes", "missing_causal_mask", "labels_not_shifted", "missing_positions",
    "attention_over_batch", "attended_padding", "softmax_over_queries", "double_softmax",
    "softmax_of_one_class", "probabilities_into_loss",
    "loss_without_logarithm", "averaged_targets", "far_targets", "loss_climbed",
    "labels_beyond_1", "summed_loss", "unbounded_loss", "never_called", "eval_mode",
    "not_in_optimizer", "gradients_not_cleared", "weights_overwritten",
    "new_optimizer", "idle_group",
    "no_optimizer_step", "zero_rate", "rate_vanished", "copied_channels", "zero_weights",
    "dead_experts", "dropout_high", "batchnorm_small_batch", "batchnorm_few_values",
    "batchnorm_momentum",
    "uneven_upsampling", "empty_code", "initial_loss", "large_activations", "growing_signal",
    "updates_too_large", "attention_logits", "exploding", "nonfinite", "fading_signal", "saturated",
    "saturated_output", "dead", "dead_heads", "zero_output", "vanishing", "unchanged_weights",
    "no_gradient", "cut_off_layers", "updates_too_small", "batchnorm_gap", "one_prediction",
    "constant_output",
]  # fmt: skip


@dataclass(frozen=True)
class MyCheck:
    """Finds a fact in every run, or raises an error."""

    kind: str = "mine"
    error: Exception | None = None

    def __call__(self, record: RunRecord) -> list[Finding]:
        if self.error is not None:
            raise self.error
        return [Finding(kind=self.kind, class_="warning", message="it is so", since_step=3)]


def test_the_built_in_kinds() -> None:
    assert [check.kind for check in BUILT_IN] == KINDS


def test_true_false_and_a_list() -> None:
    assert chosen(True) == BUILT_IN
    assert chosen(False) == ()
    assert chosen([MyCheck()]) == (*BUILT_IN, MyCheck())
    assert chosen([]) == BUILT_IN


def test_a_mapping_silences_replaces_and_adds() -> None:
    mine = MyCheck()
    kinds = [check.kind for check in chosen({"zero_rate": False, "vanishing": True, "mine": mine})]
    assert kinds == [*(kind for kind in KINDS if kind != "zero_rate"), "mine"]
    assert chosen({"dead": mine})[KINDS.index("dead")] is mine


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "expected True, False, a mapping"),
        ("dead", "expected True, False, a mapping"),
        (1, "expected True, False, a mapping"),
        ({"daed": False}, "no check 'daed'; closest: dead"),
        ({3: False}, "no check 3"),
        ({"mine": True}, "no check 'mine'"),
        ([MyCheck], "is no check: expected an object such as MyCheck"),
        ([print], "is no check"),
        ({"dead": "no"}, "'no' is no check"),
        ([MyCheck(kind="")], "is no check"),
    ],
)
def test_an_invalid_choice_is_refused(given: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        chosen(given)


def test_an_error_in_one_check_does_not_stop_the_others() -> None:
    report = run_checks(record(), [MyCheck("bad", ValueError("no\nway")), MyCheck()])
    assert report.failed == {"bad": "ValueError: no"}
    assert [found.kind for found in report.findings] == ["mine"]
    lacking = run_checks(record(), [MyCheck("x", NotRecorded("the series y"))])
    assert (lacking.not_checked["x"], lacking.failed) == ("needs the series y", {})


def test_an_error_in_the_order_of_the_findings_costs_a_line_and_no_finding() -> None:
    @dataclass(frozen=True)
    class InText:
        kind: str = "in_text"

        def __call__(self, record: RunRecord) -> list[Finding]:
            return [Finding(message="at 7", since_step="7")]  # type: ignore[arg-type]  # a mistake

    report = run_checks(record(), [MyCheck(), InText()])
    assert [found.kind for found in report.findings] == ["mine", "in_text"]
    assert report.failed["causes"].startswith("TypeError: '<' not supported between")
    without_text = run_checks(record(), [MyCheck("bad", StopIteration()), MyCheck()])
    assert without_text.failed == {"bad": "StopIteration"}


def test_facts_come_first_then_the_earliest() -> None:
    @dataclass(frozen=True)
    class Three:
        kind: str = "three"

        def __call__(self, record: RunRecord) -> list[Finding]:
            given: list[Any] = [("note", 1), ("warning", 9), ("warning", 2)]
            return [Finding(kind="three", class_=c, message="", since_step=s) for c, s in given]

    found = run_checks(record(), [Three()]).findings
    assert [(one.class_, one.since_step) for one in found] == [
        ("warning", 2), ("warning", 9), ("note", 1)
    ]  # fmt: skip


def test_the_json_of_a_finding() -> None:
    layer = Finding(
        kind="dead", class_="note", message="half of it", since_step=4, layer="conv",
        value=float("nan"), healthy="none", meaning="It is off.", advice="Turn it on",
        picture="maps/conv", docs="checks#dead",
    )  # fmt: skip
    assert layer.as_json() == {
        "kind": "dead", "class": "note", "layer": "conv", "since_step": 4, "value": None,
        "healthy": "none",
        "message": "half of it (healthy: none). It is off. Turn it on. Picture: `maps/conv`. "
        "See `fmapboard docs checks#dead`",
    }  # fmt: skip
    parameter = Finding(
        kind="x", class_="warning", message="m", parameter="w", model="gen", value=2
    )
    said = parameter.as_json()
    assert list(said) == [
        "kind", "class", "parameter", "since_step", "value", "healthy", "message", "model"
    ]  # fmt: skip
    assert said["message"] == "`gen`: m"
    json.dumps(said, allow_nan=False)


def test_names_are_limited() -> None:
    assert named(["a"]) == "`a`"
    assert named(("a", "b", "c"), 10) == "`a`, `b`, `c` and 7 more"


DEAD = ("dead", "zero_output")
"""Kinds of the rules of the group ``dead``, in the order of `BUILT_IN`."""
FAILED: list[tuple[str, str]] = []


@dataclass(frozen=True)
class Says:
    """Finds the given at every record, and keeps the steps of the records."""

    findings: Sequence[Finding]
    kind: str = "mine"
    seen: list[tuple[int, ...]] = field(default_factory=list)

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        self.seen.append(() if record.health is None else record.health.steps)
        return self.findings


WARNING = Finding(kind="mine", class_="warning", message="a `fault`", since_step=0, layer="conv0")
NOTE = Finding(
    kind="mine",
    class_="note",
    message="a note",
    parameter="w",
    parameters=("w", "v"),
    healthy="none",
)


def live(*checks: Says, name: str | None = None) -> LiveChecks:
    def failed(kind: str, error: str) -> None:
        FAILED.append((kind, error))

    return LiveChecks(checks, name, failed)


def step(number: int, **more: object) -> LoggedStep:
    blobs = pack_overview(OverviewStep(number, number + 1, (layer(0),), {}, {}))
    records = (TabRecord("fmapboard_overview", blobs),)
    return replace(LoggedStep(number, 0.0, records=records), **more)  # type: ignore[arg-type]


def stored(checks: LiveChecks, of: LoggedStep) -> LoggedStep:
    state, found = checks(of)
    checks.stored(state, of.step)
    return found


def read_of(logged: LoggedStep) -> StoredChecks:
    """What the checks said, as it was stored."""
    return unpack_checks(logged.records[-1].blobs[0])


def test_a_finding_is_logged_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    checks = live(Says([WARNING, NOTE]))
    texts = []
    for number in range(3):
        texts.append(stored(checks, step(number)).texts.get("fmapboard/checks"))
    assert texts[1:] == [None, None]
    assert texts[0] == ("- **warning: mine**: a `fault`\n- **note: mine**: a note (healthy: none)")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("WARNING", "fmapboard: step 0: mine: a `fault`"),
        ("INFO", "fmapboard: step 0: mine: a note (healthy: none)"),
    ]


def test_the_record_of_the_tab_has_all_findings_and_then_that_they_are_gone() -> None:
    says = Says([WARNING])
    checks = live(says, name="gen")
    first = stored(checks, step(0)).records[-1]
    assert first.tag == "gen.fmapboard_checks"
    (read,) = unpack_checks(first.blobs[0]).findings
    assert Finding(**asdict(read)) == WARNING
    object.__setattr__(says, "findings", [])
    gone = stored(checks, step(1))
    assert unpack_checks(gone.records[-1].blobs[0]).findings == ()
    assert gone.texts == {"gen.fmapboard/checks": "Nothing is found any more."}


def test_what_the_checks_say_is_stored_at_each_step_and_told_if_it_is_something_else() -> None:
    says = Says([WARNING])
    checks = live(says)
    first = stored(checks, step(0))
    again = stored(checks, step(1))
    assert again.texts == {}
    assert read_of(again).findings == read_of(first).findings
    object.__setattr__(says, "findings", [replace(WARNING, value=2.0, message="two faults")])
    said = stored(checks, step(2))
    assert said.texts == {"fmapboard/checks": "- **warning: mine**: two faults"}
    assert [one.value for one in read_of(said).findings] == [2.0]


def test_each_step_of_a_healthy_run_says_what_was_looked_at() -> None:
    healthy = live(Says([]), name="gen")
    for number in range(2):
        step_stored = stored(healthy, step(number))
        _, added = step_stored.records
        assert (added.tag, step_stored.texts) == ("gen.fmapboard_checks", {})
        said = read_of(step_stored)
        assert (said.findings, said.off) == ((), tuple(KINDS))
        assert said.seen is not None
        assert (said.seen.layers, said.seen.steps, said.seen.last_step) == (1, number + 1, number)


def test_without_checks_the_first_step_says_that_all_are_off_and_a_later_one_nothing() -> None:
    checks = live(name="gen")
    assert read_of(stored(checks, step(0))) == StoredChecks(off=tuple(KINDS))
    later = step(1)
    assert stored(checks, later) is later


def test_what_is_off_is_stored_with_each_finding_and_again_if_the_first_record_is_lost() -> None:
    checks = LiveChecks(chosen({"dead": False, "mine": Says([])}), None, print)
    state, _ = checks(step(0))
    checks.stored(checks.unstored(state), 0)
    found = stored(checks, step(1))
    assert read_of(found).off == DEAD
    says = Says([WARNING])
    checks = LiveChecks(chosen({"dead": False, "mine": says}), None, print)
    assert read_of(stored(checks, step(0))).off == DEAD


def test_what_was_off_while_a_run_was_logged_does_not_run_unless_it_is_asked_for() -> None:
    builder = RecordBuilder()
    off = StoredChecks(off=("dead", "eval_mode"))
    builder.add_blobs(3, "fmapboard_checks", pack_checks(off))
    builder.add_blobs(1, "fmapboard_checks", pack_checks(StoredChecks()))
    read = builder.copy().record()
    assert read.off == {"dead", "eval_mode"}
    report = run_checks(read)
    assert report.off == ("eval_mode", "dead", "zero_output")  # the name of a group, too
    assert report.not_checked["dead"] == "switched off"
    assert run_checks(read, BUILT_IN).off == ()
    builder.add_blobs(4, "fmapboard_checks", ())
    assert builder.record().off == {"dead", "eval_mode"}
    assert list(builder.errors) == [4]


def test_a_step_that_could_not_be_stored_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    says = Says([WARNING])
    checks = live(says)
    checks(step(0))
    assert caplog.records == []
    assert "fmapboard/checks" in stored(checks, step(1)).texts
    stored(checks, step(2))
    assert says.seen == [(0,), (1,), (1, 2)]


def test_a_step_that_is_logged_again_leaves_what_is_known_of_it_if_it_cannot_be_stored() -> None:
    checks = live(Says([]))
    stored(checks, step(0, scalars={"gradient_norm/w": 1.0}))
    checks(step(0, scalars={"gradient_norm/w": 2.0}))
    known: LiveState = checks._state
    assert known.record.record().scalars["gradient_norm"]["w"].values.tolist() == [1.0]


def test_the_checks_see_the_first_and_the_newest_steps_of_a_long_run_at_each_step() -> None:
    says = Says([])
    checks = live(says)
    for number in range(40):
        stored(checks, step(number))
    assert [seen[-1] for seen in says.seen] == list(range(40))
    assert says.seen[31] == tuple(range(32))
    assert says.seen[-1] == (0, 1, 2, 3, *range(12, 40))


def test_the_log_has_the_first_nonfinite_value_in_the_words_of_the_check(
    caplog: pytest.LogCaptureFixture,
) -> None:
    checks = live(Says([replace(WARNING, kind="nonfinite")]))
    texts = {"fmapboard/first_nonfinite": "step 9: first non-finite values: 1 NaN in x"}
    said = stored(checks, step(9, texts=texts)).texts["fmapboard/checks"]
    assert said.startswith("- **warning: nonfinite**: a `fault`")  # with its explanation
    (logged,) = caplog.messages
    assert logged.startswith("fmapboard: step 9: nonfinite: a `fault`")


def test_the_log_has_a_warning_once_per_kind_and_notes_three_times_and_the_text_has_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    warnings = [replace(WARNING, layer=f"conv{i}") for i in range(5)]
    notes = [replace(NOTE, kind="n", parameter=f"w{i}") for i in range(5)]
    text = stored(live(Says([*warnings, *notes])), step(0)).texts["fmapboard/checks"]
    assert (text.count("warning:"), text.count("note:")) == (5, 5)
    assert [one.levelname for one in caplog.records] == ["WARNING", "INFO", "INFO", "INFO"]


def test_a_check_that_fails_is_reported_and_the_step_stays() -> None:
    class Fails(Says):
        def __call__(self, record: RunRecord) -> Sequence[Finding]:
            raise ValueError("no way")

    checks = live(Fails([]))
    stored(checks, step(0))
    given = step(1)
    said = stored(checks, given)
    assert said.records[:-1] == given.records
    assert (read_of(said).not_checked or {})["mine"] == "failed: ValueError: no way"
    assert FAILED.pop() == ("mine", "ValueError: no way")


def test_a_finding_that_says_neither_kind_nor_class_is_a_note_of_the_checks_kind() -> None:
    class Check:
        kind = "mine"

        def __call__(self, record: RunRecord) -> list[Finding]:
            return [Finding(message="it is so")]

    (found,) = run_checks(RunRecord(), [Check()]).findings
    assert (found.kind, found.class_) == ("mine", "note")


def test_another_threshold_of_a_rule_keeps_the_other_rules_of_its_group() -> None:
    changed = chosen({"dead": DeadCheck(share=0.5)})
    assert len(changed) == len(BUILT_IN)
    assert DeadCheck(share=0.5) in changed
    assert [check.kind for check in changed] == [check.kind for check in BUILT_IN]
    silenced = [check.kind for check in chosen({"dead": False})]
    assert len(silenced) == len(BUILT_IN) - 2
    assert not {"dead", "zero_output"} & {*silenced}


def test_what_an_earlier_fmapboard_switched_off_by_the_name_of_a_group_stays_off() -> None:
    off = run_checks(RunRecord(off=frozenset({"update_ratio"}))).off
    assert off == ("new_optimizer", "updates_too_large", "updates_too_small")


def test_findings_that_an_earlier_fmapboard_stored_alone_are_no_judgement() -> None:
    now = read_of(stored(live(Says([NOTE])), step(0)))
    assert report_of("", now) is not None
    assert report_of("", replace(now, seen=None)) is None
