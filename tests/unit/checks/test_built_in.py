"""Which checks are built in, how they are chosen, and how they run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from check_records import record

from fmapboard.checks import BUILT_IN, Finding, NotRecorded, RunRecord, chosen, run_checks
from fmapboard.checks.finding import named
from fmapboard.errors import ConfigurationError

KINDS = [
    "not_in_optimizer", "gradients_not_cleared", "eval_mode", "constant_images",
    "identical_images", "nonfinite", "unchanged_weights", "dead", "vanishing", "exploding",
    "update_ratio", "batchnorm_gap", "copied_channels", "input_scale", "uneven_upsampling",
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
    kinds = [check.kind for check in chosen({"dead": False, "vanishing": True, "mine": mine})]
    assert kinds == [*(kind for kind in KINDS if kind != "dead"), "mine"]
    assert chosen({"dead": mine})[7] is mine


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
    assert (lacking.not_recorded, lacking.failed) == ({"x": "the series y"}, {})


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
        picture="maps/conv",
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
