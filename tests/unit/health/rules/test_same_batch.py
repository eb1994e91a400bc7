"""One batch that is used at each step."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import record
from loop_facts import LOOP, findings_at

from fmapboard.checks import NotRecorded, run_checks
from fmapboard.health.rules import ConstantImagesCheck, IdenticalImagesCheck, SameBatchCheck


def test_the_same_batch_at_each_logged_step() -> None:
    same = replace(LOOP, batch_digest="a")
    (found,) = findings_at(SameBatchCheck(), *[same] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 4)
    assert (
        found.message == "the batch of 4 images is the same at each of 4 logged steps, since step 0"
    )
    assert "from one logged step to the next all of them were used" in found.meaning
    assert findings_at(SameBatchCheck(), *[same] * 3) == []
    assert findings_at(SameBatchCheck(), *[same] * 7, replace(LOOP, batch_digest="b")) == []
    (found,) = SameBatchCheck()(record(steps=range(8), facts=[same] * 8))
    assert found.meaning == "One batch is kept and used at each step"
    with pytest.raises(NotRecorded, match="a batch of images"):
        findings_at(SameBatchCheck(), *[LOOP] * 8)


def test_the_same_batch_of_constant_or_identical_images_is_left_to_these_findings() -> None:
    black = replace(LOOP, batch_digest="a", constant_images=(0, 1, 2, 3))
    alike = replace(LOOP, batch_digest="a", identical_images=((0, 1), (0, 2), (0, 3)))
    checks = [SameBatchCheck(), ConstantImagesCheck(), IdenticalImagesCheck()]
    for facts, kind in ((black, "constant_images"), (alike, "identical_images")):
        run = record(facts=[facts] * 8)
        assert [found.kind for found in run_checks(run, checks).findings] == [kind]
        assert [found.kind for found in run_checks(run, checks[:1]).findings] == ["same_batch"]


def test_the_same_batch_of_a_line_search_is_intended() -> None:
    assert findings_at(SameBatchCheck(), *[replace(LOOP, batch_digest="a", rates=None)] * 8) == []
