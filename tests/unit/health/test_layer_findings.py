"""Findings: which facts of a table are reported, since when, in which words and order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.training_facts import FirstNonfinite, Nonfinite
from fmapboard.health.layer_findings import LINES, LayerFinding, findings
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


def only(of: HealthTable) -> LayerFinding:
    (found,) = findings(of)
    return found


def test_nothing_is_found_in_a_healthy_run_or_an_empty_one() -> None:
    assert findings(table()) == []
    assert findings(table(0)) == []
    assert findings(table(steps=())) == []


def test_the_first_layer_with_nonfinite_values_stands_for_all() -> None:
    found = only(table(nonfinite={2: from_step(3, 0.5), 1: from_step(2, 0.25), 0: from_step(3, 1)}))
    assert (found.kind, found.severity, found.label) == ("nonfinite", 3, "conv1")
    assert (found.since, found.after, found.until, found.more) == (20, None, None, 2)
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


def test_large_values_that_came_and_went() -> None:
    values = [1.0] * 4 + [2e5, 3e5] + [1.0] * 4
    found = only(table(maximum={2: values}))
    assert (found.kind, found.severity, found.value) == ("large", 2, 3e5)
    assert found.message == "magnitudes up to 3e+05 in `conv2` from step 40 to 50"


def test_a_negative_extreme_is_large_too() -> None:
    assert only(table(minimum={0: from_step(9, -1e4)})).message.endswith("since step 90")


def test_dead_channels_last_and_are_counted_in_large_maps_only() -> None:
    dead = {"dead": {1: from_step(2, 0.67)}, "dead_lasting": {1: from_step(5, 0.67)}}
    found = only(table(**dead, since={"dead": {1: 21}}))
    assert (found.severity, found.since, found.value) == (2, 21, 0.67)
    assert found.message == "67 % of 64 channels dead in `conv1` since step 21"
    from_kept = only(table(**dead)).message
    assert from_kept.endswith("since step 20")
    small = {1: {"values": 499}}
    assert findings(table(**dead, facts=small)) == []
    assert findings(table(dead={1: from_step(2, 0.67)})) == []  # other channels at each step


def test_a_layer_that_is_dead_as_a_whole_is_named_in_smaller_maps_too() -> None:
    whole = {"dead": {1: from_step(2, 1.0)}, "dead_lasting": {1: from_step(5, 1.0)}}
    assert only(table(**whole, facts={1: {"values": 8}})).value == 1.0
    assert findings(table(**whole, facts={1: {"values": 7}})) == []  # of 64 channels
    nearly = {"dead": {1: from_step(2, 0.98)}, "dead_lasting": {1: from_step(5, 0.98)}}
    assert findings(table(**nearly, facts={1: {"values": 499}})) == []


def test_a_damaged_record_with_lastingly_dead_channels_alone_has_no_finding() -> None:
    unknown = [float("nan")] * 10
    assert findings(table(dead={1: unknown}, dead_lasting={1: [0.5] * 10})) == []


def test_shares_are_rounded_as_in_the_tab() -> None:
    dead = {"dead": {0: [0.125] * 10}, "dead_lasting": {0: [0.125] * 10}}
    found = only(table(**dead, facts={0: {"channels": 8}}))
    assert found.message == "13 % of 8 channels dead in `conv0` since step 0"


def test_a_share_that_grows_is_given_at_its_first_and_its_last_step() -> None:
    share = [0.0, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 1.0]
    lasting = [0.0] * 5 + [0.2, 0.4, 0.6, 0.8, 1.0]
    found = only(table(dead={0: share}, dead_lasting={0: lasting}))
    assert found.message == (
        "channels dead in `conv0` since step 20: 20 % of 64 at step 20, 100 % at step 90"
    )
    assert (found.severity, found.value) == (2, 1.0)


def test_an_activation_is_named_once_with_the_layer_it_follows() -> None:
    dead = {"dead": dict.fromkeys((0, 1), [0.5] * 10)}
    dead["dead_lasting"] = dict.fromkeys((0, 1), from_step(3, 0.5))
    facts = {0: {"activation": "conv1"}, 1: {"type": "ReLU"}}
    found = only(table(**dead, facts=facts))
    assert found.label == "conv0"
    assert found.message.startswith("50 % of 64 channels dead in `conv0` (after `conv1`)")


def test_a_later_call_of_an_activation_is_named_as_in_the_tab() -> None:
    dead = {"dead": {0: [0.5] * 10}, "dead_lasting": {0: from_step(3, 0.5)}}
    facts = {0: {"activation": "act.call2"}, 1: {"label": "act.call2", "layer": "act", "call": 2}}
    found = only(table(**dead, facts=facts))
    assert "channels dead in `conv0` (after `act`, call 2)" in found.message
    own = {"dead": {1: [0.5] * 10}, "dead_lasting": {1: from_step(3, 0.5)}}
    found = only(table(**own, facts=facts))
    assert "channels dead in `act` (call 2, behind `conv0`)" in found.message


def test_an_activation_with_large_values_is_named_once() -> None:
    large = dict.fromkeys((0, 1), from_step(2, 1e5))
    facts = {0: {"activation": "conv1"}, 1: {"type": "ReLU"}}
    assert only(table(maximum=large, facts=facts)).label == "conv0"
    assert only(table(maximum={1: large[1]}, facts=facts)).label == "conv1"


def test_dead_channels_are_news_until_their_values_are_not_finite() -> None:
    dead = [0.5] * 6 + [0.0] * 4
    gone = {"dead": {0: dead}, "dead_lasting": {0: dead}}
    assert findings(table(**gone)) == []
    listed = findings(table(**gone, nonfinite={0: from_step(6, 1.0)}))
    assert [found.kind for found in listed] == ["nonfinite", "dead"]
    assert listed[1].message == "50 % of 64 channels dead in `conv0` from step 0 to 50"


def test_constant_channels_are_told_from_dead_ones() -> None:
    flat = {"constant": {0: [0.5] * 10}}
    unknown = {"dead": {0: [np.nan] * 10}, "dead_lasting": {0: [np.nan] * 10}}
    assert only(table(**flat, **unknown)).kind == "constant"
    dead = {"dead": {0: [0.5] * 10}, "dead_lasting": {0: [0.5] * 10}}
    assert only(table(**flat, **dead)).kind == "dead"  # of an activation these are the same


def test_unchanged_weights_are_one_line() -> None:
    still = dict.fromkeys((0, 1), [np.nan] + [0.0] * 9)
    found = only(table(weights_change=still))
    text = "weights of `conv0` unchanged since step 10, and those of 1 further layer"
    assert (found.severity, found.message) == (1, text)
    assert found.since == 10
    assert findings(table(weights_change={0: from_step(8, 0.0, before=0.1)})) == []


def test_unchanged_weights_begin_at_the_first_step_that_is_marked() -> None:
    still = {0: from_step(3, 0.0, before=0.1)}
    same = {"unchanged": {0: 20}}
    exact = only(table(weights_change=still, since=same))
    assert (exact.since, exact.after) == (30, None)
    assert exact.message == "weights of `conv0` unchanged since step 30 (the same as at step 20)"
    gaps = only(table(weights_change=still, since=same, written=50))
    assert (gaps.since, gaps.after) == (30, 20)
    assert "unchanged since a step between 20 and 30" in gaps.message
    later = only(table(weights_change=still, since={"unchanged": {0: 27}}, written=50))
    assert "between 27 and 30 (the same as at step 27)" in later.message


def test_a_later_call_of_an_activation_says_which_layer_it_follows() -> None:
    act = {"label": "act.call2", "layer": "act", "call": 2, "kernel_shape": None}
    facts: dict[int, dict[str, Any]] = {1: {"activation": "act.call2"}, 2: act}
    found = only(table(nonfinite={2: from_step(2, 1.0)}, facts=facts))
    assert "first in `act` (call 2, behind `conv1`)" in found.message
    alone = only(table(nonfinite={2: from_step(2, 1.0)}, facts={2: act}))
    assert "first in `act` (call 2)" in alone.message


def test_between_kept_steps_the_onset_is_not_known() -> None:
    found = only(table(nonfinite={0: from_step(2, 1.0)}, written=50))
    assert (found.since, found.after) == (20, 10)
    assert "since a step between 10 and 20" in found.message
    exact = only(table(nonfinite={0: from_step(2, 1.0)}, written=50, since={"nonfinite": {0: 13}}))
    assert (exact.since, exact.after) == (13, None)


def test_a_state_with_interruptions_says_so() -> None:
    values = from_step(2, 1e5)
    values[5] = 1.0
    found = only(table(maximum={0: values}))
    assert found.message.endswith("since step 20, at 88 % of the logged steps")


def test_the_most_severe_comes_first_then_the_earliest() -> None:
    listed = findings(
        table(
            6,
            maximum={5: from_step(1, 1e6), 4: from_step(3, 1e6)},
            nonfinite={3: from_step(8, 1.0)},
            weights_change={0: [0.0] * 10},
        )
    )
    order = [(found.kind, found.label) for found in listed]
    assert order == [
        ("nonfinite", "conv3"), ("large", "conv5"), ("large", "conv4"), ("unchanged", "conv0")
    ]  # fmt: skip


@pytest.mark.parametrize(("layers", "more"), [(LINES, 0), (LINES + 7, 7)])
def test_many_layers_with_one_fault_are_counted(layers: int, more: int) -> None:
    listed = findings(table(layers, maximum={row: from_step(1, 1e6) for row in range(layers)}))
    assert [found.more for found in listed] == [0] * (LINES - 1) + [more]
