"""A network whose layers return constants."""

from __future__ import annotations

import pytest
from check_records import Rules, layer, record, statistics

from fmapboard.checks import NotRecorded
from fmapboard.health.rules import ZeroWeightsCheck


def test_layers_that_are_all_constant_have_equal_weights() -> None:
    constant = statistics(*[(0.1 * v, 0.1 * v, 0.1 * v, 0.0) for v in range(16)])
    varied = statistics(*[(-1.0, 1.0, v / 16, 0.5) for v in range(16)])
    both = record(first={"conv1": constant, "conv2": constant})
    (found,) = Rules("copied_channels")(both)
    assert (found.kind, found.layer, found.value) == ("zero_weights", "conv1", 1.0)
    assert ZeroWeightsCheck()(both) == [found]
    for few in ({"conv1": constant}, {"conv1": constant, "conv2": varied}):
        assert Rules("copied_channels")(record(first=few)) == []


def test_constant_layers_behind_a_single_channel_are_silent() -> None:
    constant = statistics(*[(0.0, 0.0, 0.0, 0.0)] * 16)
    for place, count in ((0, 0), (1, 0), (2, 0), (3, 1)):
        layers = [layer(i, channels=1 if i == place else 64) for i in range(6)]
        first = {"conv1": constant, "conv2": constant}
        assert len(ZeroWeightsCheck()(record(layers, first=first))) == count


def test_without_the_first_step_constant_layers_are_not_recorded() -> None:
    with pytest.raises(NotRecorded, match="fmapboard_first"):
        ZeroWeightsCheck()(record())
