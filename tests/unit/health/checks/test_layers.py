"""Checks of the layers: on both sides of their thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from check_records import STEPS, from_step, layer, record

from fmapboard.checks import Check, Finding, NotRecorded, RunRecord, run_checks
from fmapboard.formats.overview import StepSource
from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.checks import layers
from fmapboard.health.checks.layers import (
    CopiedChannelsCheck,
    DeadCheck,
    DropoutHighCheck,
    ExplodingCheck,
    SaturatedCheck,
    UnevenUpsamplingCheck,
    VanishingCheck,
)
from fmapboard.health.checks.loop import ConstantImagesCheck


def test_dead_channels_from_72_percent_of_a_layer_on() -> None:
    dead = from_step(2, 0.72, 0.0)
    lasting = from_step(5, 0.72, 0.0)
    (found,) = DeadCheck()(record(columns={"dead": {2: dead}, "dead_lasting": {2: lasting}}))
    assert (found.class_, found.layer, found.since_step, found.value) == (
        "note",
        "conv2",
        20,
        pytest.approx(0.72),
    )
    fewer = {"dead": {2: from_step(2, 0.71, 0.0)}, "dead_lasting": {2: from_step(5, 0.71, 0.0)}}
    assert DeadCheck()(record(columns=fewer)) == []
    fewer["dead"][2] = [0.3] * 7 + [0.8]  # at the last step only
    assert DeadCheck()(record(columns=fewer)) == []
    fewer["dead"][2] = [0.3] * 6 + [0.8] * 2
    assert len(DeadCheck()(record(columns=fewer))) == 1


def test_many_dead_layers_are_counted_in_the_last_of_five_findings() -> None:
    for count, more in ((5, ""), (8, "; the same in 3 further layers")):
        dead = {index: from_step(2, 0.8, 0.0) for index in range(count)}
        layers = [layer(index) for index in range(9)]
        columns = {"dead": {**dead, 8: [0.8] * len(STEPS)}, "dead_lasting": {**dead, 8: [0.8] * 8}}
        found = list(DeadCheck()(record(layers, columns=columns)))
        assert [one.message.partition("since step 20")[2] for one in found] == [""] * 4 + [more]


def test_more_channels_may_be_dead_in_a_network_that_learns() -> None:
    def found(share: float, *losses: float | None, held: HeldLoss | None = None) -> list[Finding]:
        columns = {name: {2: from_step(4, share, 0.0)} for name in ("dead", "dead_lasting")}
        outputs = [OutputFacts("", (8, 10), loss=each) for each in losses]
        outputs[1] = replace(outputs[1], held=held)
        facts = [TrainingFacts(outputs=(each,)) for each in outputs]
        return list(DeadCheck()(record(columns=columns, facts=facts)))

    falls = [2.3, *[1.7] * 7]
    assert found(0.89, *falls) == []
    assert len(found(0.9, *falls)) == len(found(0.73, *[2.3] * 7, 1.85)) == 1
    later = [None, *[1.7] * 7]
    assert found(0.89, *later, held=HeldLoss(0, 2.3, None)) == []
    assert len(found(0.89, *later)) == len(found(0.89, *later, held=HeldLoss(0, None, 0.1))) == 1
    assert len(found(0.73, *[None] * 5, 2.3, 1.0, 1.0)) == 1  # known at three steps only


def test_an_output_that_is_0_for_all_inputs_is_dead_and_not_merely_at_an_end() -> None:
    off = OutputFacts("b", (16, 3), predictions=1, pulled=1.0)
    on = replace(off, high=0.5)

    def found(check: DeadCheck | SaturatedCheck, *every: OutputFacts) -> list[Finding]:
        return list(check(record(facts=[TrainingFacts(outputs=(each,)) for each in every])))

    (one,) = found(DeadCheck(), *[on] * 4, *[off] * 4)
    assert (one.class_, one.since_step, one.value) == ("note", 40, 1.0)
    assert one.message == "the output `b` is 0 for all inputs since step 40"
    assert found(DeadCheck(), *[on] * 5, *[off] * 3) == found(SaturatedCheck(), *[off] * 8) == []
    assert found(DeadCheck(), *[replace(off, shape=())] * 8) == []  # a loss
    assert len(found(SaturatedCheck(), *[on] * 8)) == 1


def test_more_channels_may_be_dead_from_the_first_step_on() -> None:
    for share, count in ((0.89, 0), (0.9, 1)):
        columns = {"dead": {2: [share] * len(STEPS)}, "dead_lasting": {2: [share] * len(STEPS)}}
        assert len(DeadCheck()(record(columns=columns))) == count


def test_channels_that_are_dead_from_the_start_are_not_blamed_on_the_learning_rate() -> None:
    dead = {"dead": {2: [0.9] * len(STEPS)}, "dead_lasting": {2: [0.9] * len(STEPS)}}
    (found,) = DeadCheck()(record(columns=dead))
    assert "so before this run" in found.meaning
    assert "learning rate" not in found.advice
    later = {"dead": {2: from_step(2, 0.9, 0.0)}, "dead_lasting": {2: from_step(5, 0.9, 0.0)}}
    (found,) = DeadCheck()(record(columns=later))
    assert "Lower the learning rate" in found.advice
    # Whether they stay so is not known: channels of real runs come back.
    assert found.meaning.startswith(
        "These channels are 0 for the whole batch at each of these steps, so they pass no gradient "
        "there: "
    )


def test_zero_weights_and_a_zero_scale_are_named_before_biases() -> None:
    dead = {"dead": {2: [1.0] * len(STEPS)}, "dead_lasting": {2: [1.0] * len(STEPS)}}
    layers = [layer(i) for i in range(6)]
    (found,) = DeadCheck()(record(layers, columns=dead))
    assert "its biases start far below zero" in found.meaning
    layers[2] = layer(2, followed_by=("BatchNorm2d",))
    (found,) = DeadCheck()(record(layers, columns=dead))
    assert "the scale of the normalization behind the layer is 0" in found.meaning
    constant = {**dead, "constant": {2: [1.0] * len(STEPS)}}
    (found,) = DeadCheck()(record(layers, columns=constant))
    assert "the layer's weights are 0" in found.meaning


def test_layers_behind_one_that_is_dead_as_a_whole_are_counted_with_it() -> None:
    dead = {index: [1.0] * len(STEPS) for index in range(2, 6)}
    rest = {index: [1.0] * len(STEPS) for index in range(3, 6)}
    (found,) = DeadCheck()(record(columns={"dead": dead, "dead_lasting": dead, "constant": rest}))
    assert found.layer == "conv2"
    assert found.message.endswith("since step 0; the same in 3 further layers")
    most = {**dead, 2: [0.99] * len(STEPS), 4: [0.95] * len(STEPS)}
    found = DeadCheck()(record(columns={"dead": most, "dead_lasting": most}))
    assert [one.layer for one in found] == ["conv2", "conv3", "conv4"]


def test_channels_that_are_off_for_each_of_several_images_are_not_blamed_on_training() -> None:
    dead = {"dead": {2: [0.9] * len(STEPS)}, "dead_lasting": {2: [0.9] * len(STEPS)}}
    of = record(columns=dead)
    sources = {step: StepSource("image", f"{step}.png") for step in STEPS}
    of = replace(of, health=replace(of.layers(), sources=sources, since={}))
    (found,) = DeadCheck()(of)
    assert found.message == (
        "90 % of 64 channels off in `conv2` (after `relu2`) for images 0 to 70"
    )
    assert (found.healthy, found.advice) == ("", "")
    assert found.meaning == (
        "These channels are 0 everywhere in each of these images; others may excite them"
    )


def test_dead_channels_behind_constant_images_are_left_to_that_finding() -> None:
    dead = {"dead": {2: [0.9] * len(STEPS)}, "dead_lasting": {2: [0.9] * len(STEPS)}}
    black = TrainingFacts(batch=2, constant_images=(0, 1))
    one = TrainingFacts(batch=2, constant_images=(0,))

    def kinds(facts: TrainingFacts, *checks: Check) -> list[str]:
        of_black = record(columns=dead, facts=[facts] * len(STEPS))
        return [found.kind for found in run_checks(of_black, [DeadCheck(), *checks]).findings]

    assert kinds(black, ConstantImagesCheck()) == ["constant_images"]
    assert kinds(one, ConstantImagesCheck()) == ["dead"]
    assert kinds(black) == ["dead"]  # that finding is switched off


def test_dead_channels_must_last_and_be_of_large_maps() -> None:
    dead = {2: from_step(2, 0.9, 0.0)}
    assert DeadCheck()(record(columns={"dead": dead})) == []  # other channels at each step
    columns = {"dead": dead, "dead_lasting": {2: from_step(5, 0.9, 0.0)}}
    small = {"values": {2: [499.0] * len(STEPS)}}
    assert DeadCheck()(record(columns={**columns, **small})) == []
    linear = [layer(i, type="Linear") for i in range(6)]
    assert len(DeadCheck()(record(linear, columns={**columns, **small}))) == 1
    small["values"][2] = [8.0] * len(STEPS)  # 461 of dead channels
    assert DeadCheck()(record(linear, columns={**columns, **small})) == []
    recovered = {"dead": {2: [0.9] * 6 + [0.0] * 2}, "dead_lasting": {2: [0.9] * 6 + [0.0] * 2}}
    assert DeadCheck()(record(columns=recovered)) == []


def statistics(*rows: tuple[float, ...]) -> dict[str, list[float]]:
    names = ("minimum", "maximum", "mean", "std")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_copied_channels_from_a_quarter_of_the_layer_on() -> None:
    def channels(copies: int) -> dict[str, list[float]]:
        rows = [(-1.0, 1.0, v / 16, 0.5) for v in range(16)]
        return statistics(*[rows[0]] * copies, *rows[copies:])

    (found,) = CopiedChannelsCheck()(record(first={"conv1": channels(4)}))
    assert (found.layer, found.since_step, found.value) == ("conv1", 0, 0.25)
    assert CopiedChannelsCheck()(record(first={"conv1": channels(3)})) == []


def test_layers_that_are_all_constant_have_equal_weights() -> None:
    constant = statistics(*[(0.1 * v, 0.1 * v, 0.1 * v, 0.0) for v in range(16)])
    varied = statistics(*[(-1.0, 1.0, v / 16, 0.5) for v in range(16)])
    (found,) = CopiedChannelsCheck()(record(first={"conv1": constant, "conv2": constant}))
    assert (found.layer, found.value) == ("conv1", 1.0)
    for few in ({"conv1": constant}, {"conv1": constant, "conv2": varied}):
        assert CopiedChannelsCheck()(record(first=few)) == []


def test_channels_behind_a_single_one_are_no_copies() -> None:
    rows = statistics(*[(-1.0, 1.0, 0.0, 0.5)] * 16)
    for place, found in ((0, 0), (1, 0), (2, 1)):
        layers = [layer(i, channels=1 if i == place else 64) for i in range(6)]
        assert len(CopiedChannelsCheck()(record(layers, first={"conv1": rows}))) == found


@pytest.mark.parametrize(("kind", "count"), [("LayerNorm", 0), ("Linear", 1)])
def test_copies_behind_a_normalization_are_not_due_to_its_weights(kind: str, count: int) -> None:
    rows = statistics(*[(-1.0, 1.0, 0.0, 0.5)] * 16)
    layers = [layer(i, type=kind, kernel_shape=None) for i in range(6)]
    assert len(CopiedChannelsCheck()(record(layers, first={"conv1": rows}))) == count


def test_channels_that_are_all_there_twice_are_copies() -> None:
    rows = [(-1.0, 1.0, v / 16, 0.5) for v in range(8)]
    (found,) = CopiedChannelsCheck()(record(first={"conv1": statistics(*rows, *rows)}))
    assert found.value == 1.0


@pytest.mark.parametrize("size", [4, 9, 16])
def test_groups_of_equal_neighbours_are_an_initialization_for_pixel_shuffle(size: int) -> None:
    rows = [(-1.0, 1.0, v / 16, 0.5) for v in range(3)]
    grouped = [row for row in rows for _ in range(size)]
    check = CopiedChannelsCheck()
    assert check(record(first={"conv1": statistics(*grouped)})) == []
    assert len(check(record(first={"conv1": statistics(*grouped[1:])}))) == 1
    assert len(check(record(first={"conv1": statistics(*grouped[:size])}))) == 1


def test_copies_among_8192_channels_are_found_without_a_table_of_all_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[int] = []
    same = layers._same

    def counted(one: Any, other: Any) -> Any:
        compared.append(len(one))
        return same(one, other)

    monkeypatch.setattr(layers, "_same", counted)
    rng = np.random.default_rng(0)
    sizes = rng.uniform(1.0, 1.001, 8192)  # no two of them can be told apart by their range
    mean, std = rng.random((2, 8192))
    rows = {"minimum": np.zeros(8192), "maximum": sizes, "mean": mean, "std": std}
    assert CopiedChannelsCheck()(record(first={"conv1": rows})) == []
    copied = {name: np.concatenate([of[:4096], of[:4096]]) for name, of in rows.items()}
    (found,) = CopiedChannelsCheck()(record(first={"conv1": copied}))
    assert found.value == 1.0
    assert max(compared) == 8192
    assert len(compared) <= 2 * (64 + 3)  # twice: neighbours, and groups for PixelShuffle


def test_dead_channels_that_became_nonfinite_are_left_to_that_finding() -> None:
    dead = {2: [0.0, *[0.8] * 5, 0.0, 0.0]}
    columns = {"dead": dead, "dead_lasting": dead, "nonfinite": {2: [0.0] * 6 + [1.0] * 2}}
    assert DeadCheck()(record(columns=columns)) == []


def test_copies_may_differ_by_an_offset_but_not_by_a_factor() -> None:
    shifted = statistics(*((-1.0 + i, 1.0 + i, 0.25 + i, 0.5) for i in range(8)))
    assert len(CopiedChannelsCheck()(record(first={"conv1": shifted}))) == 1
    scaled = statistics(*((-f, f, 0.25 * f, 0.5 * f) for f in map(float, range(1, 9))))
    assert CopiedChannelsCheck()(record(first={"conv1": scaled})) == []


def test_dead_channels_are_told_since_there_were_so_many() -> None:
    dead = {2: [0.0, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8]}
    (found,) = DeadCheck()(record(columns={"dead": dead, "dead_lasting": dead}))
    assert found.since_step == 40
    assert found.message == "80 % of 64 channels dead in `conv2` (after `relu2`) since step 40"


def test_calls_are_named_as_in_the_tab() -> None:
    layers = [
        replace(layer(0), activation="act"),
        replace(layer(1), label="act", layer="act"),
        replace(layer(2), activation="act.call2"),
        replace(layer(3), label="act.call2", layer="act", call=2),
    ]
    dead = {2: from_step(1, 0.8, 0.0)}
    (found,) = DeadCheck()(record(layers, columns={"dead": dead, "dead_lasting": dead}))
    assert "dead in `conv2` (after `act`, call 2) since" in found.message
    copies = {"act.call2": statistics(*[(-1.0, 1.0, 0.25, 0.5)] * 8)}
    (found,) = CopiedChannelsCheck()(record(layers, first=copies))
    assert "drawn channels in `act` (call 2, behind `conv2`) have a copy" in found.message
    assert found.layer == "act.call2"


def test_constant_channels_and_small_layers_have_no_copies() -> None:
    constant = statistics(*[(0.0, 0.0, 0.0, 0.0)] * 16)
    assert CopiedChannelsCheck()(record(first={"conv1": constant})) == []
    random = [(-1.0, 1.0, float(v) / 9, 0.5) for v in range(4)]
    some = statistics(*[(3.0, 3.0, 3.0, 0.0)] * 12, *random)
    assert CopiedChannelsCheck()(record(first={"conv1": some})) == []
    three = statistics(*[(-1.0, 1.0, 0.0, 0.5)] * 3)
    assert CopiedChannelsCheck()(record(first={"conv1": three})) == []
    with pytest.raises(NotRecorded, match="fmapboard_first"):
        CopiedChannelsCheck()(record())


def saturated(
    deviation: list[float],
    followed_by: tuple[str, ...] = ("Tanh",),
    at: int = 1,
    **more: list[float],
) -> list[Finding]:
    layers = [layer(i) for i in range(6)]
    layers[at] = layer(at, followed_by=followed_by)
    columns = {"std": {at: deviation}, **{name: {at: of} for name, of in more.items()}}
    return list(SaturatedCheck()(record(layers, columns=columns)))


def test_tanh_outputs_at_their_ends() -> None:
    (found,) = saturated([4.0] * 8)
    assert (found.class_, found.layer, found.since_step) == ("note", "conv1", 0)
    assert found.value == pytest.approx(0.508, abs=1e-3)
    assert found.message == (
        "about 51 % of the outputs of the Tanh behind `conv1` are beyond ±0.99 since step 0"
    )
    assert saturated([3.9] * 8) == []
    (found,) = saturated(from_step(4, 9.0, 1.0))
    assert found.since_step == 40
    assert saturated(from_step(5, 9.0, 1.0)) == []
    assert len(saturated([1.0] * 8, mean=[2.7] * 8)) == 1
    assert len(saturated([0.0] * 8, mean=[-2.7] * 8)) == 1


def test_a_normalized_layer_and_the_answer_are_not_saturated() -> None:
    assert saturated([9.0] * 8, ("BatchNorm2d", "Tanh")) == []
    assert saturated([9.0] * 8, at=5) == []
    assert saturated([9.0] * 8, ()) == []
    assert saturated([float("nan")] * 8) == []


def test_sigmoids_that_saturate_later_may_be_gates() -> None:
    (found,) = saturated([9.0] * 8, ("Sigmoid",))
    assert "of the Sigmoid behind `conv1` are beyond 0.01 and 0.99" in found.message
    assert saturated([6.7] * 8, ("Sigmoid",)) == []
    assert saturated(from_step(1, 9.0, 1.0), ("Sigmoid",)) == []


def test_an_output_that_ends_up_at_one_end_of_a_tanh() -> None:
    def found(*every: tuple[float, float], **known: Any) -> list[Finding]:
        outputs = [OutputFacts("", (16, 3), low=low, high=high) for low, high in every]
        facts = [TrainingFacts(outputs=(replace(each, **known),)) for each in outputs]
        return list(SaturatedCheck()(record(facts=facts)))

    free, end = (-0.5, 0.7), (0.92, 1.0)
    (one,) = found(*[free] * 4, *[end] * 4)
    assert (one.since_step, one.value, one.layer) == (40, 1.0, None)
    assert len(found(*[free] * 4, *[(-1.0, -0.9)] * 4)) == 1
    assert found(*[free] * 5, *[end] * 3) == found(*[free] * 4, *[(0.89, 1.0)] * 4) == []
    assert found((-0.5, 1.1), *[end] * 7) == []  # no tanh is there
    assert found(*[end] * 8, shape=(16, 1, 4, 4)) == []  # a critic
    assert len(found(*[end] * 8, shape=(16, 1, 1000, 1000))) == 1  # as large as the images
    assert found(*[end] * 8, shape=(16, 1), away=0.49) == []
    assert len(found(*[end] * 8, shape=(16, 1), away=0.5)) == 1  # targets beyond all outputs
    near = (0.1, 0.9)
    (one,) = found(*[near] * 8, away=0.5)
    assert "goes to an end of its range, from 0.1 to 0.9 since step 0" in one.message
    assert found(*[near] * 8, away=0.49) == found(*[(0.1, 0.89)] * 8, away=0.5) == []


def test_an_output_that_the_loss_pulls_beyond_its_end() -> None:
    def found(*shares: float, **known: Any) -> list[Finding]:
        outputs = [OutputFacts("", (16, 1), low=0.0, high=0.8, pulled=of) for of in shares]
        facts = [TrainingFacts(outputs=(replace(each, **known),)) for each in outputs]
        return list(SaturatedCheck()(record(facts=facts, steps=range(0, 10 * len(facts), 10))))

    (one,) = found(*[0.0] * 4, *[0.3] * 4)
    assert (one.since_step, one.value, one.layer) == (40, 0.3, None)
    assert one.message == (
        "30 % of the values of the output are at one end of its range, and the loss pulls them "
        "further, from 0 to 0.8 since step 40"
    )
    assert found(*[1.0] * 4)[0].message.startswith("100 % of the values")
    (one,) = found(*[0.0] * 4, 0.02, 0.1, 0.08, 0.02)
    assert (one.since_step, one.value) == (50, 0.05)
    assert found(*[0.3] * 5, *[0.04] * 3) == found(*[0.0] * 6, *[0.09] * 2) == []
    assert found(*[0.3] * 3) == found(*[0.3] * 8, rows_are="probabilities") == []
    assert len(found(*[0.0] * 6, *[0.3] * 3, *[0.0] * 3)) == 1  # of the later half
    for low, high, is_end in ((-0.995, 0.3, 1), (0.5, 1.0, 1), (0.02, 0.3, 0), (1.5, 2.0, 0)):
        assert len(found(*[0.3] * 8, low=low, high=high)) == is_end


def test_dropout_that_leaves_hardly_anything() -> None:
    high = TrainingFacts(dropouts={"drop": 0.9, "other": 0.5})
    (found,) = DropoutHighCheck()(record(facts=[TrainingFacts(), high, high]))
    assert (found.layer, found.since_step, found.value) == ("drop", 10, 0.9)
    assert found.message == "dropout sets 90 % of the values to 0 since step 10: `drop`"
    (found,) = DropoutHighCheck()(record(facts=[TrainingFacts(dropouts={"a": 0.8, "b": 0.8})] * 2))
    assert found.message == "dropout sets 80 % of the values to 0 since step 0: `a`, `b`"
    some, one = TrainingFacts(dropouts={"a": 0.79, "b": 0.8}), TrainingFacts(dropouts={"a": 0.89})
    for facts in ([some] * 8, [one] * 8, [high], [TrainingFacts(), high], [high, TrainingFacts()]):
        assert list(DropoutHighCheck()(record(facts=facts))) == []


def upsampling(kernel: tuple[int, ...], stride: tuple[int, ...] | None) -> RunRecord:
    shape = (8, 8, *kernel)
    up = layer(1, type="ConvTranspose2d", kernel_shape=shape, transposed_stride=stride)
    return record([layer(0), up])


@pytest.mark.parametrize(
    ("kernel", "stride", "is_found"),
    [
        ((3, 3), (2, 2), True),
        ((4, 4), (2, 2), False),
        ((4, 3), (2, 2), True),
        ((2, 2), (2, 2), False),
        ((3, 3), (1, 1), False),
        ((1, 1), (2, 2), True),
        ((3, 3), None, False),
        ((3, 3), (0, 0), False),
        ((3, 3), (2,), False),
    ],
)
def test_a_kernel_that_is_no_multiple_of_its_stride(
    kernel: tuple[int, ...], stride: tuple[int, ...] | None, is_found: bool
) -> None:
    found = UnevenUpsamplingCheck()(upsampling(kernel, stride))
    assert [one.layer for one in found] == ["conv1"] * is_found


def test_a_record_without_overview_is_not_recorded() -> None:
    for check in (DeadCheck(), UnevenUpsamplingCheck()):
        with pytest.raises(NotRecorded, match="fmapboard_overview"):
            check(RunRecord())


LAST = len(STEPS)


def gradients(first: float | list[float], layers: int = 6) -> dict[str, list[float]]:
    """Gradient norms of 1 in all layers but the first two."""
    values = first if isinstance(first, list) else [first] * LAST
    norms = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, layers)}
    return {**norms, **{f"gradient_norm/conv{i}.weight": values for i in range(2)}}


def test_gradients_that_vanish_towards_the_input() -> None:
    (found,) = VanishingCheck()(record(scalars=gradients(9e-5)))
    assert (found.kind, found.class_, found.layer) == ("vanishing", "note", "conv0")
    assert found.value == pytest.approx(9e-5)
    assert found.since_step == 0
    assert VanishingCheck()(record(scalars=gradients(1.1e-4))) == []


def test_gradients_of_exactly_0_are_said_to_be_cut_off() -> None:
    (found,) = VanishingCheck()(record(scalars=gradients(0.0)))
    assert "from `conv0` on, are exactly 0 since step 0" in found.message
    assert found.meaning.startswith("No gradient reaches the first layers")
    (found,) = VanishingCheck()(record(scalars=gradients([1e-9] + [0.0] * (LAST - 1))))
    assert found.meaning.startswith("The first layers hardly learn")


def test_one_of_the_first_two_layers_may_have_small_gradients() -> None:
    scalars = {**gradients(1e-6), "gradient_norm/conv1.weight": [0.1] * LAST}
    assert VanishingCheck()(record(scalars=scalars)) == []


def test_gradients_per_weight_are_compared() -> None:
    wide = [layer(i, kernel_shape=(64, 64, 3, 3) if i < 2 else (2, 20, 1, 1)) for i in range(6)]
    root = (64 * 64 * 9 / 40) ** 0.5
    (found,) = VanishingCheck()(record(wide, scalars=gradients(9e-5 * root)))
    assert found.value == pytest.approx(9e-5)
    assert VanishingCheck()(record(wide, scalars=gradients(1.1e-4 * root))) == []


def test_norms_of_linear_layers_are_compared_where_there_are_no_others() -> None:
    linear = [layer(i, kernel_shape=None, type="Linear") for i in range(6)]
    two = gradients(9e-5)  # they may be queries and keys, whose gradients are small at first
    assert VanishingCheck()(record(linear, scalars=two)) == []
    three = {**two, "gradient_norm/conv2.weight": [9e-5] * LAST}
    (found,) = VanishingCheck()(record(linear, scalars=three))
    assert found.value == pytest.approx(9e-5)
    mixed = [layer(9), *linear]
    assert VanishingCheck()(record(mixed, scalars=three)) == []


def test_gradients_that_are_small_at_the_end_only_are_silent() -> None:
    assert VanishingCheck()(record(scalars=gradients(from_step(1, 1e-7, 1.0)))) == []


def test_gradients_may_recover_after_most_of_the_first_half_of_the_run() -> None:
    late = [1e-7, 1e-7, 1e-7, *[1.0] * (LAST - 3)]
    assert len(VanishingCheck()(record(scalars=gradients(late)))) == 1
    assert VanishingCheck()(record(scalars=gradients([1e-7, *[1.0] * (LAST - 1)]))) == []


def test_few_layers_and_few_steps_are_silent() -> None:
    three = [layer(i) for i in range(3)]
    assert VanishingCheck()(record(three, scalars=gradients(1e-7, 3))) == []
    (found,) = VanishingCheck()(record(three, scalars=gradients(0.0, 3)))  # exactly 0 is another
    assert found.message.startswith(
        "gradients per weight of the first layers, from `conv0` on, are"
    )
    (found,) = VanishingCheck()(record(three[1:], scalars=gradients(0.0, 3)))
    assert found.layer == "conv1"
    assert VanishingCheck()(record(three[2:], scalars=gradients(0.0, 3))) == []
    short = {tag: values[:2] for tag, values in gradients(1e-7).items()}
    assert VanishingCheck()(record(scalars=short)) == []
    with pytest.raises(NotRecorded, match="gradient_norm"):
        VanishingCheck()(record())


def test_nonfinite_and_zero_norms_do_not_matter() -> None:
    nan = gradients([float("nan"), 0.5, float("inf"), *[0.5] * (LAST - 3)])
    assert VanishingCheck()(record(scalars=nan)) == []
    assert VanishingCheck()(record(scalars=dict.fromkeys(gradients(1), [0.0] * LAST))) == []


def faded(*stds: float, losses: Sequence[float | None] = (2.3,) * 8, **known: Any) -> list[Finding]:
    layers = [layer(i, **(known if i == 1 else {})) for i in range(6)]
    first = {f"conv{i}": statistics(*[(-1.0, 1.0, 0.0, std)] * 4) for i, std in enumerate(stds)}
    spread = 1e-4 if None in losses else 1.0
    out = OutputFacts("", (8, 10), spread=spread, low=0.0, high=1.0)
    facts = [TrainingFacts(outputs=(replace(out, loss=each),)) for each in losses]
    given = record(layers, first=first, facts=facts, scalars=gradients(1.0))
    return list(VanishingCheck()(given))


def test_a_signal_that_fades_through_the_layers_and_a_network_that_stays_as_it_is() -> None:
    (found,) = faded(1.0, 0.1, 0.00099)
    assert (found.class_, found.layer, found.since_step) == ("note", "conv2", 0)
    assert "falls 1,000-fold from `conv0` to `conv2` at step 0" in found.message
    assert faded(1.0, 0.1, 0.0011) == faded(1.0, 1e-5) == faded(1.0, 0.01, 0.0) == []
    assert faded(1.0, 0.1, 0.001, followed_by=("BatchNorm2d",)) == []
    assert faded(1.0, 0.1, 1e-9, losses=[2.3, *[1.0] * 7]) == []
    assert len(faded(1.0, 0.1, 0.001, losses=[None] * 8)) == 1  # the output is constant
    assert faded(1.0, 0.1, 1e-9, losses=[]) == []  # it is not known


@pytest.mark.parametrize(
    ("first", "is_found"), [(3e-4, True), (3.1e-4, False), (0.0, False), (None, False)]
)
def test_an_output_that_hardly_depends_on_the_input_from_the_start(
    first: float | None, is_found: bool
) -> None:
    def found(later: float) -> list[Finding]:
        every = [OutputFacts("", (8, 10), spread=of, low=0.0, high=1.0) for of in (first, later)]
        facts = [TrainingFacts(outputs=(of,)) for of in (every[0], *every[1:] * (LAST - 1))]
        return list(VanishingCheck()(record(facts=facts, scalars=gradients(1.0))))

    said = [(one.class_, one.layer, one.since_step, one.message) for one in found(later=1e-3)]
    text = "the output varies from input to input by 0.0003 of its magnitude at step 0"
    assert said == [("note", None, 0, text)] * is_found
    assert found(later=0.1) == []  # it learns


@pytest.mark.parametrize(
    ("low", "high", "is_found"),
    [
        (-9e-4, 1e-4, True),
        (-1e-5, 9e-4, True),
        (-1.1e-3, 0, False),
        (0, 1.1e-3, False),
        (0, 0, False),
    ],
)
def test_an_output_that_starts_near_0(low: float, high: float, *, is_found: bool) -> None:
    first = OutputFacts("", (8, 10), spread=1.0, low=low, high=high, loss=2.3)
    later = replace(first, low=-1.0, high=1.0)
    facts = [TrainingFacts(outputs=(of,)) for of in (first, *[later] * (LAST - 1))]
    found = VanishingCheck()(record(facts=facts, scalars=gradients(1.0)))
    text = "the magnitudes of the output are up to 0.0009 at step 0"
    assert [(one.layer, one.message) for one in found] == [(None, text)] * is_found


def test_magnitudes_that_no_healthy_network_starts_with() -> None:
    (found,) = ExplodingCheck()(record(columns={"maximum": {3: [1e4] * LAST}}))
    assert (found.layer, found.since_step, found.value) == ("conv3", 0, 1e4)
    assert "magnitudes in `conv3` are up to 10,000 since step 0" in found.message
    assert ExplodingCheck()(record(columns={"maximum": {3: [9.9e3] * LAST}})) == []
    lost = {"maximum": {3: [float("inf")] * LAST, 4: [float("nan")] * LAST}}
    assert ExplodingCheck()(record(columns=lost)) == []


def test_the_first_output_counts_too_unless_the_loss_is_known() -> None:
    output = OutputFacts("", (16, 8), low=-200.0, high=250.0, classes=8)
    (found,) = ExplodingCheck()(record(facts=[TrainingFacts(outputs=(output,))] * LAST))
    assert (found.layer, found.since_step, found.value) == (None, 0, 200.0)
    assert found.message == "magnitudes in the output are up to 200 since step 0"
    for changes in (
        {"low": -199.0}, {"high": 199.0}, {"shape": (16, 1)}, {"shape": (16, 8, 4)},
        {"low": -np.inf, "high": np.inf}, {"loss": 90.0},
    ):  # fmt: skip
        other = replace(output, **changes)  # type: ignore[arg-type]  # one of several fields
        assert ExplodingCheck()(record(facts=[TrainingFacts(outputs=(other,))] * LAST)) == []
    later = [TrainingFacts(outputs=(replace(output, low=-1.0),)), TrainingFacts(outputs=(output,))]
    assert ExplodingCheck()(record(facts=later)) == []


def test_magnitudes_that_grow_over_the_steps() -> None:
    (found,) = ExplodingCheck()(record(columns={"maximum": {2: from_step(4, 1000.0, 1.0)}}))
    assert (found.layer, found.since_step, found.value) == ("conv2", 40, 1000.0)
    grown = {"maximum": {2: from_step(4, 999.0, 1.0)}}
    assert ExplodingCheck()(record(columns=grown)) == []


def test_a_layer_that_starts_near_zero_may_grow_to_the_magnitudes_of_the_others() -> None:
    tiny = {2: [1e-3] * LAST}
    columns = {"maximum": {2: from_step(4, 6.5, 4e-4)}, "minimum": tiny}
    assert ExplodingCheck()(record(columns=columns)) == []
    columns = {"maximum": {2: from_step(4, 1000.0, 4e-4)}, "minimum": tiny}
    (found,) = ExplodingCheck()(record(columns=columns))
    assert found.value == pytest.approx(1000.0)


def test_growth_from_almost_zero_to_small_values_is_silent() -> None:
    for later, is_found in ((49.0, False), (50.0, True)):
        columns = {
            "maximum": {i: from_step(1, later, 1e-9) for i in range(6)},
            "minimum": {i: [0.0] * LAST for i in range(6)},
        }
        assert len(ExplodingCheck()(record(columns=columns))) == is_found
    zero = {"maximum": {2: from_step(1, 50.0, 0.0)}, "minimum": {2: [0.0] * LAST}}
    assert ExplodingCheck()(record(columns=zero)) == []


def test_a_signal_that_grows_through_the_layers_at_the_first_step() -> None:
    (found,) = ExplodingCheck()(record(columns={"std": {5: [50.0] * LAST}}))
    assert (found.layer, found.since_step, found.value) == ("conv5", 0, 50.0)
    assert ExplodingCheck()(record(columns={"std": {5: [49.9] * LAST}})) == []
    assert ExplodingCheck()(record(columns={"std": {5: from_step(1, 99.0, 1.0)}})) == []
    for kind, count in (("Linear", 1), ("ReLU", 0)):
        layers = [layer(i, kernel_shape=None, type=kind) for i in range(6)]
        grown = record(layers, columns={"std": {5: [50.0] * LAST}})
        assert len(ExplodingCheck()(grown)) == count


def test_a_signal_that_grows_through_the_layers_does_not_count_if_the_network_learns() -> None:
    def found(*losses: float) -> list[Finding]:
        facts = [TrainingFacts(outputs=(OutputFacts("", (8, 10), loss=each),)) for each in losses]
        return list(ExplodingCheck()(record(columns={"std": {5: [50.0] * LAST}}, facts=facts)))

    assert found(9.9, 8.0, 7.5, 7.4) == []
    assert len(found(9.9, 8.0, 7.5, 7.93)) == len(found(10.0, 8.0, 7.5, 7.0)) == 1


def test_only_layers_without_a_normalization_between_them_are_compared() -> None:
    layers = [layer(i) for i in range(6)]
    columns = {"std": {0: [0.01] * LAST, 1: [0.01] * LAST}}
    (found,) = ExplodingCheck()(record(layers, columns=columns))
    assert found.value == pytest.approx(100.0)
    for place in range(2, 5):
        parts = list(layers)
        parts[place] = layer(place, followed_by=("BatchNorm2d",))
        assert len(ExplodingCheck()(record(parts, columns=columns))) == 1
    # The scale behind it is that of the normalization.
    parts = [*layers[:1], layer(1, followed_by=("Tanh", "LayerNorm2d")), *layers[2:]]
    assert ExplodingCheck()(record(parts, columns=columns)) == []
    later = {"std": {2: [0.01] * LAST, 5: [1.0] * LAST}}
    parts = [*layers[:1], layer(1, followed_by=("GroupNorm",)), *layers[2:]]
    (found,) = ExplodingCheck()(record(parts, columns=later))
    assert "from `conv2` to `conv5`" in found.message


def test_gates_on_pooled_maps_are_no_part_of_the_signals_way() -> None:
    def found(pooled: Sequence[int], kernel: tuple[int, int]) -> list[Finding]:
        layers = [layer(i, kernel_shape=(16, 64, *kernel)) for i in range(6)]
        columns = {"std": {5: [70.0] * LAST}, "values": {n: [16.0] * LAST for n in pooled}}
        return list(ExplodingCheck()(record(layers, columns=columns)))

    assert found([5], (1, 1)) == []
    for pooled, kernel in (([2], (1, 1)), ([5], (3, 3)), (range(6), (1, 1))):
        assert [one.layer for one in found(pooled, kernel)] == ["conv5"]


def test_images_of_little_contrast_are_no_fault_of_the_initial_weights() -> None:
    columns = {"std": {0: [0.0025] * LAST}}
    images = {"minimum": 0.0, "maximum": 0.5, "mean": 0.1, "std": 0.1}
    assert ExplodingCheck()(record(columns=columns, inputs=images)) == []
    (found,) = ExplodingCheck()(record(columns=columns, inputs={**images, "std": 0.2}))
    assert found.value == pytest.approx(80.0)
    assert len(ExplodingCheck()(record(columns=columns, inputs={**images, "std": 3.0}))) == 1
    parts = [layer(i, followed_by=("BatchNorm2d",) if i == 0 else ()) for i in range(6)]
    later = {"std": {1: [0.01] * LAST}}  # behind a normalization, contrast is no excuse
    assert len(ExplodingCheck()(record(parts, columns=later, inputs=images))) == 1


def test_without_layers_it_is_not_recorded() -> None:
    with pytest.raises(NotRecorded):
        ExplodingCheck()(RunRecord())
