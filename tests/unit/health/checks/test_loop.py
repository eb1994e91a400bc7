"""Faults of the loop and its images: both sides of each rule, intended cases stay silent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from check_records import STEPS, layer, record

from fmapboard.checks import Check, Finding, NotRecorded, RunRecord
from fmapboard.formats.training_facts import OUTSIDE, OutputFacts, TrainingFacts, Unchanged
from fmapboard.health.checks.loop import (
    ConstantImagesCheck,
    EvalModeCheck,
    GradientsNotClearedCheck,
    IdenticalImagesCheck,
    InputScaleCheck,
    NeverCalledCheck,
    NotInOptimizerCheck,
    RateVanishedCheck,
    SameBatchCheck,
)
from fmapboard.health.checks.weights import UnchangedWeightsCheck

FINE = TrainingFacts(
    not_in_optimizer=(), not_cleared=(), eval_mode=False, batch=4, constant_images=(),
    identical_images=(), rates=(0.1, 0.1),
)  # fmt: skip
CHECKS: list[Check] = [
    NotInOptimizerCheck(), GradientsNotClearedCheck(), EvalModeCheck(), ConstantImagesCheck(),
    IdenticalImagesCheck(), UnchangedWeightsCheck(),
]  # fmt: skip


def said(check: Check, *facts: TrainingFacts, **more: list[float]) -> list[Finding]:
    return list(check(record(facts=facts, scalars=more)))


def only(check: Check, *facts: TrainingFacts) -> Finding:
    (found,) = said(check, *facts)
    assert found.class_ == "warning"
    assert found.kind == check.kind
    return found


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_a_healthy_loop_has_no_finding(check: Check) -> None:
    assert said(check, *[FINE] * 8) == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_what_is_not_known_is_no_finding(check: Check) -> None:
    assert said(check, *[TrainingFacts(batch=1)] * 8) == []


@pytest.mark.parametrize("check", [ConstantImagesCheck(), IdenticalImagesCheck()])
def test_without_a_batch_of_images_it_is_not_recorded(check: Check) -> None:
    with pytest.raises(NotRecorded, match="images with 1 or 3 channels as an argument of the mo"):
        check(record(facts=[replace(FINE, batch=None)] * 8))
    assert said(check, replace(FINE, batch=None), *[FINE] * 7) == []


@pytest.mark.parametrize("check", [ConstantImagesCheck(), IdenticalImagesCheck(), SameBatchCheck()])
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


def test_parameters_in_no_optimizer_at_the_last_two_steps() -> None:
    lost = replace(FINE, not_in_optimizer=("head.weight", "head.bias"))
    found = only(NotInOptimizerCheck(), FINE, FINE, lost, lost)
    assert (found.since_step, found.parameter, found.value) == (20, "head.weight", 2)
    assert found.message == (
        "2 trainable parameters are in no optimizer since step 20: `head.weight`, `head.bias`"
    )
    assert said(NotInOptimizerCheck(), FINE, lost, FINE) == []
    assert said(NotInOptimizerCheck(), FINE, FINE, lost) == []
    assert only(NotInOptimizerCheck(), lost).since_step == 0
    outside = only(NotInOptimizerCheck(), replace(lost, not_in_optimizer=(f"{OUTSIDE}[3] (1)",)))
    assert outside.parameter is None
    assert "nn.ModuleList" in outside.advice


def test_names_that_were_not_stored_are_counted() -> None:
    lost = replace(FINE, not_in_optimizer=("a",), left_out={"not_in_optimizer": 99})
    assert only(NotInOptimizerCheck(), lost, lost).message.endswith("step 0: `a` and 99 more")


def test_gradients_that_were_not_cleared_at_two_steps_after_the_first() -> None:
    kept = replace(FINE, not_cleared=("conv.weight",))
    found = only(GradientsNotClearedCheck(), FINE, kept, kept, FINE)
    assert (found.since_step, found.parameter) == (10, "conv.weight")
    assert "at 2 of 3 logged steps" in found.message
    assert said(GradientsNotClearedCheck(), kept, kept, FINE, FINE) == []
    assert said(GradientsNotClearedCheck(), kept) == []
    assert only(GradientsNotClearedCheck(), FINE, kept).since_step == 10


def test_eval_mode_at_the_last_two_steps() -> None:
    evaluates = replace(FINE, eval_mode=True, eval_modules=("", "bn1"))
    found = only(EvalModeCheck(), FINE, evaluates, evaluates)
    assert found.since_step == 10
    assert found.message.endswith("since step 10: `the model`, `bn1`")
    assert said(EvalModeCheck(), evaluates, evaluates, FINE) == []
    assert said(EvalModeCheck(), FINE, FINE, evaluates) == []


def test_constant_images_only_if_all_of_the_batch_are_at_half_of_the_steps() -> None:
    black = replace(FINE, constant_images=(0, 1, 2, 3))
    found = only(ConstantImagesCheck(), FINE, FINE, black, black)
    assert (found.since_step, found.value) == (20, 4)
    assert found.picture == "network_input/sample_0"
    assert said(ConstantImagesCheck(), FINE, FINE, FINE, black, black) == []
    assert said(ConstantImagesCheck(), *[replace(FINE, constant_images=(0, 1, 2))] * 8) == []


def test_the_picture_of_faulty_images_is_that_of_the_model_by_its_name() -> None:
    black = replace(FINE, constant_images=(0, 1, 2, 3))
    same = replace(FINE, identical_images=((0, 1), (0, 2), (0, 3)))
    twice = replace(FINE, identical_images=((2, 3),))
    cases = (
        (ConstantImagesCheck(), black),
        (IdenticalImagesCheck(), same),
        (IdenticalImagesCheck(), twice),
    )
    for check, facts in cases:
        (found,) = check(replace(record(facts=[facts] * 8), name="gen"))
        assert found.picture == "gen.network_input/sample_0"


def test_a_batch_of_one_image_is_never_constant_or_identical() -> None:
    one = replace(FINE, batch=1, constant_images=(0,))
    assert said(ConstantImagesCheck(), *[one] * 8) == []
    assert said(IdenticalImagesCheck(), *[one] * 8) == []


def test_identical_images_only_if_all_of_the_batch_are() -> None:
    same = replace(FINE, identical_images=((0, 1), (0, 2), (0, 3)))
    assert only(IdenticalImagesCheck(), same, same).value == 4
    some = replace(FINE, identical_images=((0, 1), (2, 3)))
    assert [one.class_ for one in said(IdenticalImagesCheck(), *[some] * 8)] == ["note"]
    two_kinds = replace(FINE, identical_images=((0, 1), (0, 2), (3, 4)), batch=4)
    assert [one.class_ for one in said(IdenticalImagesCheck(), *[two_kinds] * 8)] == ["note"]


def test_images_that_are_the_same_at_the_same_places_of_each_batch_are_a_note() -> None:
    some = replace(FINE, identical_images=((0, 1), (2, 3)))
    (found,) = said(IdenticalImagesCheck(), *[some] * 4)
    assert (found.class_, found.value, found.since_step) == ("note", 4, 0)
    assert "4 images of the batch are the same as another one, at the same places" in found.message
    other = replace(FINE, identical_images=((1, 2),))
    assert said(IdenticalImagesCheck(), *[some] * 3) == []
    assert said(IdenticalImagesCheck(), *[some] * 7, other) == []
    padded = replace(FINE, identical_images=((2, 3),), constant_images=(2, 3))
    assert said(IdenticalImagesCheck(), *[padded] * 8) == []


def test_a_list_of_equal_images_that_was_cut_gives_a_lower_bound_and_names_intended_pairs() -> None:
    pairs = tuple((5 * n // 4 // 5 * 5, n) for n in range(1, 65) if n % 5)
    cut = replace(FINE, batch=400, identical_images=pairs, left_out={"identical_images": 256})
    (found,) = said(IdenticalImagesCheck(), *[cut] * 4)
    places = {place for pair in pairs for place in pair}
    assert found.message.startswith(f"at least {len(places)} images of the batch are the same as")
    assert found.meaning.startswith("Intended if the loss compares or averages over copies")
    (found,) = said(IdenticalImagesCheck(), *[replace(cut, left_out={})] * 4)
    assert found.message.startswith(f"{len(places)} images")


def test_constant_images_are_not_reported_as_identical_too() -> None:
    pairs = ((0, 1), (0, 2), (0, 3))
    black = replace(FINE, constant_images=(0, 1, 2, 3), identical_images=pairs)
    assert said(IdenticalImagesCheck(), *[black] * 8) == []


def test_weights_unchanged_over_three_applied_steps() -> None:
    still = replace(FINE, unchanged={"conv.weight": Unchanged(3, 0)})
    found = only(UnchangedWeightsCheck(), FINE, still)
    assert (found.since_step, found.parameter, found.value) == (STEPS[1], "conv.weight", 3)
    assert found.message.startswith(f"weights unchanged since step {STEPS[1]}, over 3 logged steps")
    assert "at a learning rate of 0.1" in found.message
    four = {name: Unchanged(3, 0) for name in ("a.weight", "b.weight", "c.weight", "d.weight")}
    assert only(UnchangedWeightsCheck(), FINE, replace(FINE, unchanged=four)).parameters == (*four,)
    assert said(UnchangedWeightsCheck(), replace(FINE, unchanged={"w": Unchanged(2, 20)})) == []
    assert said(UnchangedWeightsCheck(), still, FINE) == []


def test_a_bias_and_a_weight_without_a_gradient_may_stay_as_they_are() -> None:
    bias = replace(FINE, unchanged={"conv.bias": Unchanged(8, 0)})
    assert said(UnchangedWeightsCheck(), bias) == []
    still = replace(FINE, unchanged={"conv.weight": Unchanged(8, 0)})
    zero = {"gradient_norm/conv.weight": [0.0] * len(STEPS)}
    assert said(UnchangedWeightsCheck(), still, **zero) == []
    nonzero = {"gradient_norm/conv.weight": [0.0, 1e-3]}
    assert len(said(UnchangedWeightsCheck(), still, **nonzero)) == 1


def test_intended_cases_are_silent() -> None:
    warm_up = replace(FINE, rates=(0.0, 0.0))
    no_training = TrainingFacts(batch=4, constant_images=(), identical_images=())
    assert [said(check, *[no_training] * 8) for check in CHECKS] == [[]] * len(CHECKS)
    for steps in ([warm_up] * 7, [warm_up] * 7 + [FINE]):
        assert [said(check, *steps) for check in CHECKS] == [[]] * len(CHECKS)


def test_the_same_batch_at_each_logged_step() -> None:
    same = replace(FINE, batch_digest="a")
    (found,) = said(SameBatchCheck(), *[same] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 4)
    assert (
        found.message == "the batch of 4 images is the same at each of 4 logged steps, since step 0"
    )
    assert "every= is a multiple of their number" in found.meaning
    assert said(SameBatchCheck(), *[same] * 3) == []
    assert said(SameBatchCheck(), *[same] * 7, replace(FINE, batch_digest="b")) == []
    (found,) = SameBatchCheck()(record(steps=range(8), facts=[same] * 8))
    assert found.meaning == "One batch is kept and used at each step"
    with pytest.raises(NotRecorded, match="a batch of images"):
        said(SameBatchCheck(), *[FINE] * 8)


def test_the_same_batch_of_constant_or_identical_images_is_left_to_these_findings() -> None:
    black = replace(FINE, batch_digest="a", constant_images=(0, 1, 2, 3))
    assert said(SameBatchCheck(), *[black] * 8) == []
    one = replace(FINE, batch_digest="a", identical_images=((0, 1), (0, 2), (0, 3)))
    assert said(SameBatchCheck(), *[one] * 8) == []


def test_the_same_batch_of_a_line_search_is_intended() -> None:
    assert said(SameBatchCheck(), *[replace(FINE, batch_digest="a", rates=None)] * 8) == []


def test_layers_that_never_ran() -> None:
    lost = replace(FINE, no_gradient=("a.weight", "a.bias", "b"), not_called=("a.weight", "a.bias"))
    (found,) = said(NeverCalledCheck(), *[lost] * 4)
    assert (found.class_, found.since_step, found.parameter) == ("note", 0, "a.weight")
    assert found.parameters == ("a.weight", "a.bias")
    assert found.message == (
        "1 layer with trainable parameters never ran and never had a gradient at 4 logged steps, "
        "and nothing has changed it: `a`"
    )
    assert said(NeverCalledCheck(), *[lost] * 3) == []
    ran = replace(FINE, no_gradient=())
    assert said(NeverCalledCheck(), *[lost] * 7, ran) == []
    assert len(said(NeverCalledCheck(), *[lost] * 7, replace(FINE, no_gradient=None))) == 1
    assert list(NeverCalledCheck()(record(steps=range(8), facts=[lost] * 8))) == []
    for count, least in ((16, 1), (17, 0)):  # a spare part of a large network
        norms = {
            f"gradient_norm/{i}.{name}": [1.0] for i in range(count) for name in ("weight", "bias")
        }
        one = record(facts=[lost] * 8, scalars={**norms, "gradient_norm/total": [1.0]})
        assert len(NeverCalledCheck()(one)) == least


def vanished(*rates: list[float], steps: Sequence[int] = STEPS) -> list[Finding]:
    scalars = {f"learning_rate/{n}": one for n, one in enumerate(rates)}
    return list(RateVanishedCheck()(record(steps=steps, scalars=scalars)))


def test_a_rate_far_below_its_maximum_for_more_than_a_tenth_of_the_run() -> None:
    (found,) = vanished([0.01, 0.1, 0.1, 0.1, 1e-6, 1e-6, 1e-6, 1e-6])
    assert (found.class_, found.since_step, found.value) == ("note", 40, pytest.approx(1e-5))
    assert found.message == (
        "the learning rate has been below 1e-04 times its maximum of 0.1 since step 40, for 43 % "
        "of the run; it is 1.0e-06"
    )
    assert vanished([0.1] * 5 + [1e-6] * 3) == []
    assert vanished([0.1] * 4 + [1e-6] * 3 + [0.1]) == []
    assert vanished([0.1] * 4 + [0.999999e-5] * 4) == []  # four divisions by 10, rounded
    late = [*range(0, 400, 100), 400, 401, 402, 403]
    assert vanished([0.1] * 4 + [1e-6] * 4, steps=late) == []
    with pytest.raises(NotRecorded, match="learning_rate"):
        RateVanishedCheck()(record())
    (found,) = vanished([0.1] * 2 + [4.9e-4] * 6)  # three divisions by 10, for most of the run
    assert "below 5e-03 times its maximum of 0.1 since step 20, for 71 %" in found.message
    assert vanished([0.1] * 3 + [4.9e-4] * 5) == vanished([0.1] * 2 + [5e-4] * 6) == []


def test_a_warm_up_a_group_at_rate_0_and_one_that_still_learns_are_silent() -> None:
    assert vanished([1e-7] * 6 + [0.1] * 2) == []
    gone = [0.1] * 2 + [1e-6] * 6
    assert vanished(gone, [0.1] * 8) == []
    assert len(vanished(gone, [0.0] * 8)) == 1
    assert vanished([0.0] * 8) == []


LAST = len(STEPS)
BYTES = {"minimum": 0.0, "maximum": 200.0, "mean": 110.0, "std": 50.0}
FLAT = {"minimum": 0.01, "maximum": 0.07, "mean": 0.04, "std": 0.01}


@pytest.mark.parametrize(
    ("largest", "spread", "is_found"),
    [
        (255.0, 60.0, True),
        (30.0, 1.0, False),
        (30.1, 1.0, True),
        (1.0, 0.029, True),
        (1.0, 0.031, False),
    ],
)
def test_the_inputs_range(largest: float, spread: float, is_found: bool) -> None:
    inputs = {"minimum": 0.0, "maximum": largest, "mean": 0.5, "std": spread}
    found = InputScaleCheck()(record(inputs=inputs, columns={"std": {0: [2.1] * LAST}}))
    assert [one.kind for one in found] == ["input_scale"] * is_found


@pytest.mark.parametrize(("mean", "is_found"), [(-1.01, True), (-0.99, False), (0.0, False)])
def test_inputs_that_hardly_differ_from_their_mean(mean: float, is_found: bool) -> None:
    inputs = {"minimum": -1.2, "maximum": -0.9, "mean": mean, "std": 0.1}
    (found,) = InputScaleCheck()(record(inputs=inputs)) or [None]
    assert (found is not None) == is_found
    if found is not None:
        assert found.message.startswith("the values of the input images are all within -1.2 to -0")


def test_constant_inputs_have_no_scale_and_unknown_ones_are_not_recorded() -> None:
    constant = {"minimum": 0.5, "maximum": 0.5, "mean": 0.5, "std": 0.0}
    assert InputScaleCheck()(record(inputs=constant)) == []
    for inputs in ({}, {"mean": 0.5}):
        with pytest.raises(NotRecorded, match="input"):
            InputScaleCheck()(replace(record(inputs=inputs), health=None))


def test_the_gradients_of_the_first_layer_tell_of_inputs_that_are_no_images() -> None:
    def found(*ratios: float, bias: float = 0.5, **facts: Any) -> list[Finding]:
        own = "_ih_l0" if facts.get("type") == "LSTM" else ""
        scalars = {
            f"gradient_norm/conv0.weight{own}": [bias * ratio for ratio in ratios],
            f"gradient_norm/conv0.bias{own}": [bias] * len(ratios),
        }
        return list(InputScaleCheck()(record([layer(0, **facts), layer(1)], scalars=scalars)))

    (one,) = found(180.0, 1.0, 1.0)
    assert (one.class_, one.layer, one.since_step, one.value) == ("note", "conv0", 0, 180.0)
    assert one.message == (
        "the network's inputs have a magnitude of about 180 since step 0, estimated from its first "
        "layer, `conv0`"
    )
    assert one.meaning == "They are not scaled"
    (one,) = found(0.01, 0.04, 0.05, type="LSTM", kernel_shape=None)
    assert (one.value, one.meaning) == (0.01, "They are scaled twice, or zeros")
    assert len(found(0.0)) == len(found(1e5, 2e5, 2e5)) == len(found(2e5, 1e5, 1e5)) == 1
    assert found(179.0, 1e3, 1e3) == found(0.041, 0.01) == found(0.01, 0.041, 0.041) == []
    batch, words = {"followed_by": ("BatchNorm1d",)}, {"type": "Embedding", "kernel_shape": None}
    assert found(1e-3, **words) == []  # they have no magnitude
    for facts in ({"bias": 0.0}, batch):
        with pytest.raises(NotRecorded, match="the input's range"):
            found(1e-3, **facts)
    for ratios in ((1.1e5,), ()):
        with pytest.raises(NotRecorded, match="the input's range"):
            found(*ratios)


@pytest.mark.parametrize(("ratio", "is_found"), [(0.59, True), (0.61, False)])
def test_images_whose_colours_take_turns_in_a_row_are_scrambled(
    ratio: float, is_found: bool
) -> None:
    found = InputScaleCheck()(record(inputs={**FLAT, "std": 0.5, "interleaved": ratio}))
    assert [one.value for one in found] == [ratio] * is_found
    assert all("look scrambled" in one.message for one in found)


def test_large_images_that_the_network_scales_itself_are_silent() -> None:
    scaled = {"std": {0: [2.0] * LAST}}
    assert InputScaleCheck()(record(inputs=BYTES, columns=scaled)) == []
    for low, is_found in ((-20.5, True), (-20.0, False)):  # or does it? The output is as large
        first = replace(FINE, outputs=(OutputFacts("", (8, 4), low=low, high=30.0),))
        given = record(inputs=BYTES, columns=scaled, facts=[first] + [FINE] * 7)
        assert len(InputScaleCheck()(given)) == is_found
    no_kernels = [layer(i, kernel_shape=None) for i in range(6)]
    assert len(InputScaleCheck()(record(no_kernels, inputs=BYTES, columns=scaled))) == 1


@pytest.mark.parametrize(("after", "is_found"), [(4.6, False), (0.99, True), (0.35, True)])
def test_flat_images_before_a_normalization_are_silent(after: float, is_found: bool) -> None:
    layers = [layer(0), layer(1, label="relu0", layer="relu0", kernel_shape=None), layer(2)]
    columns = {"maximum": {0: [0.14] * LAST, 1: [after] * LAST}, "minimum": {0: [-0.1] * LAST}}
    columns["minimum"][1] = [0.0] * LAST
    found = InputScaleCheck()(record(layers, inputs=FLAT, columns=columns))
    assert len(found) == is_found


def test_a_spread_far_above_1_is_a_scale_too() -> None:
    wide = {"minimum": -29.0, "maximum": 28.0, "mean": 0.0, "std": 11.0}
    columns = {"std": {0: [9.0] * LAST}}
    (found,) = InputScaleCheck()(record(inputs=wide, columns=columns))
    assert found.value == 11.0
    assert found.message.startswith("input images have a standard deviation of 11 (median of 8")
    assert InputScaleCheck()(record(inputs={**wide, "std": 5.0}, columns=columns)) == []
    assert InputScaleCheck()(record(inputs=wide, columns={"std": {0: [2.0] * LAST}})) == []


@pytest.mark.parametrize(
    ("norm", "inputs", "is_found"),
    [
        ("InstanceNorm2d", {**BYTES, "minimum": -1000.0}, False),
        ("InstanceNorm2d", BYTES, False),
        ("BatchNorm2d", {**BYTES, "minimum": -1000.0}, False),
        ("BatchNorm2d", BYTES, True),
        ("BatchNorm2d", {**BYTES, "minimum": -39.0}, True),  # with noise
        ("BatchNorm2d", {**BYTES, "minimum": -41.0}, False),
        ("BatchNorm2d", {**BYTES, "maximum": 400.0}, True),
        ("BatchNorm2d", {**BYTES, "maximum": 401.0}, False),
        ("LayerNorm", BYTES, True),
        ("Tanh", {**BYTES, "minimum": -1000.0}, True),
        ("InstanceNorm2d", FLAT, False),
        ("BatchNorm2d", FLAT, False),
    ],
)
def test_images_in_front_of_a_normalization(
    norm: str, inputs: dict[str, float], *, is_found: bool
) -> None:
    layers = [layer(0, followed_by=(norm,)), *(layer(i) for i in range(1, 6))]
    known: dict[str, Any] = {"inputs": inputs, "columns": {"std": {0: [99.0] * LAST}}}
    trains = {"batchnorm_gap/norm": [0.1] * LAST}
    assert len(InputScaleCheck()(record(layers, scalars=trains, **known))) == is_found
    is_fixed = norm == "BatchNorm2d" and inputs is FLAT  # it does not adapt in eval mode
    assert len(InputScaleCheck()(record(layers, **known))) == (is_found or is_fixed)


def test_only_a_range_up_to_255_is_called_one() -> None:
    columns = {"std": {0: [9.0] * LAST}}
    (found,) = InputScaleCheck()(record(inputs=BYTES, columns=columns))
    assert found.meaning == "The images are not scaled: 0 to 255 instead of 0 to 1"
    decibels = {**BYTES, "minimum": -46.0, "maximum": 21.0}
    (found,) = InputScaleCheck()(record(inputs=decibels, columns=columns))
    assert found.meaning == "The images are not scaled: values from -46 to 21"
