"""Routers that are not found by their structure are named with ``routers=``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from fmapboard.errors import ConfigurationError, LayerNotFound
from fmapboard.model.layers import WatchedLayers


def gate() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))


def network() -> nn.ModuleDict:
    """A convolution, and two gates in no block."""
    return nn.ModuleDict({"conv": nn.Conv2d(3, 8, 3), "gate1": gate(), "gate2": gate()})


def test_without_the_option_a_gate_in_no_block_is_no_router() -> None:
    watched = WatchedLayers(network())
    assert list(watched.layers) == ["conv"]
    assert watched.parts == {}


@pytest.mark.parametrize("how", ["glob", "names", "modules"])
def test_named_routers_are_watched_beside_what_layers_selects(how: str) -> None:
    model = network()
    given: dict[str, Any] = {
        "glob": {"gate?": 2},
        "names": {"gate1": 2, "gate2": 2},
        "modules": {model["gate1"]: 2, model["gate2"]: 2},
    }
    for layers in (None, "conv"):
        watched = WatchedLayers(model, layers, routers=given[how])
        assert list(watched.layers) == ["conv", "gate1", "gate2"]
        part = watched.parts["gate2"]
        assert (part.shape, part.unit, part.features, part.chosen) == (
            "Experts 4, top 2",
            "expert",
            4,
            2,
        )


def test_the_number_that_is_chosen_is_that_of_a_module_around_the_router_or_of_its_config() -> None:
    model = network()
    model.config = SimpleNamespace(num_experts_per_tok=3)  # type: ignore[assignment]
    assert WatchedLayers(model, routers="gate1").parts["gate1"].shape == "Experts 4, top 3"
    model["gate1"].top_k = 1  # type: ignore[assignment]
    assert WatchedLayers(model, routers=["gate1"]).parts["gate1"].shape == "Experts 4, top 1"
    assert WatchedLayers(model, routers={"gate1": 2}).parts["gate1"].shape == "Experts 4, top 2"


def test_a_router_stays_one_when_the_layers_are_selected_again() -> None:
    model = network()
    watched = WatchedLayers(model, "conv", routers={"gate1": 2})
    model["conv"] = nn.Conv2d(3, 4, 3)
    assert watched.follow_replacements(lambda _: {}) == ()
    assert list(watched.layers) == ["conv", "gate1"]
    assert list(watched.parts) == ["gate1"]


@pytest.mark.parametrize(
    ("routers", "said"),
    [
        ("gate3", "routers='gate3' matches no layer among 10; closest: gate"),
        (nn.Linear(2, 2), "routers=Linear: this module is not part of the model"),
    ],
)
def test_a_router_that_is_not_there_is_refused(routers: Any, said: str) -> None:
    with pytest.raises(LayerNotFound) as error:
        WatchedLayers(network(), routers=routers)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize(
    ("routers", "said"),
    [
        (
            "gate1",
            "routers='gate1': nothing says how many of its 4 experts are chosen for each token; "
            "pass it: routers={'gate1': 2}",
        ),
        (
            {"gate1": 4},
            "routers='gate1': 4 of 4 experts are chosen for each token; expected fewer than there "
            "are",
        ),
        (
            {"gate1.1": 2},
            "routers='gate1.1': no linear layer in it says how many experts there are; name the "
            "module that returns a number for each expert",
        ),
        (
            {"gate1": 0},
            "routers={'gate1': 0}: expected how many experts are chosen for each token, a whole "
            "number of at least 1",
        ),
        (
            [3],
            "routers=3: expected the name of a layer, a module, a list of these, or a mapping of "
            "them to the number of experts that are chosen for each token",
        ),
    ],
)
def test_what_says_too_little_of_a_router_is_refused(routers: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        WatchedLayers(network(), routers=routers)
    assert str(error.value) == said
