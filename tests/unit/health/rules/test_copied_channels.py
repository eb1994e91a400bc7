"""Channels that start as copies of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_records import layer, record, statistics, two_calls

from fmapboard.checks import NotRecorded
from fmapboard.health import copies
from fmapboard.health.rules import CopiedChannelsCheck


def test_copied_channels_from_a_quarter_of_the_layer_on() -> None:
    def channels(copies: int) -> dict[str, list[float]]:
        rows = [(-1.0, 1.0, v / 16, 0.5) for v in range(16)]
        return statistics(*[rows[0]] * copies, *rows[copies:])

    (found,) = CopiedChannelsCheck()(record(first={"conv1": channels(4)}))
    assert (found.layer, found.since_step, found.value) == ("conv1", 0, 0.25)
    assert CopiedChannelsCheck()(record(first={"conv1": channels(3)})) == []


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
    same = copies._same

    def counted(one: Any, other: Any) -> Any:
        compared.append(len(one))
        return same(one, other)

    monkeypatch.setattr(copies, "_same", counted)
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


def test_copies_may_differ_by_an_offset_but_not_by_a_factor() -> None:
    shifted = statistics(*((-1.0 + i, 1.0 + i, 0.25 + i, 0.5) for i in range(8)))
    assert len(CopiedChannelsCheck()(record(first={"conv1": shifted}))) == 1
    scaled = statistics(*((-f, f, 0.25 * f, 0.5 * f) for f in map(float, range(1, 9))))
    assert CopiedChannelsCheck()(record(first={"conv1": scaled})) == []


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


def test_copies_in_a_second_call_are_named_as_in_the_tab() -> None:
    copies = {"act.call2": statistics(*[(-1.0, 1.0, 0.25, 0.5)] * 8)}
    (found,) = CopiedChannelsCheck()(record(two_calls(), first=copies))
    assert "drawn channels in `act` (call 2, behind `conv2`) have a copy" in found.message
    assert found.layer == "act.call2"
