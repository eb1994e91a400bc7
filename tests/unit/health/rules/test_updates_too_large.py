"""Optimizer steps that replace the weights."""

from __future__ import annotations

import math
from dataclasses import replace

from check_records import LAST, from_step, layer, record, updates
from loop_facts import STEPPED
from output_facts import OUTPUT

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import UpdatesTooLargeCheck


def test_weights_that_keep_moving_by_a_large_share_of_their_norm() -> None:
    ratios = [1e-3, 1e-3, 0.26, 0.65, 0.4, 1e-3, 1e-3, 1e-3]
    (found,) = UpdatesTooLargeCheck()(record(scalars=updates(ratios)))
    assert (found.since_step, found.value) == (20, 0.26)
    assert found.message == (
        "the learning rate looks too high: step 20 moves a weight by 26 % (median over the "
        "weights), `conv0.weight` by 26 %; 3 logged steps are about as large"
    )
    assert found.meaning.startswith("Steps of this size may undo what")
    with_head = {**updates(ratios), "update_ratio/head.weight": ratios}
    (found,) = UpdatesTooLargeCheck()(record(scalars=with_head))
    assert ": step 20 moves a weight by 26 % (median over the convolutions)," in found.message
    settles = [0.21, 0.22, 0.2, *[1e-3] * 5]
    assert UpdatesTooLargeCheck()(record(scalars=updates(settles))) == []
    interrupted = [0.3, 0.3, 0.1] * 2 + [0.3, 0.3]
    assert UpdatesTooLargeCheck()(record(scalars=updates(interrupted))) == []


def test_ratios_of_weights_that_were_read_in_part_bear_a_sign() -> None:
    ratios = updates([0.3] * LAST)
    facts = replace(STEPPED, estimated_updates=("conv1.weight",))
    (found,) = UpdatesTooLargeCheck()(record(scalars=ratios, facts=[facts] * LAST))
    assert (
        ": step 0 moves a weight by ≈ 30 % (median over the weights), `conv0.weight` by 30 %;"
        in found.message
    )
    of_one = {"update_ratio/conv1.weight": [0.3] * LAST}
    for known in (facts, replace(STEPPED, left_out={"estimated_updates": 1})):
        (found,) = UpdatesTooLargeCheck()(record(scalars=of_one, facts=[known] * LAST))
        assert "`conv1.weight` by ≈ 30 %" in found.message


def test_first_steps_that_replace_the_weights_are_silent_if_the_run_settles() -> None:
    assert UpdatesTooLargeCheck()(record(scalars=updates([4.1, 0.61, *[1e-3] * 6]))) == []
    for ratios, count in (([1.1, 0.9, 0.5, 0.19] * 2, 0), ([1e-3] * 4 + [0.3] * 4, 1)):
        one = record(scalars={"update_ratio/conv0.weight": ratios})
        assert len(UpdatesTooLargeCheck()(one)) == count


def test_weights_that_may_start_near_0_are_said_to_if_the_loss_falls() -> None:
    replaced = "the first steps replace the weights: step 0 moves "
    high = "the learning rate looks too high: step 0 moves "
    for losses, start, first, rest in (
        ([2.3, *[1.0] * (LAST - 1)], replaced, "The first steps replace the", "or warm it up; do"),
        ([2.3] * LAST, high, "Steps of this size may undo", "or the weight decay"),
    ):
        facts = [replace(STEPPED, outputs=(replace(OUTPUT, loss=loss),)) for loss in losses]
        given = record(scalars=updates([4.1, 0.3, 0.3, *[1e-3] * 5]), facts=facts)
        (found,) = UpdatesTooLargeCheck()(given)
        assert found.message.startswith(start)
        assert found.meaning.startswith(first)
        assert found.advice.startswith("Lower the learning rate")
        assert rest in found.advice


def test_all_weights_of_an_lstm_count() -> None:
    names = ("weight_ih_l0", "weight_hh_l0")
    of = {f"update_ratio/body.{name}": [0.3] * LAST for name in names}
    still = {
        "update_ratio/last.weight": [1e-3] * LAST,
        "update_ratio/body.bias_ih_l0": [0.0] * LAST,
    }
    linear = [layer(0, kernel_shape=None, type="Linear")]
    (found,) = UpdatesTooLargeCheck()(record(linear, scalars={**of, **still}))
    assert (found.value, found.parameter) == (0.3, "body.weight_ih_l0")


def test_one_large_update_before_activations_explode_is_their_cause() -> None:
    explodes = {"maximum": {2: from_step(4, 1000.0, 1.0)}}

    def found(*ratios: float) -> list[Finding]:
        every = [*ratios, *[1e-3] * (LAST - len(ratios))]
        return list(UpdatesTooLargeCheck()(record(columns=explodes, scalars=updates(every))))

    for large in ([0.3], [1e-3, 0.09, 0.21], [1e-3] * 3 + [0.3]):
        (one,) = found(*large)
        assert (one.since_step, one.value) == (10 * (len(large) - 1), large[-1])
    assert found(0.19) == found(*[1e-3] * 4, 0.3) == []


