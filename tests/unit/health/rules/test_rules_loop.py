"""Rules of the loop and its images: what is healthy, intended or not recorded is no finding."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import layer, record
from loop_facts import LOOP, findings_at

from fmapboard.checks import Check, NotRecorded, RunRecord
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.rules import (
    ConstantImagesCheck,
    CutOffLayersCheck,
    EvalModeCheck,
    GradientsNotClearedCheck,
    IdenticalImagesCheck,
    NoGradientCheck,
    NoOptimizerStepCheck,
    NotInOptimizerCheck,
    RepeatedImagesCheck,
    SameBatchCheck,
    UnchangedWeightsCheck,
    ZeroRateCheck,
)

CHECKS: list[Check] = [
    NotInOptimizerCheck(), GradientsNotClearedCheck(), EvalModeCheck(), ConstantImagesCheck(),
    IdenticalImagesCheck(), RepeatedImagesCheck(), UnchangedWeightsCheck(), NoOptimizerStepCheck(),
    ZeroRateCheck(), NoGradientCheck(), CutOffLayersCheck(),
]  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_a_healthy_loop_has_no_finding(check: Check) -> None:
    assert findings_at(check, *[LOOP] * 8) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_what_is_not_known_is_no_finding(check: Check) -> None:
    assert findings_at(check, *[TrainingFacts(batch=1)] * 8) == []


@pytest.mark.parametrize(
    "check", [ConstantImagesCheck(), IdenticalImagesCheck(), RepeatedImagesCheck()]
)
def test_without_a_batch_of_images_it_is_not_recorded(check: Check) -> None:
    with pytest.raises(NotRecorded, match="images with 1 or 3 channels as an argument of the mo"):
        check(record(facts=[replace(LOOP, batch=None)] * 8))
    assert findings_at(check, replace(LOOP, batch=None), *[LOOP] * 7) == []


@pytest.mark.parametrize(
    "check",
    [ConstantImagesCheck(), IdenticalImagesCheck(), RepeatedImagesCheck(), SameBatchCheck()],
)
def test_a_network_without_a_layer_for_images_has_nothing_that_is_not_recorded(
    check: Check,
) -> None:
    facts = [TrainingFacts()] * 8
    for shape in (None, (8, 8, 3)):
        sound = [layer(i, kernel_shape=shape) for i in range(3)]
        assert check(record(sound, facts=facts)) == []
    volumes = [layer(0, kernel_shape=(8, 8, 3, 3, 3))]
    for unknown in (record(volumes, facts=facts), RunRecord(facts={0: TrainingFacts()})):
        with pytest.raises(NotRecorded, match="a batch of images"):
            check(unknown)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_without_the_series_it_is_not_recorded(check: Check) -> None:
    with pytest.raises(NotRecorded, match="fmapboard_findings"):
        check(record())


def test_the_picture_of_faulty_images_is_that_of_the_model_by_its_name() -> None:
    black = replace(LOOP, constant_images=(0, 1, 2, 3))
    same = replace(LOOP, identical_images=((0, 1), (0, 2), (0, 3)))
    twice = replace(LOOP, identical_images=((2, 3),))
    cases: tuple[tuple[Check, TrainingFacts], ...] = (
        (ConstantImagesCheck(), black),
        (IdenticalImagesCheck(), same),
        (RepeatedImagesCheck(), twice),
    )
    for check, facts in cases:
        (found,) = check(replace(record(facts=[facts] * 8), name="gen"))
        assert found.picture == "gen.network_input/sample_0"


def test_a_batch_of_one_image_is_never_constant_or_identical() -> None:
    one = replace(LOOP, batch=1, constant_images=(0,))
    for check in (ConstantImagesCheck(), IdenticalImagesCheck(), RepeatedImagesCheck()):
        assert findings_at(check, *[one] * 8) == []


def test_intended_cases_are_silent() -> None:
    warm_up = replace(LOOP, rates=(0.0, 0.0))
    no_training = TrainingFacts(batch=4, constant_images=(), identical_images=())
    assert [findings_at(check, *[no_training] * 8) for check in CHECKS] == [[]] * len(CHECKS)
    for steps in ([warm_up] * 7, [warm_up] * 7 + [LOOP]):
        assert [findings_at(check, *steps) for check in CHECKS] == [[]] * len(CHECKS)
