"""Unchanged weights, update ratios and BatchNorm's gap: on both sides of each threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from check_records import STEPS, from_step, layer, record

from fmapboard.checks import Check, Finding, NotRecorded, RunRecord
from fmapboard.formats.training_facts import Idle, OutputFacts, TrainingFacts, Unchanged
from fmapboard.health.checks.weights import (
    BatchnormGapCheck,
    BatchnormSmallBatchCheck,
    UnchangedWeightsCheck,
    UpdateRatioCheck,
)

LAST = len(STEPS)
STEPPED = TrainingFacts(batch=4, rates=(0.1, 0.1), no_gradient=())
ALONE = replace(STEPPED, no_gradient=("conv1.weight",))
LATER = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, 6)}


def said(*facts: TrainingFacts, **more: list[float]) -> list[Finding]:
    return list(UnchangedWeightsCheck()(record(facts=facts, scalars=more)))


def idle(count: int, **changes: bool | None) -> list[TrainingFacts]:
    """Logged steps in a row without an optimizer step, over which the weights are the same."""
    first = Idle(0, 0, is_held=True, is_cleared=True)
    return [
        TrainingFacts(batch=4, idle=replace(first, steps=n, **changes))  # type: ignore[arg-type]  # flags
        for n in range(count)
    ]


def test_backward_passes_without_an_optimizer_step() -> None:
    (found,) = said(*idle(4))
    assert (found.class_, found.kind, found.since_step) == ("note", "unchanged_weights", 0)
    assert "no optimizer stepped on the model at the last 4 logged steps" in found.message
    assert "An optimizer holds them" in found.meaning
    (found,) = said(*idle(4, is_held=False))
    assert "No optimizer holds a parameter of this model" in found.meaning
    assert said(*idle(3)) == []
    assert said(*idle(7), STEPPED) == []


def test_gradients_that_are_being_accumulated_are_intended() -> None:
    kept = idle(8, is_cleared=False)
    assert said(*kept) == []
    assert said(*idle(1), *kept[1:]) == []
    assert len(said(*idle(8, is_cleared=False, is_held=False))) == 1
    assert said(*idle(8, is_held=None)) == []


def test_a_rate_of_zero_at_every_logged_step() -> None:
    zero = replace(STEPPED, rates=(0.0, 0.0))
    (found,) = said(*[zero] * 8)
    assert found.class_ == "note"
    assert found.message == "the learning rate is 0 at each of 8 logged steps"
    assert said(*[zero] * 7) == []
    assert said(*[zero] * 7, STEPPED) == []


def test_optimizer_steps_without_any_gradient() -> None:
    (found,) = said(*[ALONE] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 4)
    assert "no parameter has a gradient other than 0 at any of 4 logged steps" in found.message
    zero = {name: [0.0] * LAST for name in LATER}
    assert len(said(*[STEPPED] * LAST, **zero)) == 1
    assert said(*[ALONE] * 3) == []
    assert said(*[STEPPED] * LAST) == []
    for other in (1e-30, float("nan")):
        once = {"gradient_norm/conv2.weight": [0.0] * (LAST - 1) + [other]}
        (found,) = said(*[STEPPED] * LAST, **zero | once)  # those of the others are cut off
        assert found.parameters == ("conv3.weight", "conv4.weight", "conv5.weight")


def test_gradients_of_exactly_0_of_most_weights_count_as_none() -> None:
    norms = {f"gradient_norm/conv{i}.weight": [0.0 if i < 4 else 1.0] * LAST for i in range(7)}
    layers = [layer(i, kernel_shape=None, type="Quantized") for i in range(7)]
    facts = [STEPPED] * LAST
    (found,) = UnchangedWeightsCheck()(record(layers, facts=facts, scalars=norms))
    assert found.parameters == tuple(f"conv{i}.weight" for i in range(4))
    del norms["gradient_norm/conv0.weight"]  # half of them
    assert UnchangedWeightsCheck()(record(layers, facts=facts, scalars=norms)) == []


def test_a_first_layer_that_runs_and_never_gets_a_gradient_for_its_weight() -> None:
    (found,) = said(*[ALONE] * 4, **LATER)
    assert (found.class_, found.parameter, found.value) == ("note", "conv1.weight", 1)
    assert "1 trainable weight is without a gradient at each of 4 logged steps" in found.message
    assert said(*[ALONE] * 3, **LATER) == []
    assert said(*[ALONE] * 7, STEPPED, **LATER) == []


@pytest.mark.parametrize("name", ["aside.weight", "conv1.bias", "mask_weight"])
def test_parameters_of_layers_that_do_not_run_and_biases_are_silent(name: str) -> None:
    assert said(*[replace(STEPPED, no_gradient=(name,))] * LAST, **LATER) == []


def test_a_layer_behind_others_with_gradients_may_be_ignored_by_the_loss() -> None:
    norms = {**LATER, "gradient_norm/conv0.weight": [1.0] * LAST}
    assert said(*[ALONE] * LAST, **norms) == []
    two = replace(ALONE, no_gradient=("conv1.weight", "conv2.weight", "conv2.bias"))
    del norms["gradient_norm/conv2.weight"]
    (found,) = said(*[two] * LAST, **norms)  # of six layers
    assert found.parameters == ("conv1.weight", "conv2.weight")
    conv0 = {"gradient_norm/conv0.weight": [1.0] * LAST}  # one of two
    few = record([layer(0), layer(1)], facts=[ALONE] * LAST, scalars=conv0)
    assert UnchangedWeightsCheck()(few) == []
    lost = replace(two, no_gradient=("conv1.weight", "aside.weight"))
    assert said(*[lost] * LAST, **norms) == []


def test_a_layer_that_runs_at_some_of_the_steps_only_is_silent() -> None:
    nan = {"minimum": {1: [0.0] * 7 + [float("nan")]}}
    assert not UnchangedWeightsCheck()(record(facts=[ALONE] * LAST, columns=nan, scalars=LATER))


def test_a_sibling_with_a_gradient_shows_that_the_layer_is_used() -> None:
    copied = replace(STEPPED, no_gradient=("aside.weight",))
    (found,) = said(*[copied] * LAST, **{"gradient_norm/aside.bias": [1.0] * LAST})
    assert found.parameter == "aside.weight"


def test_a_warning_comes_first() -> None:
    both = replace(ALONE, unchanged={"conv2.weight": Unchanged(3, 0)})
    assert [one.class_ for one in said(*[both] * LAST)] == ["warning"]


def updates(values: list[float]) -> dict[str, list[float]]:
    return {f"update_ratio/conv{i}.weight": values for i in range(6)}


def test_updates_that_are_too_small_at_every_step() -> None:
    short = {"steps": tuple(range(LAST))}
    (found,) = UpdateRatioCheck()(record(scalars=updates([9.9e-5] * LAST), **short))
    assert (found.class_, found.parameter, found.value) == ("note", "conv0.weight", 9.9e-5)
    assert found.message.startswith("no optimizer step changes a weight by more than 0.0099 %")
    assert found.healthy == "0.01 % to 4 %"
    assert UpdateRatioCheck()(record(scalars=updates([1.01e-4] * LAST), **short)) == []
    assert UpdateRatioCheck()(record(scalars=updates([9.9e-5] * 3))) == []


def test_small_updates_over_50_steps_where_no_loss_is_known() -> None:
    def found(median: float, one: float, *more: float) -> list[Finding]:
        usual = {f"update_ratio/conv{i}.weight": [median] * (LAST - 1) for i in range(6)}
        ratios = {name: [*values, *(more or [median])] for name, values in usual.items()}
        ratios["update_ratio/conv3.weight"] = [one] * LAST
        return list(UpdateRatioCheck()(record(scalars=ratios)))

    (small,) = found(3.9e-4, 9e-4)
    assert small.message == (
        "the median update is 0.039 % of the weights, since step 0; the most in `conv3.weight`"
    )
    assert small.healthy == "0.04 % to 4 %"
    assert found(4.1e-4, 9e-4) == found(3.9e-4, 1.1e-3) == found(3.9e-4, 9e-4, 4.1e-4) == []
    assert len(found(4.9e-5, 0.1)) == 1
    assert found(5.1e-5, 0.1) == []


def test_a_warm_up_from_rate_zero_and_skipped_steps_are_silent() -> None:
    assert UpdateRatioCheck()(record(scalars=updates([0.0, 1e-8, *[1e-3] * (LAST - 2)]))) == []
    assert UpdateRatioCheck()(record(scalars=updates([0.0] * LAST))) == []
    assert UpdateRatioCheck()(record(scalars=updates([float("nan")] * LAST))) == []


def test_no_update_at_all_counts_if_the_rate_is_above_zero() -> None:
    none = updates([0.0] * LAST)
    for rates, count in (((1e-12, 1e-12), 1), ((0.0, 0.0), 0), (None, 0)):
        facts = [TrainingFacts(rates=rates)] * LAST
        assert len(UpdateRatioCheck()(record(scalars=none, facts=facts))) == count
    warm_up = [TrainingFacts(rates=(0.0, 0.0))] * 6 + [TrainingFacts(rates=(0.1, 0.1))] * 2
    assert UpdateRatioCheck()(record(scalars=none, facts=warm_up)) == []


def test_weights_without_a_gradient_are_not_told_to_need_a_higher_rate() -> None:
    facts = [TrainingFacts(rates=(0.1, 0.1))] * LAST
    none = updates([0.0] * LAST)
    zero = {f"gradient_norm/conv{i}.weight": [0.0] * LAST for i in range(6)}
    assert UpdateRatioCheck()(record(scalars={**none, **zero}, facts=facts)) == []
    one = {**zero, "gradient_norm/conv3.weight": [1.0] * LAST}
    (found,) = UpdateRatioCheck()(record(scalars={**none, **one}, facts=facts))
    assert found.parameter == "conv3.weight"


def test_weights_that_keep_moving_by_a_large_share_of_their_norm() -> None:
    ratios = [1e-3, 1e-3, 0.26, 0.65, 0.4, 1e-3, 1e-3, 1e-3]
    (found,) = UpdateRatioCheck()(record(scalars=updates(ratios)))
    assert (found.since_step, found.value) == (20, 0.65)
    assert found.message == (
        "an optimizer step changes the weights by up to 65 % of their norm (median over the "
        "weights) at 3 logged steps since step 20; the most in `conv0.weight`"
    )
    assert found.meaning.startswith("Steps of this size may undo what")
    settles = [0.21, 0.22, 0.2, *[1e-3] * 5]
    assert UpdateRatioCheck()(record(scalars=updates(settles))) == []
    interrupted = [0.3, 0.3, 0.1] * 2 + [0.3, 0.3]
    assert UpdateRatioCheck()(record(scalars=updates(interrupted))) == []


def test_a_first_step_that_replaces_the_weights_is_silent_if_the_run_settles() -> None:
    (found,) = UpdateRatioCheck()(record(scalars=updates([1e-3, 0.61, *[1e-3] * 6])))
    assert (found.since_step, found.value) == (10, 0.61)
    (found,) = UpdateRatioCheck()(record(scalars=updates([4.1, *[1e-3] * 7])))
    assert (
        "by up to 410 % of their norm (median over the weights) at 1 logged step since"
        in found.message
    )
    for count, first, is_found in ((5, 3.9, 0), (5, 4.1, 1), (6, 0.61, 1)):
        of = {f"update_ratio/conv{i}.weight": [first, 0.09, *[1e-3] * 6] for i in range(count)}
        assert len(UpdateRatioCheck()(record(scalars=of))) == is_found
    for count, first, is_found in ((2, 0.61, 0), (2, 4.1, 1), (3, 0.61, 1)):
        of = {f"update_ratio/conv{i}.weight": [first, 0.11, *[1e-3] * 6] for i in range(count)}
        assert len(UpdateRatioCheck()(record(scalars=of))) == is_found
    of_one = {"update_ratio/conv0.weight": [62.0, 0.09, *[1e-3] * 6]}
    assert UpdateRatioCheck()(record(scalars=of_one)) == []  # it may start near 0
    for ratios, count in (([1.1, 0.9, 0.5, 0.19] * 2, 0), ([1e-3] * 4 + [0.3] * 4, 1)):
        one = record(scalars={"update_ratio/conv0.weight": ratios})
        assert len(UpdateRatioCheck()(one)) == count
    assert UpdateRatioCheck()(record(scalars=updates([0.59, 0.19, *[1e-3] * 6]))) == []


def test_all_weights_of_an_lstm_count() -> None:
    names = ("weight_ih_l0", "weight_hh_l0")
    of = {f"update_ratio/body.{name}": [0.3] * LAST for name in names}
    still = {
        "update_ratio/last.weight": [1e-3] * LAST,
        "update_ratio/body.bias_ih_l0": [0.0] * LAST,
    }
    linear = [layer(0, kernel_shape=None, type="Linear")]
    (found,) = UpdateRatioCheck()(record(linear, scalars={**of, **still}))
    assert (found.value, found.parameter) == (0.3, "body.weight_ih_l0")


def test_one_large_update_before_activations_explode_is_their_cause() -> None:
    explodes = {"maximum": {2: from_step(4, 1000.0, 1.0)}}

    def found(*ratios: float) -> list[Finding]:
        every = [*ratios, *[1e-3] * (LAST - len(ratios))]
        return list(UpdateRatioCheck()(record(columns=explodes, scalars=updates(every))))

    for large in ([0.3], [1e-3, 0.09, 0.21], [1e-3] * 3 + [0.3]):
        (one,) = found(*large)
        assert (one.since_step, one.value) == (10 * (len(large) - 1), large[-1])
    assert found(0.19) == found(*[1e-3] * 4, 0.3) == []


def test_one_large_update_before_channels_die_is_their_cause() -> None:
    def found(ratio: float, since: int) -> list[Finding]:
        dies = {name: {2: from_step(since, 0.9, 0.0)} for name in ("dead", "dead_lasting")}
        scalars = updates([ratio, *[1e-3] * (LAST - 1)])
        return list(UpdateRatioCheck()(record(columns=dies, scalars=scalars)))

    (one,) = found(0.21, 1)
    assert (one.since_step, one.value) == (0, 0.21)
    assert found(0.19, 1) == found(0.21, 0) == []


def test_one_large_update_before_values_are_not_finite_is_their_cause() -> None:
    lost = {"nonfinite": {2: from_step(2, 0.5, 0.0)}}

    def found(*ratios: float) -> list[Finding]:
        every = [*ratios, *[math.nan] * (LAST - len(ratios))]
        return list(UpdateRatioCheck()(record(columns=lost, scalars=updates(every))))

    (one,) = found(1e-3, 0.21)
    assert (one.since_step, one.value) == (10, 0.21)
    assert found(1e-3, 0.19) == found(1e-3, 1e-3, 0.21) == []


def test_one_large_update_at_the_start_of_a_run_that_never_learns() -> None:
    def found(loss: float, *ratios: float, spread: float = 1.0) -> list[Finding]:
        every = [*ratios, *[1e-3] * (LAST - len(ratios))]
        known = OutputFacts("", (8, 10), kind="cross-entropy", spread=spread, low=-1.0, high=1.0)
        losses = [2.3, 1.2, 3.0, *[loss] * (LAST - 3)] if loss else [None] * LAST
        facts = [replace(STEPPED, outputs=(replace(known, loss=of),)) for of in losses]
        return list(UpdateRatioCheck()(record(scalars=updates(every), facts=facts)))

    (one,) = found(2.19, 1e-3, 0.11, 0.05)
    assert (one.since_step, one.value) == (10, 0.11)
    assert found(2.19, 0.09) == found(2.17, 0.11) == found(2.19, *[1e-3] * 4, 0.11) == []
    assert found(2.19, 0.11, *[1e-3] * 5, 0.12) == []  # weights that decay
    assert len(found(0.0, 0.11, spread=0.0)) == 1
    assert found(0.0, 0.11) == found(0.0, 0.09, spread=0.0) == []


def test_small_updates_are_judged_by_the_loss_where_it_is_known() -> None:
    def found(ratio: float, *losses: float | None) -> list[Finding]:
        outputs = [OutputFacts("", (8, 10), kind="cross-entropy", loss=loss) for loss in losses]
        facts = [replace(STEPPED, outputs=(each,)) for each in outputs]
        return list(UpdateRatioCheck()(record(scalars=updates([ratio] * LAST), facts=facts)))

    stays = [2.3, *[2.29] * (LAST - 1)]
    (one,) = found(3.9e-4, *stays)
    assert one.message.startswith(
        "the median update is 0.039 % of the weights, and the loss hardly falls, since step 0"
    )
    assert one.healthy == "0.04 % to 4 %"
    assert found(4.1e-4, *stays) == []
    half = LAST // 2
    assert len(found(3.9e-4, *[2.3] * half, *[2.19] * half)) == 1
    assert found(3.9e-4, *[2.3] * half, *[2.18] * half) == []
    assert "hardly falls" in found(9.9e-5, *[2.3] * half, *[1.96] * half)[0].message
    assert "hardly falls" not in found(9.9e-5, *[2.3] * half, *[1.95] * half)[0].message
    assert found(1.01e-4, *[2.3] * half, *[1.96] * half) == []
    assert len(found(3.9e-4, *stays[:-1], 1.85)) == 1  # of one batch
    assert "loss" not in found(3.9e-4, *[None] * (LAST - 3), 2.3, 2.3, 2.3)[0].message
    assert found(9e-5, *[2.3] * half, *[1.8] * half) == []  # it learns all the same
    most = {f"update_ratio/conv{i}.weight": [1e-3 if i else 0.1] * LAST for i in range(6)}
    facts = [replace(STEPPED, outputs=(OutputFacts("", (8, 10), loss=2.3),))] * LAST
    assert UpdateRatioCheck()(record(scalars=most, facts=facts)) == []
    few = {**most, **{f"update_ratio/conv{i}.weight": [1e-4] * LAST for i in range(4)}}
    assert len(UpdateRatioCheck()(record(scalars=few, facts=facts))) == 1
    short = record(scalars=few, facts=facts, steps=range(8))
    assert UpdateRatioCheck()(short) == []
    learns = OutputFacts("other", (8, 10), loss=1.0)
    two = [
        replace(of, outputs=(*of.outputs, replace(learns, loss=0.5**n)))
        for n, of in enumerate(facts)
    ]
    assert UpdateRatioCheck()(record(scalars=few, facts=two)) == []


def test_a_few_kernels_beside_many_other_weights_do_not_stand_for_all() -> None:
    layers = [layer(0), *[layer(i, kernel_shape=None, type="Linear") for i in range(1, 7)]]
    large = {f"update_ratio/conv{i}.weight": [1e-3 if i == 0 else 0.3] * LAST for i in range(7)}
    assert len(UpdateRatioCheck()(record(layers, scalars=large))) == 1
    for count, least in ((4, 1), (3, 0)):
        some = {k: large[k] for k in [*large][:count]}
        assert len(UpdateRatioCheck()(record(layers[:count], scalars=some))) == least


def test_clipped_gradients_are_named_before_the_learning_rate() -> None:
    small, clipped = updates([9e-7] * LAST), {"gradient_norm/total": [1e-6] * LAST}
    (found,) = UpdateRatioCheck()(record(scalars=small | clipped))
    assert found.meaning == (
        "The norm of all gradients is 1e-06 at every logged step: they are clipped to it"
    )
    assert "raise" not in found.advice.lower()
    for others in ([1e-6] * 7 + [1.1e-6], [0.0] * LAST, [1e-6] * 3):
        (found,) = UpdateRatioCheck()(record(scalars=small | {"gradient_norm/total": others}))
        assert found.advice.startswith("Raise the learning rate")


def test_large_updates_along_a_line_search_are_silent() -> None:
    large = updates([0.7] * LAST)
    searched = [TrainingFacts(batch=4, rates=None)] * LAST
    assert UpdateRatioCheck()(record(scalars=large, facts=searched)) == []
    some = [*searched[:1], *[TrainingFacts(batch=4, rates=(0.1, 0.1))] * (LAST - 1)]
    assert len(UpdateRatioCheck()(record(scalars=large, facts=some))) == 1


def test_large_updates_of_a_fresh_head_on_frozen_kernels_are_silent() -> None:
    large = [0.3] * LAST
    assert UpdateRatioCheck()(record(scalars={"update_ratio/head.weight": large})) == []
    both = {"update_ratio/head.weight": large, "update_ratio/conv5.weight": large}
    assert len(UpdateRatioCheck()(record(scalars=both))) == 1
    no_kernels = [layer(i, kernel_shape=None) for i in range(6)]
    head_only = record(no_kernels, scalars={"update_ratio/head.weight": large})
    assert len(UpdateRatioCheck()(head_only)) == 1


def test_the_median_over_the_weights_decides_and_biases_do_not_count() -> None:
    scalars = updates([1e-3] * LAST)
    scalars["update_ratio/conv0.weight"] = [5.0] * LAST
    biases = {f"update_ratio/conv{i}.bias": [9.0] * LAST for i in range(6)}
    linear = [layer(i, kernel_shape=None) for i in range(6)]
    assert UpdateRatioCheck()(record(linear, scalars=biases)) == []
    scalars |= biases
    assert UpdateRatioCheck()(record(scalars=scalars)) == []
    with pytest.raises(NotRecorded, match="update_ratio"):
        UpdateRatioCheck()(record())


LONG = tuple(range(0, 160, 20))
SHORT = tuple(range(0, 48, 6))


def gap(values: list[float], *more: list[float], steps: tuple[int, ...] = LONG) -> list[Finding]:
    scalars = {f"batchnorm_gap/bn{i}": each for i, each in enumerate((values, *more))}
    return list(BatchnormGapCheck()(record(steps=steps, scalars=scalars)))


def test_a_batchnorm_gap_that_lasts() -> None:
    (found,) = gap([1.0] * LAST)
    assert (found.class_, found.layer, found.value, found.since_step) == ("note", "bn0", 1.0, 80)
    assert gap([0.99] * LAST) == []
    assert gap([5.0] * 6 + [0.1] * 2) == []


@pytest.mark.parametrize("check", [BatchnormGapCheck(), BatchnormSmallBatchCheck()])
def test_batchnorm_is_not_recorded_only_where_the_network_has_it(check: Check) -> None:
    assert check(record(facts=[TrainingFacts()] * LAST)) == []
    behind = [layer(0, followed_by=("SyncBatchNorm", "ReLU"))]
    itself = [layer(0, type="BatchNormAct2d")]
    for known in (record(behind), record(itself), RunRecord()):
        with pytest.raises(NotRecorded, match="batchnorm_gap/…, of BatchNorm layers in training"):
            check(known)


def test_running_statistics_that_still_approach_the_batches_are_silent() -> None:
    assert gap([9.0] * LAST, steps=SHORT) == []
    assert gap([9.0] * 7) == []
    assert gap([3.0] * 6 + [2.69] * 2) == []
    assert len(gap([3.0] * 6 + [2.71] * 2)) == 1


def test_the_median_over_the_layers_decides() -> None:
    assert gap([9.0] * LAST, [0.1] * LAST, [0.1] * LAST) == []


def test_hostile_gaps_give_no_error() -> None:
    assert gap([float("inf")] * LAST) == []
    (found,) = gap([1e300] * LAST)
    assert found.value == 1e300


def test_a_running_variance_that_is_still_the_initial_one_at_two_steps() -> None:
    facts = [TrainingFacts()] * 6 + [TrainingFacts(initial_norms=("bn0", "bn1"))] * 2
    (found,) = BatchnormGapCheck()(record(facts=facts))
    assert (found.class_, found.layer, found.value, found.since_step) == ("note", "bn0", 2, 60)
    fits = {"batchnorm_gap/bn0": [0.1] * LAST}
    (found,) = BatchnormGapCheck()(record(facts=facts, scalars=fits))
    assert (found.layer, found.value) == ("bn1", 1)
    for one_only in ([*facts[:-1], TrainingFacts()], [*facts[:5], *facts[:2], facts[-1]]):
        assert BatchnormGapCheck()(record(facts=one_only, scalars=fits)) == []


def test_batchnorm_over_few_images_whose_variance_is_not_that_of_eval_mode() -> None:
    def found(*batches: int | None, gaps: Sequence[float], shape: Any = None) -> list[Finding]:
        facts = [TrainingFacts(batch=batch) for batch in batches]
        series = {f"batchnorm_gap/bn{n}": [5.0] * 4 + [gap] * 4 for n, gap in enumerate(gaps)}
        series["batchnorm_gap/other"] = [math.nan] * 8
        if shape is not None:
            facts = [replace(each, outputs=(OutputFacts("", shape),)) for each in facts]
        return list(BatchnormSmallBatchCheck()(record(facts=facts, scalars=series)))

    unknown = [None] * 4
    assert len(found(*unknown, gaps=[0.6], shape=(2, 1))) == 1
    assert found(*unknown, gaps=[0.6], shape=(3, 1)) == found(*unknown, gaps=[0.6]) == []
    assert (
        found(*unknown, gaps=[0.6], shape=()) == found(3, 3, 3, 3, gaps=[0.6], shape=(2, 1)) == []
    )
    (one,) = found(1, 1, 1, 1, gaps=[0.1, -0.6, 0.1])  # of one image, the largest counts
    assert (one.class_, one.since_step, one.value) == ("note", 0, 0.6)
    assert one.message == (
        "BatchNorm sees 1 image per step, whose variance differs by a factor of 1.8 from its "
        "running variance (the most of 3 layers), since step 0"
    )
    assert len(found(1, 1, 1, 1, gaps=[0.16])) == 1
    assert found(1, 1, 1, 1, gaps=[0.15]) == found(2, 2, 2, 2, gaps=[0.1, 1.0, 0.1]) == []
    (one,) = found(1, 1, 2, 2, gaps=[0.5, 0.5, 0.0])
    assert "2 images per step, whose variance differs by a factor of 1.6" in one.message
    assert "(median of 3 layers)" in one.message
    for silent in ((1, 1, 1, 3), (1, 1, 1), [None] * 8):
        assert found(*silent, gaps=[1.0]) == []
    assert found(1, 1, 1, 1, gaps=[]) == []


def test_batchnorm_over_two_values_leaves_only_which_one_is_larger() -> None:
    def found(*values: float, norm: str = "BatchNormAct2d", batch: int = 2) -> list[Finding]:
        layers = [layer(i, followed_by=(norm, "ReLU") if i == 4 else ()) for i in range(6)]
        columns = {"values": {4: list(values)}}
        scalars = {"batchnorm_gap/bn": [0.1] * LAST}
        facts = [TrainingFacts(batch=batch)] * LAST
        given = record(layers, facts=facts, columns=columns, scalars=scalars)
        return list(BatchnormSmallBatchCheck()(given))

    for batch in (2, 3):
        (one,) = found(*[2.0] * LAST, batch=batch)
        assert (one.class_, one.since_step, one.value) == ("note", 0, 0.1)
        assert one.message == (
            "BatchNorm sees at most 2 values per channel behind `conv4` since step 0"
        )
        assert found(3.0, *[2.0] * (LAST - 1), batch=batch) == []
    assert found(*[2.0] * LAST, norm="LayerNorm") == []
