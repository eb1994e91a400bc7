"""Labels that a binary loss cannot take."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of

from fmapboard.formats.training_facts import LossKind
from fmapboard.health.rules import LabelsBeyond1Check


def test_labels_beyond_1_have_no_least_loss() -> None:
    masks = replace(OUTPUT, kind=LossKind.BEYOND_1, loss=None, labels=((0, 30), (255, 2)))
    (found,) = findings_of(LabelsBeyond1Check(), OUTPUT, masks, masks)
    assert (found.class_, found.since_step, found.value) == ("warning", 10, 255.0)
    assert "labels of the output are up to 255 since step 10" in found.message
    (found,) = findings_of(LabelsBeyond1Check(), masks, replace(masks, labels=((3, 9),)), OUTPUT)
    assert (found.since_step, found.value) == (0, 255.0)
    assert "are up to 255 from step 0 to 10, and the loss" in found.message
    unsure = replace(OUTPUT, kind="not certain", loss=None, labels=None)
    (found,) = findings_of(LabelsBeyond1Check(), masks, unsure, masks, unsure)
    assert "are up to 255 since step 0, and the loss" in found.message
    assert findings_of(LabelsBeyond1Check(), OUTPUT, masks) == []


def test_labels_of_minus_1_have_no_least_loss_either() -> None:
    signs = replace(OUTPUT, kind=LossKind.BELOW_0, loss=None, labels=((-1, 16), (1, 16)))
    (found,) = findings_of(LabelsBeyond1Check(), OUTPUT, signs, signs)
    assert (found.class_, found.since_step, found.value) == ("note", 10, -1)
    assert "are -1 and 1 since step 10" in found.message
    (found,) = findings_of(LabelsBeyond1Check(), signs, OUTPUT, signs, OUTPUT)
    assert "are -1 and 1 from step 0 to 20" in found.message
    assert findings_of(LabelsBeyond1Check(), OUTPUT, signs) == []
