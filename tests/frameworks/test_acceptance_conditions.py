"""How conditions of the rules are dropped, and what makes a dropped one worse."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"
SOURCE = b"""
unless: tuple[str, ...] = ("dead", "nonfinite")

def find(a, b, names):
    if a is None:
        return False
    text = names or ()
    if b > 2:
        text = "large"
    if a > 1 and not (b or names):
        found = [name for name in names if name]
    return a <= b
"""


@pytest.fixture(name="module")
def fixture_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ACCEPTANCE))
    before = set(sys.modules)
    yield importlib.import_module("conditions")
    for name in set(sys.modules) - before:
        if name in ("conditions", "records", "spoilt_table"):
            del sys.modules[name]


def test_a_condition_is_what_decides_and_no_default_and_no_part_of_a_sentence(module: Any) -> None:
    found = list(module.conditions("rules/made_up", SOURCE))
    assert [(condition.text, condition.value) for condition in found] == [
        ('"dead"', '""'),
        ('"nonfinite"', '""'),
        ("a is None", "False"),
        ("a > 1", "True"),
        ("not (b or names)", "True"),
        ("b", "False"),
        ("names", "False"),
        ("name", "True"),
        ("a <= b", "False"),
        ("a <= b", "True"),
    ]
    assert found[2].line == 5
    dropped = found[2].dropped(SOURCE)
    assert dropped == SOURCE.replace(b"a is None", b"False")


@pytest.mark.parametrize(
    ("changes", "is_worse"),
    [
        ({}, False),
        ({"first": 9}, True),
        ({"warned": 1}, True),
        ({"noted": 3}, True),
        ({"lost_said": 4}, True),
        ({"kept_said": 2}, True),
        ({"first": 11, "noted": 1, "lost_said": 6, "kept_said": 0}, False),
    ],
)
def test_a_figure_is_worse_if_less_is_named_or_more_is_said_of_healthy_runs(
    module: Any, changes: dict[str, int], *, is_worse: bool
) -> None:
    before = module.Figures(first=10, warned=0, noted=2, lost_said=5, kept_said=1)
    assert before._replace(**changes).is_worse_than(before) is is_worse


def test_runs_are_judged_with_a_changed_rule_or_changed_evidence(module: Any) -> None:
    from check_records import record

    from fmapboard.health import evidence, run

    records = importlib.import_module("records")
    job = records.Job("healthy/made_up", "healthy", ())
    judge = module.Judge([records.Kept(job, (record(),))])
    assert judge.said == [[]]
    for name, line in (
        ("rules/dead", "        layers = evidence.dead_layers(self.share, self.share_at_start)"),
        ("evidence", "        learns = self.falls()"),
    ):
        source = (module.HEALTH / f"{name}.py").read_text()
        assert source.count(line) == 1
        (said,) = judge.with_module(name, source.replace(line, "        raise KeyError").encode())
        assert "failed dead" in [class_ for class_, _ in said]
    assert run.Evidence is evidence.Evidence is sys.modules[evidence.__name__].Evidence
    assert judge.figures_of([[("note", "dead")]]).noted == 1
