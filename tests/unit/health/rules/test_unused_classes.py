"""Classes that no label names."""

from __future__ import annotations

import math

from check_records import record
from output_facts import findings_of, labels

from fmapboard.checks import run_checks
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import SortedLabelsCheck, UnusedClassesCheck


def test_classes_that_no_label_names() -> None:
    assert (1 - 0.2 / 4) ** 136 < 1e-3 < (1 - 0.2 / 4) ** 132
    four = [labels(*((n, each) for n in range(4))) for each in (17, 16)]
    (found,) = findings_of(
        UnusedClassesCheck(), *four, four[0], labels(*((n, 9) for n in range(4)))
    )
    assert (found.class_, found.since_step, found.value) == ("note", 0, 6)
    assert found.message == (
        "the output has 10 classes, and 236 labels at 4 logged steps name 4 of them"
    )
    assert "in the loss is 0" in found.meaning  # class weights
    assert len(findings_of(UnusedClassesCheck(), four[0], four[0])) == 1
    assert findings_of(UnusedClassesCheck(), four[0], four[1]) == []
    every = labels(*((n, 40) for n in range(10)))
    assert findings_of(UnusedClassesCheck(), *[every] * 8) == []
    pixels = labels((0, 900), (1, 90), classes=8, label_changes=None)
    assert findings_of(UnusedClassesCheck(), *[pixels] * 8) == []


def test_a_class_as_rare_as_the_rarest_one_may_be_missing() -> None:
    assert math.exp(-14 / 2) < 1e-3 < math.exp(-13 / 2)
    rare = [labels(*((n, 60) for n in range(3)), (3, each)) for each in (7, 6)]
    assert len(findings_of(UnusedClassesCheck(), rare[0], rare[0])) == 1
    assert findings_of(UnusedClassesCheck(), rare[0], rare[1]) == []


def test_labels_that_say_nothing_of_all_classes_are_not_counted() -> None:
    some = labels((0, 400), (1, 400))
    in_order = record(facts=[TrainingFacts(outputs=(labels((n % 3, 400)),)) for n in range(8)])
    both = run_checks(in_order, [UnusedClassesCheck(), SortedLabelsCheck()])
    assert [found.kind for found in both.findings] == ["sorted_labels"]
    assert len(run_checks(in_order, [UnusedClassesCheck()]).findings) == 1
    cut = labels(*((n, 90) for n in range(64)), classes=1000)
    assert findings_of(UnusedClassesCheck(), *[cut] * 8) == []
    facts = [TrainingFacts(batch=800, batch_digest="a", outputs=(some,))] * 8
    assert list(UnusedClassesCheck()(record(facts=facts))) == []


def test_the_place_of_the_right_candidate_and_labels_of_pixels_name_no_classes() -> None:
    assert findings_of(UnusedClassesCheck(), *[labels((0, 32), classes=33)] * 8) == []  # MoCo
    pixels = [labels((n % 3, 4096), label_changes=None) for n in range(8)]
    assert findings_of(UnusedClassesCheck(), *pixels) == []
