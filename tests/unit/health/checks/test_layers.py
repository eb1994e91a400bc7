"""Checks of the layers' numbers: on both sides of each threshold."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from check_records import STEPS, from_step, layer, record

from fmapboard.checks import Finding, NotRecorded, RunRecord
from fmapboard.formats.overview import StepSource
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.checks.layers import (
    CopiedChannelsCheck,
    DeadCheck,
    DropoutHighCheck,
    SaturatedCheck,
    UnevenUpsamplingCheck,
)


def test_dead_channels_from_half_of_a_layer_on() -> None:
    dead = from_step(2, 0.5, 0.0)
    lasting = from_step(5, 0.5, 0.0)
    (found,) = DeadCheck()(record(columns={"dead": {2: dead}, "dead_lasting": {2: lasting}}))
    assert (found.class_, found.layer, found.since_step, found.value) == (
        "note",
        "conv2",
        20,
        0.5,
    )
    fewer = {"dead": {2: from_step(2, 0.49, 0.0)}, "dead_lasting": {2: from_step(5, 0.49, 0.0)}}
    assert DeadCheck()(record(columns=fewer)) == []


def test_more_channels_may_be_dead_from_the_first_step_on() -> None:
    for share, count in ((0.89, 0), (0.9, 1)):
        columns = {"dead": {2: [share] * len(STEPS)}, "dead_lasting": {2: [share] * len(STEPS)}}
        assert len(DeadCheck()(record(columns=columns))) == count


def test_channels_that_are_dead_from_the_start_are_not_blamed_on_the_learning_rate() -> None:
    dead = {"dead": {2: [0.9] * len(STEPS)}, "dead_lasting": {2: [0.9] * len(STEPS)}}
    (found,) = DeadCheck()(record(columns=dead))
    assert "before this run can have done it" in found.meaning
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
    assert DeadCheck()(record(columns=dead, facts=[black] * len(STEPS))) == []
    one = TrainingFacts(batch=2, constant_images=(0,))
    assert len(DeadCheck()(record(columns=dead, facts=[one] * len(STEPS)))) == 1


def test_dead_channels_must_last_and_be_of_large_maps() -> None:
    dead = {2: from_step(2, 0.9, 0.0)}
    assert DeadCheck()(record(columns={"dead": dead})) == []  # other channels at each step
    columns = {"dead": dead, "dead_lasting": {2: from_step(5, 0.9, 0.0)}}
    small = {"values": {2: [499.0] * len(STEPS)}}
    assert DeadCheck()(record(columns={**columns, **small})) == []
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


def test_copies_among_8192_channels_are_found_in_little_memory() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.uniform(1.0, 1.001, 8192)  # no two of them can be told apart by their range
    mean, std = rng.random((2, 8192))
    rows = {"minimum": np.zeros(8192), "maximum": sizes, "mean": mean, "std": std}
    tracemalloc.start()
    assert CopiedChannelsCheck()(record(first={"conv1": rows})) == []
    copied = {name: np.concatenate([of[:4096], of[:4096]]) for name, of in rows.items()}
    (found,) = CopiedChannelsCheck()(record(first={"conv1": copied}))
    assert found.value == 1.0
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


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


def test_dropout_that_leaves_hardly_anything() -> None:
    high = TrainingFacts(dropouts={"drop": 0.9, "other": 0.5})
    (found,) = DropoutHighCheck()(record(facts=[TrainingFacts(), high, high]))
    assert (found.layer, found.since_step, found.value) == ("drop", 10, 0.9)
    assert found.message == "dropout sets 90 % of the values to 0 since step 10: `drop`"
    some = TrainingFacts(dropouts={"drop": 0.89})
    for facts in ([some] * 8, [high], [TrainingFacts(), high], [high, TrainingFacts()]):
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
