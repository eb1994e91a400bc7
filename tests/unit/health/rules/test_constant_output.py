"""One output for every input."""

from __future__ import annotations

from dataclasses import replace

from check_records import statistics
from output_facts import OUTPUT, findings_of, record_of

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import ConstantOutputCheck


def test_an_output_that_is_the_same_for_all_images() -> None:
    same = replace(OUTPUT, spread=5e-3, predictions=1)
    (found,) = findings_of(ConstantOutputCheck(), same, same, same)
    assert (found.class_, found.since_step, found.value) == ("note", 10, 5e-3)
    assert findings_of(ConstantOutputCheck(), same, same) == []  # the first step does not count
    assert findings_of(ConstantOutputCheck(), same, same, same, OUTPUT) == []
    for changes in ({"spread": 5.1e-3}, {"predictions": 2}, {"shape": (3, 10)}, {"spread": None}):
        other = replace(same, **changes)  # type: ignore[arg-type]  # one of several fields
        assert findings_of(ConstantOutputCheck(), *[other] * 8) == []
    assert findings_of(ConstantOutputCheck(), *[(same, replace(OUTPUT, name="b"))] * 8) == []
    assert len(findings_of(ConstantOutputCheck(), *[(same, replace(same, name="b"))] * 8)) == 1


def test_the_first_layer_whose_channels_do_not_vary_is_named_if_the_output_never_varied() -> None:
    same = replace(OUTPUT, spread=1e-7, predictions=1)
    varied = statistics(*[(-1.0, 1.0, 0.0, 0.5)] * 4)
    first = {"conv0": varied, "conv1": statistics(*[(0.2, 0.2, 0.2, 5e-5)] * 4), "conv2": varied}
    (found,) = ConstantOutputCheck()(record_of([same] * 8, first=first))
    assert found.layer == "conv1"
    assert found.message.endswith(
        "; `conv1` is the first layer whose channels hardly vary at step 0"
    )
    assert found.advice.startswith("Print what this layer receives")
    for outputs, given in (
        ([same] * 8, {**first, "conv1": varied}),
        ([OUTPUT, *[same] * 7], first),  # it was lost later
    ):
        (found,) = ConstantOutputCheck()(record_of(outputs, first=given))
        assert found.layer is None
        assert found.advice.startswith("Look for the first layer")


def test_a_critics_answers_to_one_kind_of_images_may_be_alike() -> None:
    critic = replace(OUTPUT, shape=(32, 1, 4, 4), spread=1e-4, predictions=1, labels=None)
    assert findings_of(ConstantOutputCheck(), *[critic] * 8) == []
    assert findings_of(ConstantOutputCheck(), *[replace(critic, labels=((1, 32),))] * 8) == []
    assert (
        len(findings_of(ConstantOutputCheck(), *[replace(critic, labels=((1, 9), (0, 9)))] * 8))
        == 1
    )


def test_a_map_as_large_as_the_images_is_no_critic() -> None:
    same = OutputFacts("", (32, 1, 8, 8), rows=32, high=0.9, spread=1e-4, predictions=1)

    def found(values: float, shape: tuple[int, ...]) -> list[Finding]:
        sizes = {"values": {n: [values] * 8 for n in range(6)}}
        outputs = [replace(same, shape=shape)] * 8
        return list(ConstantOutputCheck()(record_of(outputs, columns=sizes)))

    assert len(found(32 * 64, same.shape)) == 1
    assert found(32 * 65, same.shape) == found(32, (32, 1)) == found(32, (32,)) == []


def test_a_network_that_says_the_same_while_the_loss_pulls_its_outputs_apart() -> None:
    same = replace(OUTPUT, shape=(32, 1), spread=1e-4, predictions=1, labels=None, classes=1)
    assert findings_of(ConstantOutputCheck(), *[same] * 8) == []
    assert len(findings_of(ConstantOutputCheck(), *[replace(same, is_pulled_apart=True)] * 3)) == 1
