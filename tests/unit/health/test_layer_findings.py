"""Layers that are not finite or dead: which are found in a table, since when, in which order."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.training_facts import FirstNonfinite, Nonfinite
from fmapboard.health.layer_findings import NonfiniteLayer, dead_layers, first_nonfinite
from fmapboard.health.table import HealthRow, HealthTable

STEPS = tuple(range(0, 100, 10))


def table(
    rows: int = 3,
    *,
    steps: tuple[int, ...] = STEPS,
    written: int | None = None,
    since: dict[str, dict[int, int]] | None = None,
    first: FirstNonfinite | None = None,
    facts: dict[int, dict[str, Any]] | None = None,
    **columns: dict[int, list[float]],
) -> HealthTable:
    """Healthy layers ``conv0``, ``conv1``, ... with the given values of some rows."""
    healthy = {"minimum": -1.0, "maximum": 1.0, "nonfinite": 0.0, "constant": 0.0, "dead": 0.0}
    healthy |= {"dead_lasting": 0.0, "change": 0.1, "weights_change": 0.01}
    whole = {name: np.full((len(steps), rows), value) for name, value in healthy.items()}
    for name, given in columns.items():
        for row, values in given.items():
            whole[name][:, row] = values
    layers = []
    for row in range(rows):
        known = {"label": f"conv{row}", "layer": f"conv{row}", "type": "Conv2d", "call": 1}
        known |= {"kernel_shape": (8, 8, 3, 3), "position": row, "channels": 64, "values": 2048}
        known |= (facts or {}).get(row, {})
        key = f"fmapboard/conv{row}"
        layers.append(HealthRow(LayerFacts(**known), "", key, key))
    return HealthTable(
        "run", steps, written or len(steps), tuple(layers), whole, since or {}, first
    )


def from_step(index: int, value: float, before: float = 0.0) -> list[float]:
    return [before] * index + [value] * (len(STEPS) - index)


def only(of: HealthTable) -> NonfiniteLayer:
    found = first_nonfinite(of)
    assert found is not None
    return found


def dead(rows: int = 3, **columns: Any) -> list[tuple[str, int, float, int]]:
    """Label, first step, share and number of layers behind of each layer that is dead."""
    of = table(rows, **columns)
    label = [row.facts.label for row in of.rows]
    return [(label[spell.row], spell.since, *more) for spell, *more in dead_layers(of)]


def test_nothing_is_found_in_a_healthy_run_or_an_empty_one() -> None:
    for of in (table(), table(0), table(steps=())):
        assert first_nonfinite(of) is None
        assert dead_layers(of) == []


def test_the_first_layer_with_nonfinite_values_stands_for_all() -> None:
    found = only(table(nonfinite={2: from_step(3, 0.5), 1: from_step(2, 0.25), 0: from_step(3, 1)}))
    assert (found.label, found.since, found.more) == ("conv1", 20, 2)
    assert found.value == 0.25
    text = "non-finite values since step 20, first in `conv1`; then in 2 further layers"
    assert found.message == text


def test_what_watch_wrote_names_the_exact_place() -> None:
    first = FirstNonfinite(20, "feature_maps", "conv1", "Conv2d", 2, Nonfinite(2, 7), 1024)
    facts = {1: {"label": "conv1.call2", "call": 2}}
    found = only(table(nonfinite={1: from_step(2, 0.5)}, first=first, facts=facts))
    assert found.message == "NaN and +Inf since step 20, first in `conv1` (call 2)"
    assert (found.since, found.index) == (20, 1)


def test_a_gradient_that_was_nonfinite_once() -> None:
    first = FirstNonfinite(37, "gradients", "conv0.weight", "", 0, Nonfinite(3), 0)
    found = only(table(first=first, nonfinite={0: from_step(4, 0.5)}))
    where = "the gradient of parameter `conv0.weight` (of such parameters the first in the model's"
    assert found.message == f"NaN at step 37, in {where} order); then in 1 further layer"
    assert (found.label, found.index, found.since) == ("", None, 37)


def test_an_input_is_told_from_an_output() -> None:
    first = FirstNonfinite(30, "inputs", "conv0", "Conv2d", 1, Nonfinite(3), 12)
    found = only(table(first=first))
    assert found.message == "NaN at step 30, first in the input of `conv0`"


def test_a_layer_without_numbers_of_its_own_is_named_by_its_class_and_call() -> None:
    first = FirstNonfinite(30, "gradients_of_maps", "other", "Conv2d", 2, Nonfinite(0, 0, 3), 12)
    found = only(table(first=first))
    where = "the gradient of the activations of layer other (Conv2d, call 2)"
    assert found.message == f"−Inf at step 30, first in {where}"


def test_dead_channels_last_and_are_counted_in_large_maps_only() -> None:
    numbers = {"dead": {1: from_step(2, 0.67)}, "dead_lasting": {1: from_step(5, 0.67)}}
    assert dead(**numbers, since={"dead": {1: 21}}) == [("conv1", 21, 0.67, 0)]
    assert dead(**numbers) == [("conv1", 20, 0.67, 0)]
    assert dead(**numbers, facts={1: {"values": 499}}) == []
    assert dead(dead={1: from_step(2, 0.67)}) == []  # other channels at each step


def test_a_layer_that_is_dead_as_a_whole_or_nearly_is_named_in_smaller_maps_too() -> None:
    whole = {"dead": {1: from_step(2, 1.0)}, "dead_lasting": {1: from_step(5, 1.0)}}
    assert dead(**whole, facts={1: {"values": 8}}) == [("conv1", 20, 1.0, 0)]
    assert dead(**whole, facts={1: {"values": 7}}) == []  # of 64 channels
    nearly = {"dead": {1: from_step(2, 0.9)}, "dead_lasting": {1: from_step(5, 0.9)}}
    assert dead(**nearly, facts={1: {"values": 9}}) == [("conv1", 20, 0.9, 0)]
    assert dead(**nearly, facts={1: {"values": 8}}) == []  # 461 of dead channels
    most = {"dead": {1: from_step(2, 0.89)}, "dead_lasting": {1: from_step(5, 0.89)}}
    assert dead(**most, facts={1: {"values": 499}}) == []


def test_layers_behind_one_that_passes_nothing_are_counted() -> None:
    for first in ("dead", "constant"):
        numbers = {name: {2: [1.0] * 10, 3: [1.0] * 10} for name in ("dead", "dead_lasting")}
        numbers.setdefault(first, {})[1] = [1.0] * 10
        if first == "dead":
            numbers["dead_lasting"][1] = [1.0] * 10
        found = [("conv1", 0, 1.0, 2)] if first == "dead" else []
        assert dead(4, **numbers) == found
    at_an_end = {name: {3: [1.0] * 10, 2: [1.0] * 10} for name in ("dead", "dead_lasting")}
    no_kernel = {3: {"kernel_shape": None}}
    assert dead(4, **at_an_end, facts=no_kernel) == [("conv2", 0, 1.0, 0)]


def test_a_damaged_record_with_lastingly_dead_channels_alone_has_no_finding() -> None:
    assert dead(dead={1: [float("nan")] * 10}, dead_lasting={1: [0.5] * 10}) == []


def test_channels_that_come_back_are_none() -> None:
    gone = [0.5] * 6 + [0.0] * 4
    assert dead(dead={0: gone}, dead_lasting={0: gone}) == []


def test_an_activation_is_named_once_with_the_layer_it_follows() -> None:
    numbers = {"dead": dict.fromkeys((0, 1), [0.5] * 10)}
    numbers["dead_lasting"] = dict.fromkeys((0, 1), from_step(3, 0.5))
    facts = {0: {"activation": "conv1"}, 1: {"type": "ReLU"}}
    assert dead(**numbers, facts=facts) == [("conv0", 0, 0.5, 0)]
    own = {name: {1: of[1]} for name, of in numbers.items()}
    assert dead(**own, facts=facts) == [("conv1", 0, 0.5, 0)]


def test_mostly_dead_layers_come_first_then_the_earliest() -> None:
    share = {4: from_step(1, 0.2), 3: from_step(2, 0.6), 2: from_step(1, 0.7), 1: from_step(0, 0.3)}
    found = dead(5, dead=share, dead_lasting=share)
    assert [label for label, *_ in found] == ["conv2", "conv3", "conv1", "conv4"]
    assert dead(dead={0: [0.09] * 10}, dead_lasting={0: [0.09] * 10}) == []


def test_a_later_call_of_an_activation_says_which_layer_it_follows() -> None:
    act = {"label": "act.call2", "layer": "act", "call": 2, "kernel_shape": None}
    facts: dict[int, dict[str, Any]] = {1: {"activation": "act.call2"}, 2: act}
    found = only(table(nonfinite={2: from_step(2, 1.0)}, facts=facts))
    assert "first in `act` (call 2, behind `conv1`)" in found.message
    alone = only(table(nonfinite={2: from_step(2, 1.0)}, facts={2: act}))
    assert "first in `act` (call 2)" in alone.message


def test_between_kept_steps_the_onset_is_not_known() -> None:
    found = only(table(nonfinite={0: from_step(2, 1.0)}, written=50))
    assert found.since == 20
    assert "since a step between 10 and 20" in found.message
    exact = only(table(nonfinite={0: from_step(2, 1.0)}, written=50, since={"nonfinite": {0: 13}}))
    assert "since step 13" in exact.message


def test_values_that_were_not_finite_for_some_steps_say_so() -> None:
    values = from_step(2, 1.0)
    values[5] = 0.0
    found = only(table(nonfinite={0: values}))
    assert "since step 20, at 88 % of the logged steps, first in" in found.message
    for ends, words in (([0, 1, 1], "from step 10 to 20, first"), ([0, 1, 0], "at step 10, first")):
        found = only(table(nonfinite={0: [float(end) for end in ends] + [0.0] * 7}))
        assert words in found.message
