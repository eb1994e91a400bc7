"""Input images without content."""

from __future__ import annotations

from dataclasses import replace

from check_records import record
from loop_facts import LOOP, findings_at, only_finding

from fmapboard.health.rules import ConstantImagesCheck


def test_constant_images_only_if_all_of_the_batch_are_at_half_of_the_steps() -> None:
    black = replace(LOOP, constant_images=(0, 1, 2, 3))
    found = only_finding(ConstantImagesCheck(), LOOP, LOOP, black, black)
    assert (found.since_step, found.value) == (20, 4)
    assert found.picture == "network_input/sample_0"
    assert "are constant, each of one value only, at 2 of 4 logged steps" in found.message
    assert findings_at(ConstantImagesCheck(), LOOP, LOOP, LOOP, black, black) == []
    assert findings_at(ConstantImagesCheck(), *[replace(LOOP, constant_images=(0, 1, 2))] * 8) == []


def test_images_of_which_every_value_is_0_are_called_black() -> None:
    facts = [replace(LOOP, constant_images=(0, 1, 2, 3))] * 4
    for high, word in ((0.0, "are black, every value is 0, at"), (0.5, "are constant, each of")):
        inputs = {"minimum": high, "maximum": high, "std": 0.0}
        (found,) = ConstantImagesCheck()(record(facts=facts, inputs=inputs))
        assert word in found.message
