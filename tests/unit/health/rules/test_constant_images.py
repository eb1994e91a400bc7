"""Input images without content."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import LOOP, findings_at, only_finding

from fmapboard.health.rules import ConstantImagesCheck


def test_constant_images_only_if_all_of_the_batch_are_at_half_of_the_steps() -> None:
    black = replace(LOOP, constant_images=(0, 1, 2, 3))
    found = only_finding(ConstantImagesCheck(), LOOP, LOOP, black, black)
    assert (found.since_step, found.value) == (20, 4)
    assert found.picture == "network_input/sample_0"
    assert findings_at(ConstantImagesCheck(), LOOP, LOOP, LOOP, black, black) == []
    assert findings_at(ConstantImagesCheck(), *[replace(LOOP, constant_images=(0, 1, 2))] * 8) == []
