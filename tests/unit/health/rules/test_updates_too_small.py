"""Optimizer steps that hardly move the weights."""

from __future__ import annotations

from dataclasses import replace

from check_records import LAST, record, updates
from loop_facts import STEPPED

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import UpdatesTooSmallCheck


def test_updates_that_are_too_small_at_every_step() -> None:
    short = {"steps": tuple(range(LAST))}
    (found,) = UpdatesTooSmallCheck()(record(scalars=updates([9.9e-5] * LAST), **short))
    assert (found.class_, found.parameter, found.value) == ("note", "conv0.weight", 9.9e-5)
    assert found.message.startswith("no optimizer step changes a weight by more than 0.0099 %")
    assert found.healthy == "0.01 % to 4 %"
    assert UpdatesTooSmallCheck()(record(scalars=updates([1.01e-4] * LAST), **short)) == []
    assert UpdatesTooSmallCheck()(record(scalars=updates([9.9e-5] * 3))) == []


def test_small_updates_over_50_steps_where_no_loss_is_known() -> None:
    def found(median: float, one: float, *more: float) -> list[Finding]:
        usual = {f"update_ratio/conv{i}.weight": [median] * (LAST - 1) for i in range(6)}
        ratios = {name: [*values, *(more or [median])] for name, values in usual.items()}
        ratios["update_ratio/conv3.weight"] = [one] * LAST
        return list(UpdatesTooSmallCheck()(record(scalars=ratios)))

    (small,) = found(3.9e-4, 9e-4)
    assert small.message == (
        "the median update is 0.039 % of the weights, since step 0; the most in `conv3.weight`"
    )
    assert small.healthy == "0.04 % to 4 %"
    assert found(4.1e-4, 9e-4) == found(3.9e-4, 9e-4, 4.1e-4) == []


def test_no_update_at_all_counts_if_the_rate_is_above_zero() -> None:
    none = updates([0.0] * LAST)
    for rates, count in (((1e-12, 1e-12), 1), ((0.0, 0.0), 0), (None, 0)):
        facts = [TrainingFacts(rates=rates)] * LAST
        assert len(UpdatesTooSmallCheck()(record(scalars=none, facts=facts))) == count
    warm_up = [TrainingFacts(rates=(0.0, 0.0))] * 6 + [TrainingFacts(rates=(0.1, 0.1))] * 2
    assert UpdatesTooSmallCheck()(record(scalars=none, facts=warm_up)) == []


def test_weights_without_a_gradient_are_not_told_to_need_a_higher_rate() -> None:
    facts = [TrainingFacts(rates=(0.1, 0.1))] * LAST
    none = updates([0.0] * LAST)
    zero = {f"gradient_norm/conv{i}.weight": [0.0] * LAST for i in range(6)}
    assert UpdatesTooSmallCheck()(record(scalars={**none, **zero}, facts=facts)) == []
    one = {**zero, "gradient_norm/conv3.weight": [1.0] * LAST}
    (found,) = UpdatesTooSmallCheck()(record(scalars={**none, **one}, facts=facts))
    assert found.parameter == "conv3.weight"


def test_the_loss_that_hardly_falls_is_said_with_its_figures_and_its_output() -> None:
    heads = [OutputFacts(name, (8, 10), loss=loss) for name, loss in (("cls", 2.3), ("obj", 0.7))]
    facts = [replace(STEPPED, outputs=tuple(heads))] * LAST
    (found,) = UpdatesTooSmallCheck()(record(scalars=updates([3.9e-4] * LAST), facts=facts))
    assert "and the loss of `cls` hardly falls (2.3, later 2.3), since step 0" in found.message


def test_small_updates_are_judged_by_the_loss_where_it_is_known() -> None:
    def found(ratio: float, *losses: float | None) -> list[Finding]:
        outputs = [OutputFacts("", (8, 10), kind="cross-entropy", loss=loss) for loss in losses]
        facts = [replace(STEPPED, outputs=(each,)) for each in outputs]
        return list(UpdatesTooSmallCheck()(record(scalars=updates([ratio] * LAST), facts=facts)))

    stays = [2.3, *[2.29] * (LAST - 1)]
    (one,) = found(3.9e-4, *stays)
    assert one.message.startswith(
        "the median update is 0.039 % of the weights, and the loss hardly falls (2.3, later 2.29), "
        "since step 0"
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
    assert UpdatesTooSmallCheck()(record(scalars=most, facts=facts)) == []
    few = {**most, **{f"update_ratio/conv{i}.weight": [1e-4] * LAST for i in range(4)}}
    assert len(UpdatesTooSmallCheck()(record(scalars=few, facts=facts))) == 1
    short = record(scalars=few, facts=facts, steps=range(8))
    assert UpdatesTooSmallCheck()(short) == []
    learns = OutputFacts("other", (8, 10), loss=1.0)
    two = [
        replace(of, outputs=(*of.outputs, replace(learns, loss=0.5**n)))
        for n, of in enumerate(facts)
    ]
    assert UpdatesTooSmallCheck()(record(scalars=few, facts=two)) == []


def test_clipped_gradients_are_named_before_the_learning_rate() -> None:
    small, clipped = updates([9e-7] * LAST), {"gradient_norm/total": [1e-6] * LAST}
    (found,) = UpdatesTooSmallCheck()(record(scalars=small | clipped))
    assert found.meaning == (
        "The norm of all gradients is 1e-06 at every logged step: they are clipped to it"
    )
    assert "raise" not in found.advice.lower()
    for others in ([1e-6] * 7 + [1.1e-6], [0.0] * LAST, [1e-6] * 3):
        (found,) = UpdatesTooSmallCheck()(record(scalars=small | {"gradient_norm/total": others}))
        assert found.advice.startswith("Raise the learning rate")


def test_large_weights_are_named_before_the_learning_rate() -> None:
    for std, advice in ((2.0, "Raise the learning rate"), (2.1, "Use the layers' own init")):
        columns = {"std": {0: [std] * LAST}}
        (found,) = UpdatesTooSmallCheck()(record(scalars=updates([9e-7] * LAST), columns=columns))
        assert found.advice.startswith(advice)
    assert found.meaning.endswith("the first layer's output has a standard deviation of 2.1")
