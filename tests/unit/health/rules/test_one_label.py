"""Labels that are all the same."""

from __future__ import annotations

from dataclasses import replace

from output_facts import OUTPUT, findings_of, labels, record_of

from fmapboard.checks import Finding
from fmapboard.health.rules import OneLabelCheck


def test_all_images_with_one_label() -> None:
    (found,) = findings_of(OneLabelCheck(), *[labels((3, 16))] * 4)
    assert "in the loss is 0" in found.meaning  # class weights
    assert (found.class_, found.since_step, found.value) == ("note", 0, 3)
    assert found.message == ("all 64 labels of the output at 4 logged steps are 3, of 10 classes")
    assert findings_of(OneLabelCheck(), *[labels((3, 15))] * 4) == []
    assert findings_of(OneLabelCheck(), *[labels((3, 64))] * 3) == []
    assert findings_of(OneLabelCheck(), *[labels((3, 16))] * 7, labels((4, 16))) == []


def test_pixels_of_nothing_but_background_are_one_label_if_the_images_are_many() -> None:
    pixels = replace(OUTPUT, shape=(13, 3, 32, 32), classes=3, label_changes=None)
    empty = replace(pixels, labels=((0, 4096),))
    (one,) = findings_of(OneLabelCheck(), *[empty] * 5)
    assert one.message.startswith("all 20,480 labels of the output at 5 logged steps are 0, of 3 c")
    assert findings_of(OneLabelCheck(), *[empty] * 4) == []
    assert findings_of(OneLabelCheck(), *[replace(empty, labels=((0, 4095), (1, 1)))] * 8) == []

    def of_maps(values: float) -> list[Finding]:
        mask = replace(empty, shape=(13, 1, 32, 32), classes=1)
        sizes = {"values": {n: [values] * 8 for n in range(6)}}
        return list(OneLabelCheck()(record_of([mask] * 8, columns=sizes)))

    (one,) = of_maps(13 * 32 * 32)
    assert one.message.endswith("are 0, of 2 classes")
    assert of_maps(13 * 64 * 64) == []  # patches of a critic, each of whose batches has one label


def test_batches_of_one_kind_and_the_place_of_the_right_candidate_are_no_labels() -> None:
    one_label = OneLabelCheck()
    assert findings_of(one_label, *[labels((1, 32), classes=2)] * 8) == []  # a discriminator
    assert findings_of(one_label, *[labels((1, 32), classes=None)] * 8) == []
    first = labels((0, 32), classes=6)
    assert findings_of(one_label, *[first] * 8) == []  # one right word, five sampled ones
    collapsed = replace(first, predictions=1)
    assert len(findings_of(one_label, *[first] * 4, *[collapsed] * 4)) == 1
    assert findings_of(one_label, *[first] * 5, *[collapsed] * 3) == []
