"""The labels that the gradient of an output tells."""

from __future__ import annotations

from output_facts import OUTPUT, labels

from fmapboard.health.labels import labels_of


def test_labels_are_those_of_the_steps_at_which_they_are_known() -> None:
    unknown = labels(classes=10)
    found = labels_of({0: unknown, 10: labels((3, 16)), 20: labels((3, 2), (4, 5))})
    assert found is not None
    assert (found.classes, found.first, found.is_per_image) == (10, 10, True)
    assert found.counts == ({3: 16}, {3: 2, 4: 5})
    assert found.total == {3: 18, 4: 5}


def test_without_hard_labels_or_classes_there_are_none() -> None:
    for output in (labels(), labels((3, 16), classes=None)):
        assert labels_of({0: output, 10: output}) is None
    assert labels_of({}) is None


def test_the_place_of_the_right_candidate_is_no_label() -> None:
    for label, predictions, is_known in ((0, 2, False), (0, 1, True), (1, 2, True)):
        steps = {0: labels((label, 32), predictions=predictions)}
        assert (labels_of(steps) is not None) == is_known


def test_labels_of_pixels_are_told_from_those_of_images() -> None:
    pixels = labels((0, 4096), label_changes=None)
    found = labels_of({0: OUTPUT, 10: pixels})
    assert found is not None
    assert not found.is_per_image