def test_one_large_update_before_channels_die_is_their_cause() -> None:
    def found(ratio: float, since: int) -> list[Finding]:
        dies = {name: {2: from_step(since, 0.9, 0.0)} for name in ("dead", "dead_lasting")}
        scalars = updates([ratio, *[1e-3] * (LAST - 1)])
        return list(UpdatesTooLargeCheck()(record(columns=dies, scalars=scalars)))

    (one,) = found(0.21, 1)
    assert (one.since_step, one.value) == (0, 0.21)
    assert found(0.19, 1) == found(0.21, 0) == []


def test_one_large_update_before_values_are_not_finite_is_their_cause() -> None:
    lost = {"nonfinite": {2: from_step(2, 0.5, 0.0)}}

    def found(*ratios: float) -> list[Finding]:
        every = [*ratios, *[math.nan] * (LAST - len(ratios))]
        return list(UpdatesTooLargeCheck()(record(columns=lost, scalars=updates(every))))

    (one,) = found(1e-3, 0.21)
    assert (one.since_step, one.value) == (10, 0.21)
    assert found(1e-3, 0.19) == found(1e-3, 1e-3, 0.21) == []


def test_one_large_update_at_the_start_of_a_run_that_never_learns() -> None:
    def found(loss: float, *ratios: float, spread: float = 1.0) -> list[Finding]:
        every = [*ratios, *[1e-3] * (LAST - len(ratios))]
        known = OutputFacts("", (8, 10), kind="cross-entropy", spread=spread, low=-1.0, high=1.0)
        losses = [2.3, 1.2, 3.0, *[loss] * (LAST - 3)] if loss else [None] * LAST
        facts = [replace(STEPPED, outputs=(replace(known, loss=of),)) for of in losses]
        return list(UpdatesTooLargeCheck()(record(scalars=updates(every), facts=facts)))

    (one,) = found(2.19, 1e-3, 0.21, 0.05)
    assert (one.since_step, one.value) == (10, 0.21)
    assert found(2.19, 0.19) == found(2.17, 0.21) == found(2.19, *[1e-3] * 4, 0.21) == []
    assert len(found(0.0, 0.21, spread=0.0)) == 1
    assert found(0.0, 0.21) == found(0.0, 0.19, spread=0.0) == []


def test_a_few_kernels_beside_many_other_weights_do_not_stand_for_all() -> None:
    layers = [layer(0), *[layer(i, kernel_shape=None, type="Linear") for i in range(1, 7)]]
    large = {f"update_ratio/conv{i}.weight": [1e-3 if i == 0 else 0.3] * LAST for i in range(7)}
    assert len(UpdatesTooLargeCheck()(record(layers, scalars=large))) == 1
    for count, least in ((4, 1), (3, 0)):
        some = {k: large[k] for k in [*large][:count]}
        assert len(UpdatesTooLargeCheck()(record(layers[:count], scalars=some))) == least


def test_large_updates_along_a_line_search_are_silent() -> None:
    large = updates([0.7] * LAST)
    searched = [TrainingFacts(batch=4, rates=None)] * LAST
    assert UpdatesTooLargeCheck()(record(scalars=large, facts=searched)) == []
    some = [*searched[:1], *[TrainingFacts(batch=4, rates=(0.1, 0.1))] * (LAST - 1)]
    assert len(UpdatesTooLargeCheck()(record(scalars=large, facts=some))) == 1


def test_large_updates_of_a_fresh_head_on_frozen_kernels_are_silent() -> None:
    large = [0.3] * LAST
    assert UpdatesTooLargeCheck()(record(scalars={"update_ratio/head.weight": large})) == []
    both = {"update_ratio/head.weight": large, "update_ratio/conv5.weight": large}
    assert len(UpdatesTooLargeCheck()(record(scalars=both))) == 1
    no_kernels = [layer(i, kernel_shape=None) for i in range(6)]
    head_only = record(no_kernels, scalars={"update_ratio/head.weight": large})
    assert len(UpdatesTooLargeCheck()(head_only)) == 1


def test_weights_that_vanish_under_weight_decay_are_named_as_that() -> None:
    def found(left: list[float | None], ratios: list[float], loss: float = 2.3) -> list[Finding]:
        outputs = [replace(OUTPUT, loss=value) for value in (2.3, *[loss] * (LAST - 1))]
        facts = [
            replace(STEPPED, outputs=(output,), weight_decays=(0.0, 0.5), weights_left=share)
            for output, share in zip(outputs, left, strict=True)
        ]
        return list(UpdatesTooLargeCheck()(record(scalars=updates(ratios), facts=facts)))

    steady = [0.04] * LAST
    halved = [1.0, 0.9, 0.51, 0.5, 0.2, 0.1, 0.05, 0.023]
    (one,) = found(halved, steady)
    assert (one.since_step, one.value, one.cure) == (30, 0.023, "")
    assert one.message == (
        "a weight decay of 0.5 has left 2.3 % of the weights' first norm (median), and no more "
        "than half of it since step 30"
    )
    assert found(halved, steady, loss=1.0) == []  # it learns
    assert found([*halved[:-1], 0.51], steady) == found([None] * LAST, steady) == []
    (one,) = found(halved, [0.65, 0.65, *steady[2:]])  # the large steps were first
    assert (one.since_step, one.value) == (0, 0.65)
    assert one.message.endswith(
        "a weight decay of 0.5 has left 2.3 % of the weights' first norm (median)"
    )
    (one,) = found(halved, [*steady[:5], *[0.3] * 3])
    assert one.since_step == 30
