"""Channels that are off for every input."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import STEPS, from_step, layer, record, two_calls

from fmapboard.checks import Check, Finding, NotRecorded, RunRecord, run_checks
from fmapboard.formats.overview import StepSource
from fmapboard.formats.training_facts import HeldLoss, OutputFacts, TrainingFacts
from fmapboard.health.rules import ConstantImagesCheck, DeadCheck


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
    for count, more in ((5, ""), (8, "; 3 further layers have as many")):
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
    assert "biases below zero outweigh what the weights make of the input" in found.meaning
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
    assert found.message.endswith("since step 0; nothing of the input reaches 3 layers behind it")
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


def test_dead_channels_follow_from_constant_images() -> None:
    dead = {"dead": {2: [0.9] * len(STEPS)}, "dead_lasting": {2: [0.9] * len(STEPS)}}
    black = TrainingFacts(batch=2, constant_images=(0, 1))
    one = TrainingFacts(batch=2, constant_images=(0,))

    def kinds(facts: TrainingFacts, *checks: Check) -> list[str]:
        of_black = record(columns=dead, facts=[facts] * len(STEPS))
        return [found.kind for found in run_checks(of_black, [DeadCheck(), *checks]).findings]

    assert kinds(black, ConstantImagesCheck()) == ["constant_images", "dead"]
    assert kinds(one, ConstantImagesCheck()) == ["dead"]
    assert kinds(black) == ["dead"]  # that finding is switched off


def test_dead_channels_must_last_and_be_of_large_maps() -> None:
    dead = {2: from_step(2, 0.9, 0.0)}
    assert DeadCheck()(record(columns={"dead": dead})) == []  # other channels at each step
    columns = {"dead": dead, "dead_lasting": {2: from_step(5, 0.9, 0.0)}}
    small = {"values": {2: [499.0] * len(STEPS)}}
    (found,) = DeadCheck()(record(columns={**columns, **small}))
    assert found.message.endswith("; few values: 499 per channel")
    small["values"][2] = [8.0] * len(STEPS)  # 461 of dead channels
    assert DeadCheck()(record(columns={**columns, **small})) == []
    recovered = {"dead": {2: [0.9] * 6 + [0.0] * 2}, "dead_lasting": {2: [0.9] * 6 + [0.0] * 2}}
    assert DeadCheck()(record(columns=recovered)) == []


def test_a_small_map_that_is_nearly_dead_is_not_reported_where_the_loss_falls() -> None:
    def found(values: float, last: float) -> list[Finding]:
        columns = {name: {2: from_step(4, 0.9, 0.0)} for name in ("dead", "dead_lasting")}
        columns["values"] = {2: [values] * len(STEPS)}
        facts = [
            TrainingFacts(outputs=(OutputFacts("", (8, 10), loss=loss),))
            for loss in (2.3, *[last] * 7)
        ]
        return list(DeadCheck()(record(columns=columns, facts=facts)))

    assert found(499.0, 1.7) == []
    assert len(found(499.0, 2.3)) == len(found(500.0, 1.7)) == 1


def test_dead_channels_that_became_nonfinite_are_left_to_that_finding() -> None:
    dead = {2: [0.0, *[0.8] * 5, 0.0, 0.0]}
    columns = {"dead": dead, "dead_lasting": dead, "nonfinite": {2: [0.0] * 6 + [1.0] * 2}}
    assert DeadCheck()(record(columns=columns)) == []


def test_dead_channels_are_told_since_there_were_so_many() -> None:
    dead = {2: [0.0, 0.2, 0.2, 0.2, 0.8, 0.8, 0.8, 0.8]}
    (found,) = DeadCheck()(record(columns={"dead": dead, "dead_lasting": dead}))
    assert found.since_step == 40
    assert found.message == "80 % of 64 channels dead in `conv2` (after `relu2`) since step 40"
    dead[2][-1] = 1.0  # more than at first
    (grown,) = DeadCheck()(record(columns={"dead": dead, "dead_lasting": dead}))
    assert grown.message == (
        "100 % of 64 channels dead in `conv2` (after `relu2`), 80 % or more of them since step 40"
    )


def test_a_dead_layer_behind_a_second_call_is_named_as_in_the_tab() -> None:
    dead = {2: from_step(1, 0.8, 0.0)}
    (found,) = DeadCheck()(record(two_calls(), columns={"dead": dead, "dead_lasting": dead}))
    assert "dead in `conv2` (after `act`, call 2) since" in found.message


def test_without_an_overview_dead_channels_are_not_recorded() -> None:
    with pytest.raises(NotRecorded, match="fmapboard_overview"):
        DeadCheck()(RunRecord())
