"""Layers selected by their place among those that are watched by default."""

from __future__ import annotations

import pytest
from torch import nn

from fmapboard import ConfigurationError, LayerNotFound
from fmapboard.model.layers import select


def network() -> nn.Sequential:
    """Four convolutions, named 0, 2, 4 and 6."""
    layers: list[nn.Module] = []
    for _ in range(4):
        layers += [nn.Conv2d(3, 3, 1), nn.ReLU()]
    return nn.Sequential(*layers)


def test_an_index_counts_the_layers_that_are_watched_by_default() -> None:
    assert list(select(network(), 2)) == ["4"]
    assert list(select(network(), -1)) == ["6"]
    assert list(select(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), 0)) == ["1"]


def test_a_slice_selects_several_layers_in_definition_order() -> None:
    assert list(select(network(), slice(0, 2))) == ["0", "2"]
    assert list(select(network(), slice(None, None, -2))) == ["2", "6"]


def test_an_index_can_be_in_a_list_with_names_and_exclusions() -> None:
    assert list(select(network(), ["1", 3])) == ["1", "6"]
    assert list(select(network(), [slice(1, 4), "!4"])) == ["2", "6"]


@pytest.mark.parametrize("place", [4, -5, slice(4, 9)])
def test_a_place_without_a_layer_is_refused_with_the_places_that_there_are(
    place: int | slice,
) -> None:
    with pytest.raises(LayerNotFound, match=r"none of the 4 layers .* numbered from 0 to 3"):
        select(network(), place)


@pytest.mark.parametrize("layers", [True, [False]])
def test_a_truth_value_is_no_index(layers: object) -> None:
    with pytest.raises(ConfigurationError, match="an index, a slice, a list of these"):
        select(network(), layers)  # type: ignore[arg-type]
