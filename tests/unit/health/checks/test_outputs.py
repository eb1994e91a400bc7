"""Checks of the network's output, its loss and its labels: both sides of each rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from check_records import layer, record

from fmapboard.checks import Check, Finding, NotRecorded, RunRecord, run_checks
from fmapboard.formats.training_facts import HeldLoss, LossKind, OutputFacts, TrainingFacts
from fmapboard.health.checks.outputs import (
    ConstantOutputCheck,
    DoubleSoftmaxCheck,
    InitialLossCheck,
    LossClimbedCheck,
    OneLabelCheck,
    ProbabilitiesIntoLossCheck,
    SortedLabelsCheck,
    UnusedClassesCheck,
)

FINE = OutputFacts(
    name="", shape=(32, 10), rows=32, low=-2.0, high=2.0, spread=1.0, predictions=9,
    kind="cross-entropy", loss=2.3, accuracy=0.1, classes=10, label_changes=28,
    labels=tuple((n, 4) for n in range(8)),
)  # fmt: skip
CHECKS: list[Check] = [
    ConstantOutputCheck(), DoubleSoftmaxCheck(), InitialLossCheck(), LossClimbedCheck(),
    OneLabelCheck(), ProbabilitiesIntoLossCheck(), SortedLabelsCheck(), UnusedClassesCheck(),
]  # fmt: skip


def of(every: Sequence[OutputFacts | tuple[OutputFacts, ...]], **more: Any) -> RunRecord:
    facts = [
        TrainingFacts(batch=32, outputs=one if isinstance(one, tuple) else (one,)) for one in every
    ]
    return record(facts=facts, **more)


def said(check: Check, *every: OutputFacts | tuple[OutputFacts, ...]) -> list[Finding]:
    return list(check(of(every)))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kind)
def test_what_is_not_known_is_no_finding(check: Check) -> None:
    assert said(check, *[OutputFacts(name="", shape=(32, 10), rows=32)] * 8) == []
    scalar = OutputFacts(name="", shape=(), rows=1, spread=None)
    assert said(check, *[scalar] * 8) == []
    with pytest.raises(NotRecorded, match="an output of the network with a gradient"):
        said(check, *[()] * 8)


def test_a_softmax_in_front_of_a_softmax_at_the_last_two_steps() -> None:
    double = replace(FINE, rows_are="probabilities", is_softmax_of_softmax=True)
    (found,) = said(DoubleSoftmaxCheck(), FINE, double, double)
    assert (found.class_, found.since_step) == ("warning", 10)
    assert found.message == (
        "the output is probabilities, and the loss applies a softmax to them again, since step 10"
    )
    (found,) = said(DoubleSoftmaxCheck(), *[replace(double, rows_are="any")] * 2)
    assert found.message == "two softmaxes follow the output, since step 0"
    assert said(DoubleSoftmaxCheck(), double, double, FINE) == []
    assert said(DoubleSoftmaxCheck(), FINE, double) == []
    lost = replace(FINE, kind="not certain")  # two steps agreed when it was read
    (found,) = said(DoubleSoftmaxCheck(), lost, double, lost)
    assert found.since_step == 10


def test_the_output_is_named_if_there_are_several() -> None:
    double = replace(FINE, name="aux", rows_are="probabilities", is_softmax_of_softmax=True)
    (found,) = said(DoubleSoftmaxCheck(), *[(FINE, double)] * 2)
    assert found.message.startswith("the output `aux` is probabilities")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"low": 0.3, "high": 0.7}, "a sigmoid, or a softmax over another axis"),
        ({"low": 0.01, "high": 1.0}, "a sigmoid, or a softmax over another axis"),
        ({"low": 0.0, "high": 3.0}, "a ReLU"),
        ({"low": 0.3, "high": 0.7, "kind": "BCE with logits"}, "a sigmoid"),
        ({"low": 0.01, "high": 0.2}, "a softmax over another axis"),
        ({"low": 0.01, "high": 0.2, "classes": 5}, ""),
        ({"low": 0.1, "high": 0.4, "rows_are": "probabilities"}, "a softmax in front"),
        ({"low": 0.04, "high": 0.2}, ""),  # above 1 / 32
        ({"low": 0.0, "high": 0.4}, ""),
        ({"low": 0.1, "high": 3.0}, ""),
        ({"low": -0.1, "high": 0.7}, ""),
        ({"low": 0.3, "high": 0.7, "kind": "weighted per sample"}, ""),
        ({"low": 0.3, "high": 0.7, "kind": "NLL of log-probabilities"}, ""),
        ({"low": 0.3, "high": 0.7, "given": True}, ""),
        ({"low": 0.002, "high": 0.2, "kind": "BCE with logits", "shape": (32, 1)}, "a sigmoid"),
        ({"low": 0.003, "high": 0.2, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.002, "high": 1.2, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.2, "high": 0.9, "kind": "BCE with logits", "shape": (32, 1)}, "a sigmoid"),
        ({"low": 0.21, "high": 0.9, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.2, "high": 0.89, "kind": "BCE with logits", "shape": (32, 1)}, ""),
        ({"low": 0.0, "high": 1.1, "kind": "BCE with logits", "shape": (32, 1)}, ""),
    ],
)
def test_probabilities_or_a_relu_in_front_of_a_loss_on_logits(
    changes: dict[str, Any], words: str
) -> None:
    each = replace(FINE, **changes)
    found = said(ProbabilitiesIntoLossCheck(), *[each] * 4)
    assert [one.class_ for one in found] == ["note"] * bool(words)
    assert all(words in one.meaning for one in found)
    assert said(ProbabilitiesIntoLossCheck(), *[each] * 3) == []
    assert said(ProbabilitiesIntoLossCheck(), *[each] * 7, replace(FINE, low=-1e-3)) == []
    unread = replace(each, kind="not certain")  # at two steps, the loss must be known
    assert len(said(ProbabilitiesIntoLossCheck(), unread, each, each, unread)) == bool(words)
    assert said(ProbabilitiesIntoLossCheck(), *[unread] * 3, each) == []


def test_a_tanh_in_front_of_a_loss_on_logits_and_the_range_at_all_steps() -> None:
    bounded = replace(FINE, low=-0.9, high=1.0)
    (found,) = said(ProbabilitiesIntoLossCheck(), FINE, *[bounded] * 4)
    assert "the output of a tanh in front of a loss" in found.meaning
    assert said(ProbabilitiesIntoLossCheck(), *[bounded] * 3) == []
    sigmoid = replace(FINE, low=0.3, high=0.7)
    unread = replace(sigmoid, low=0.05, kind="not certain")
    (found,) = said(ProbabilitiesIntoLossCheck(), unread, *[sigmoid] * 3)
    assert found.message.startswith("the output is from 0.05 to 0.7 at 4 logged steps")
    for ends in ({"low": -0.89}, {"high": 0.89}, {"low": -1.01}, {"high": 1.01}):
        assert said(ProbabilitiesIntoLossCheck(), *[bounded] * 3, replace(bounded, **ends)) == []  # type: ignore[arg-type]


def test_what_is_wrong_with_the_loss_is_told_of_a_network_that_has_diverged_since() -> None:
    lost = OutputFacts("", FINE.shape, rows=32, low=-1e6, high=1e6)  # its loss cannot be read
    double = {"is_softmax_of_softmax": True, "rows_are": "probabilities"}
    for check, changes, message in (
        (LossClimbedCheck(), {"is_climbed": True}, "the optimizer makes the loss"),
        (DoubleSoftmaxCheck(), double, "the output is probabilities"),
        (ProbabilitiesIntoLossCheck(), {"kind": LossKind.NLL_OF_LOGITS}, "the loss of the output"),
    ):
        wrong = replace(FINE, **changes)  # type: ignore[arg-type]
        (found,) = said(check, *[wrong] * 4, lost, lost)
        assert found.since_step == 0
        assert found.message.startswith(message)
        assert said(check, *[wrong] * 4, lost, FINE) == []


def test_probabilities_in_front_of_a_loss_of_logarithms() -> None:
    linear = replace(FINE, kind=LossKind.NLL_OF_PROBABILITIES, loss=None)
    (found,) = said(ProbabilitiesIntoLossCheck(), FINE, *[linear] * 4)
    assert found.message == (
        "the loss of the output is linear in the probability of the label since step 10"
    )
    (found,) = said(
        ProbabilitiesIntoLossCheck(), *[replace(linear, kind=LossKind.NLL_OF_LOGITS)] * 4
    )
    assert "linear in the output of the label" in found.message
    assert "no log_softmax" in found.meaning
    lost = OutputFacts("", FINE.shape, rows=32)  # NaN, of which nothing is known
    assert len(said(ProbabilitiesIntoLossCheck(), FINE, *[linear] * 4, lost, lost)) == 1
    for silent in ([FINE, *[linear] * 3], [*[linear] * 4, FINE]):
        assert said(ProbabilitiesIntoLossCheck(), *silent) == []


def test_logits_that_are_averages_of_activations_are_never_negative() -> None:
    last = layer(5, channels=10)
    average = [replace(FINE, low=0.0, high=3.0)] * 8
    rows = [layer(i) for i in range(5)]
    assert list(ProbabilitiesIntoLossCheck()(of(average, layers=[*rows, last]))) == []
    plain = replace(last, activation=None)
    linear = replace(last, type="Linear", kernel_shape=None)
    first = [layer(0, channels=10), *rows[1:]]
    for layers in ([*rows, plain], first, [*rows, linear]):
        assert len(ProbabilitiesIntoLossCheck()(of(average, layers=layers))) == 1


def test_a_loss_that_is_climbed() -> None:
    up = [replace(FINE, is_climbed=True, loss=loss) for loss in (2.3, 3.0, 9.0)]
    (found,) = said(LossClimbedCheck(), FINE, *up)
    assert (found.class_, found.since_step, found.value) == ("warning", 10, 9.0)
    assert found.message == (
        "the optimizer makes the loss of the output larger since step 10: it went from 2.3 to 9"
    )
    assert said(LossClimbedCheck(), *up, FINE) == []
    assert said(LossClimbedCheck(), FINE, up[0]) == []
    assert said(LossClimbedCheck(), *reversed(up)) == []
    assert len(said(LossClimbedCheck(), *[replace(one, loss=None) for one in up])) == 1
    likelihood = OutputFacts(name="", shape=(), is_climbed=True, loss=2.0)
    assert said(LossClimbedCheck(), *[likelihood] * 8) == []


def test_labels_beyond_1_have_no_least_loss() -> None:
    masks = replace(FINE, kind=LossKind.BEYOND_1, loss=None, labels=((0, 30), (255, 2)))
    (found,) = said(LossClimbedCheck(), FINE, masks, masks)
    assert (found.class_, found.since_step, found.value) == ("warning", 10, 255.0)
    assert "labels of the output are up to 255 since step 10" in found.message
    (found,) = said(LossClimbedCheck(), masks, replace(masks, labels=((3, 9),)), FINE)
    assert (found.since_step, found.value) == (0, 255.0)  # it is not certain at each step
    assert said(LossClimbedCheck(), FINE, masks) == []


def test_one_target_for_all_images() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=-1.0, high=2.0, spread=1.0, predictions=2)
    means = [replace(one, target=target) for target in (0.31, 0.42, 0.42)]
    (found,) = said(ConstantOutputCheck(), one, *means)
    assert (found.class_, found.since_step) == ("note", 10)
    assert "to 0.31 at step 10 and to 0.42 at step 20" in found.message
    assert len(said(ConstantOutputCheck(), *[replace(one, target=1.4942)] * 3)) == 1
    critics = [[replace(one, target=of + n * 1e-6) for n in range(-4, 5)] for of in (0.9, 1, -1)]
    for silent in (means[:2], *critics, [one] * 8):
        assert said(ConstantOutputCheck(), *silent) == []


def test_an_output_that_is_the_same_for_all_images() -> None:
    same = replace(FINE, spread=5e-3, predictions=1)
    (found,) = said(ConstantOutputCheck(), same, same, same)
    assert (found.class_, found.since_step, found.value) == ("note", 10, 5e-3)
    assert said(ConstantOutputCheck(), same, same) == []  # the first step does not count
    assert said(ConstantOutputCheck(), same, same, same, FINE) == []
    for changes in ({"spread": 5.1e-3}, {"predictions": 2}, {"shape": (3, 10)}, {"spread": None}):
        other = replace(same, **changes)  # type: ignore[arg-type]  # one of several fields
        assert said(ConstantOutputCheck(), *[other] * 8) == []
    assert said(ConstantOutputCheck(), *[(same, replace(FINE, name="b"))] * 8) == []
    assert len(said(ConstantOutputCheck(), *[(same, replace(same, name="b"))] * 8)) == 1


def test_a_critics_answers_to_one_kind_of_images_may_be_alike() -> None:
    critic = replace(FINE, shape=(32, 1, 4, 4), spread=1e-4, predictions=1, labels=None)
    assert said(ConstantOutputCheck(), *[critic] * 8) == []
    assert said(ConstantOutputCheck(), *[replace(critic, labels=((1, 32),))] * 8) == []
    assert len(said(ConstantOutputCheck(), *[replace(critic, labels=((1, 9), (0, 9)))] * 8)) == 1


def test_a_map_as_large_as_the_images_is_no_critic() -> None:
    same = OutputFacts("", (32, 1, 8, 8), rows=32, high=0.9, spread=1e-4, predictions=1)

    def found(values: float, shape: tuple[int, ...]) -> list[Finding]:
        sizes = {"values": {n: [values] * 8 for n in range(6)}}
        outputs = [replace(same, shape=shape)] * 8
        return list(ConstantOutputCheck()(of(outputs, columns=sizes)))

    assert len(found(32 * 64, same.shape)) == 1
    assert found(32 * 65, same.shape) == found(32, (32, 1)) == found(32, (32,)) == []


def test_a_network_that_says_the_same_while_the_loss_pulls_its_outputs_apart() -> None:
    same = replace(FINE, shape=(32, 1), spread=1e-4, predictions=1, labels=None, classes=1)
    assert said(ConstantOutputCheck(), *[same] * 8) == []
    assert len(said(ConstantOutputCheck(), *[replace(same, is_pulled_apart=True)] * 3)) == 1


def test_a_softmax_of_one_unit_is_always_1() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=1.0, high=1.0, spread=0.0, predictions=1)
    (found,) = said(ConstantOutputCheck(), *[one] * 3)
    assert (found.message, found.since_step) == ("the output is exactly 1 for every image", None)
    assert found.meaning.startswith("A softmax over a single class")
    assert said(ConstantOutputCheck(), *[replace(one, low=0.999)] * 3) == []
    (found,) = said(ConstantOutputCheck(), *[replace(one, shape=(32, 2))] * 3)
    assert "has collapsed" in found.meaning


def test_a_code_that_tells_nothing_beside_the_pictures_made_from_it() -> None:
    picture = OutputFacts("0", (32, 1, 8, 8), low=0.0, high=0.9, spread=0.5)
    mean = OutputFacts("1", (32, 4), low=-0.3, high=0.25, spread=1.0, predictions=4)
    variance = replace(mean, name="2", low=-0.1)

    def found(first: float, last: float, *others: OutputFacts, **changes: Any) -> list[Finding]:
        codes = [replace(variance, high=first), *[replace(variance, high=last, **changes)] * 4]
        return said(ConstantOutputCheck(), *[(*others, mean, code) for code in codes])

    (one,) = found(0.4, 0.3, picture)
    assert (one.class_, one.since_step, one.value) == ("note", None, 0.3)
    assert "the outputs `1` and `2` are within ±0.3 of 0 for all images" in one.message
    assert found(0.4, 0.31, picture) == found(0.4, 0.3) == []
    assert found(0.25, 0.29, picture) == []  # it grows
    assert found(0.4, 0.3, picture, shape=(32, 5)) == []
    assert found(0.4, 0.3, replace(picture, shape=(32, 8))) == []  # no larger
    assert found(0.4, 0.3, replace(picture, shape=(8, 1, 8, 8))) == []  # of other images


def labels(*pairs: tuple[int, int], **changes: Any) -> OutputFacts:
    return replace(FINE, labels=pairs, **changes)


def test_all_images_with_one_label() -> None:
    (found,) = said(OneLabelCheck(), *[labels((3, 16))] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 3)
    assert found.message == ("all 64 labels of the output at 4 logged steps are 3, of 10 classes")
    assert said(OneLabelCheck(), *[labels((3, 15))] * 4) == []
    assert said(OneLabelCheck(), *[labels((3, 64))] * 3) == []
    assert said(OneLabelCheck(), *[labels((3, 16))] * 7, labels((4, 16))) == []


def test_batches_of_one_kind_and_the_place_of_the_right_candidate_are_no_labels() -> None:
    assert said(OneLabelCheck(), *[labels((1, 32), classes=2)] * 8) == []  # a discriminator
    assert said(OneLabelCheck(), *[labels((1, 32), classes=None)] * 8) == []
    for check in (OneLabelCheck(), UnusedClassesCheck()):
        assert said(check, *[labels((0, 32), classes=33)] * 8) == []  # MoCo
    assert len(said(OneLabelCheck(), *[labels((0, 32), classes=32)] * 8)) == 1
    pixels = labels((0, 4096), classes=2, label_changes=None)
    assert said(OneLabelCheck(), *[pixels] * 4) == []  # background
    assert len(said(OneLabelCheck(), *[pixels] * 5)) == 1
    assert len(said(OneLabelCheck(), *[replace(pixels, labels=((1, 4096),))] * 4)) == 1
    for check in (SortedLabelsCheck(), UnusedClassesCheck()):
        every = [labels((n % 3, 4096), label_changes=None) for n in range(8)]
        assert said(check, *every) == []


def test_pixels_of_nothing_but_background_are_one_label_only_if_they_are_many() -> None:
    pixels = replace(FINE, shape=(13, 2, 32, 32), classes=2, label_changes=None)
    empty = replace(pixels, labels=((0, 4096),))
    (one,) = said(OneLabelCheck(), *[empty] * 5)
    assert one.message.startswith("all 20,480 labels of the output at 5 logged steps are 0, of 2 c")
    assert said(OneLabelCheck(), *[empty] * 4) == []
    assert said(OneLabelCheck(), *[replace(empty, shape=(12, 2, 32, 32))] * 5) == []  # 60 images
    assert said(OneLabelCheck(), *[replace(empty, labels=((0, 4095), (1, 1)))] * 8) == []

    def of_maps(values: float, *, label: int = 0) -> list[Finding]:
        mask = replace(empty, shape=(13, 1, 32, 32), classes=1, labels=((label, 4096),))
        sizes = {"values": {n: [values] * 8 for n in range(6)}}
        return list(OneLabelCheck()(of([mask] * 8, columns=sizes)))

    (one,) = of_maps(13 * 32 * 32)
    assert one.message.endswith("are 0, of 2 classes")
    # Of a critic, each batch has one label: those of patches, or of true pictures.
    assert of_maps(13 * 64 * 64) == of_maps(13 * 32 * 32, label=1) == []


def test_one_label_of_two_classes_counts_only_if_the_network_is_sure_of_it() -> None:
    sure = labels((0, 32), shape=(32, 1), classes=1, loss=0.01)
    (one,) = said(OneLabelCheck(), *[sure] * 4)
    assert one.message.endswith("are 0, of 2 classes")
    for critic in (replace(sure, loss=0.011), replace(sure, classes=2, loss=None)):
        assert said(OneLabelCheck(), *[critic] * 8) == []
    assert said(OneLabelCheck(), *[replace(sure, classes=None)] * 8) == []
    both = [replace(sure, labels=((n, 32),)) for n in (0, 0, 1, 1)]
    assert said(SortedLabelsCheck(), *both) == []


def test_batches_of_nearly_one_class_each() -> None:
    (found,) = said(SortedLabelsCheck(), *[labels((n, 13), (n + 1, 3)) for n in (0, 0, 4, 8)])
    assert (found.class_, found.since_step, found.value) == ("note", 0, 0.8125)
    assert "and 6 labels occur at these steps" in found.message
    few = [labels((n, 12), (n + 1, 4)) for n in (0, 0, 4, 8)]
    assert said(SortedLabelsCheck(), *few) == []
    assert said(SortedLabelsCheck(), *[labels((n, 7)) for n in range(8)]) == []
    assert said(SortedLabelsCheck(), *[labels((n, 16)) for n in range(3)]) == []
    assert said(SortedLabelsCheck(), *[labels((0, 32))] * 6, labels((1, 32))) == []
    in_order = [
        replace(one, labels=of, label_changes=1)
        for one, of in zip(
            few,
            [((0, 10), (1, 6)), ((2, 10), (1, 6)), ((3, 8), (4, 8)), ((5, 9), (4, 7))],
            strict=True,
        )
    ]
    assert [one.value for one in said(SortedLabelsCheck(), *in_order)] == [pytest.approx(0.59375)]
    mixed = [*in_order[:3], replace(in_order[3], label_changes=2)]
    assert said(SortedLabelsCheck(), *mixed) == []
    # Few shots of each class in order, as of prototypical networks.
    shots = replace(FINE, labels=tuple((n, 8) for n in range(4)), label_changes=3)
    assert said(SortedLabelsCheck(), *[shots] * 8) == []


def test_classes_that_no_label_names() -> None:
    assert (1 - 0.2 / 4) ** 136 < 1e-3 < (1 - 0.2 / 4) ** 132
    four = [labels(*((n, each) for n in range(4))) for each in (17, 16)]
    (found,) = said(UnusedClassesCheck(), *four, four[0], labels(*((n, 9) for n in range(4))))
    assert (found.class_, found.since_step, found.value) == ("note", 0, 6)
    assert found.message == (
        "the output has 10 classes, and 236 labels at 4 logged steps name 4 of them"
    )
    assert len(said(UnusedClassesCheck(), four[0], four[0])) == 1
    assert said(UnusedClassesCheck(), four[0], four[1]) == []
    assert math.exp(-8 / 2) < 0.02 < math.exp(-7 / 2)
    many = [labels(*((n, each) for n in range(4)), classes=16) for each in (4, 3)]
    assert len(said(UnusedClassesCheck(), many[0], many[0])) == 1
    assert said(UnusedClassesCheck(), many[0], many[1]) == []
    assert said(UnusedClassesCheck(), *[replace(many[0], classes=15)] * 2) == []
    every = labels(*((n, 40) for n in range(10)))
    assert said(UnusedClassesCheck(), *[every] * 8) == []
    pixels = labels((0, 900), (1, 90), classes=8, label_changes=None)
    assert said(UnusedClassesCheck(), *[pixels] * 8) == []


def test_a_class_as_rare_as_the_rarest_one_may_be_missing() -> None:
    assert math.exp(-14 / 2) < 1e-3 < math.exp(-13 / 2)
    rare = [labels(*((n, 60) for n in range(3)), (3, each)) for each in (7, 6)]
    assert len(said(UnusedClassesCheck(), rare[0], rare[0])) == 1
    assert said(UnusedClassesCheck(), rare[0], rare[1]) == []


def test_labels_that_say_nothing_of_all_classes_are_not_counted() -> None:
    some = labels((0, 400), (1, 400))
    in_order = record(facts=[TrainingFacts(outputs=(labels((n % 3, 400)),)) for n in range(8)])
    both = run_checks(in_order, [UnusedClassesCheck(), SortedLabelsCheck()])
    assert [found.kind for found in both.findings] == ["sorted_labels"]
    assert len(run_checks(in_order, [UnusedClassesCheck()]).findings) == 1
    cut = labels(*((n, 90) for n in range(64)), classes=1000)
    assert said(UnusedClassesCheck(), *[cut] * 8) == []
    facts = [TrainingFacts(batch=800, batch_digest="a", outputs=(some,))] * 8
    assert list(UnusedClassesCheck()(record(facts=facts))) == []


def test_a_first_loss_far_above_that_of_guessing() -> None:
    guessed = math.log(10)
    (found,) = said(InitialLossCheck(), replace(FINE, loss=2 * guessed), FINE)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 2 * guessed)
    assert found.healthy == "near ln 10 = 2.3, that of guessing"
    assert said(InitialLossCheck(), replace(FINE, loss=4.6), FINE) == []
    two = replace(FINE, classes=2, loss=1.69)
    assert said(InitialLossCheck(), two) == []
    assert len(said(InitialLossCheck(), replace(two, loss=1.7))) == 1
    for changes in ({"kind": "BCE with logits"}, {"given": True}, {"loss": None}):
        assert said(InitialLossCheck(), replace(FINE, **{"loss": 9.0, **changes})) == []  # type: ignore[arg-type]
    unread = OutputFacts(name="", shape=(32, 10), rows=32)
    (found,) = said(InitialLossCheck(), unread, replace(FINE, held=HeldLoss(0, 9.0, 0.0)), FINE)
    assert (found.since_step, found.value) == (0, 9.0)
    assert said(InitialLossCheck(), unread, replace(FINE, held=HeldLoss(10, 9.0, 0.0))) == []
    resumed = record(steps=[10, 20], facts=[TrainingFacts(outputs=(replace(FINE, loss=9.0),))] * 2)
    assert list(InitialLossCheck()(resumed)) == []


def test_targets_far_beyond_all_outputs_at_the_first_steps() -> None:
    far = OutputFacts("", (32, 1), low=0.0, high=1.0, away=20.0)
    (found,) = said(InitialLossCheck(), *[replace(far, away=300.0)] * 2, far, far, FINE)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 20.0)
    assert found.message.startswith("the targets of the output are far beyond all of its values")
    (found,) = said(InitialLossCheck(), replace(far, away=0.0), *[far] * 3, FINE)
    assert "or more at 3 of the first 4 logged steps" in found.message
    assert said(InitialLossCheck(), *[far] * 2, *[replace(far, away=19.0)] * 2, far) == []
    assert said(InitialLossCheck(), *[far] * 3) == []

    def at_each(*every: OutputFacts) -> list[Finding]:
        facts = [TrainingFacts(outputs=(one,)) for one in every]
        return list(InitialLossCheck()(record(steps=range(len(every)), facts=facts)))

    assert len(at_each(*[far] * 21)) == 1
    assert at_each(*[far] * 20) == at_each(*[far] * 19, FINE, FINE) == []
