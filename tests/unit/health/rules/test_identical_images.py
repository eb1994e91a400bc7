"""Batches of one image."""

from __future__ import annotations

from dataclasses import replace

from check_records import Rules
from loop_facts import LOOP, findings_at, only_finding

from fmapboard.health.rules import IdenticalImagesCheck


def test_identical_images_only_if_all_of_the_batch_are() -> None:
    same = replace(LOOP, identical_images=((0, 1), (0, 2), (0, 3)))
    assert only_finding(IdenticalImagesCheck(), same, same).value == 4
    some = replace(LOOP, identical_images=((0, 1), (2, 3)))
    two_kinds = replace(LOOP, identical_images=((0, 1), (0, 2), (3, 4)), batch=4)
    for facts in (some, two_kinds):
        assert findings_at(IdenticalImagesCheck(), *[facts] * 8) == []
        (found,) = findings_at(Rules("identical_images"), *[facts] * 8)
        assert (found.kind, found.class_) == ("repeated_images", "note")


def test_identical_images_are_not_reported_as_repeated_too() -> None:
    same = replace(LOOP, identical_images=((0, 1), (0, 2), (0, 3)))
    (found,) = findings_at(Rules("identical_images"), *[same] * 8)
    assert found.kind == "identical_images"


def test_constant_images_are_not_reported_as_identical_too() -> None:
    pairs = ((0, 1), (0, 2), (0, 3))
    black = replace(LOOP, constant_images=(0, 1, 2, 3), identical_images=pairs)
    assert findings_at(IdenticalImagesCheck(), *[black] * 8) == []
