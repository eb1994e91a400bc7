"""Batches that are sorted by class."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of, labels

from fmapboard.health.rules import SortedLabelsCheck


def test_batches_of_nearly_one_class_each() -> None:
    (found,) = findings_of(
        SortedLabelsCheck(), *[labels((n, 13), (n + 1, 3)) for n in (0, 0, 4, 8)]
    )
    assert (found.class_, found.since_step, found.value) == ("note", 0, 0.8125)
    assert "and 6 labels occur at these steps" in found.message
    few = [labels((n, 12), (n + 1, 4)) for n in (0, 0, 4, 8)]
    assert findings_of(SortedLabelsCheck(), *few) == []
    assert findings_of(SortedLabelsCheck(), *[labels((n, 7)) for n in range(8)]) == []
    assert findings_of(SortedLabelsCheck(), *[labels((n, 16)) for n in range(3)]) == []
    assert findings_of(SortedLabelsCheck(), *[labels((0, 32))] * 6, labels((1, 32))) == []
    # Few shots of each class in order, as of prototypical networks.
    shots = replace(OUTPUT, labels=tuple((n, 8) for n in range(4)), label_changes=3)
    assert findings_of(SortedLabelsCheck(), *[shots] * 8) == []


def test_batches_of_one_of_two_classes_each_may_be_a_critics() -> None:
    sure = labels((0, 32), shape=(32, 1), classes=1, loss=0.01)
    both = [replace(sure, labels=((n, 32),)) for n in (0, 0, 1, 1)]
    assert findings_of(SortedLabelsCheck(), *both) == []


def test_labels_of_pixels_are_not_sorted() -> None:
    pixels = [labels((n % 3, 4096), label_changes=None) for n in range(8)]
    assert findings_of(SortedLabelsCheck(), *pixels) == []
