"""The watched layers of a model know their parameters, and follow replaced modules."""

from __future__ import annotations

from torch import nn

from fmapboard.model.layers import WatchedLayers


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), nn.Conv2d(8, 8, 3))


def _no_others(model: nn.Module) -> dict[str, nn.Module]:
    return {}


def test_a_layer_that_is_watched_anyway_is_not_among_those_without_pictures() -> None:
    model = _model()
    watched = WatchedLayers(model, also={"0.1": model[0][1], "1": model[1]})
    assert list(watched.layers) == ["0.0", "1"]
    assert list(watched.numbers_only) == ["0.1"]


def test_a_replacement_is_selected_and_what_has_none_is_named() -> None:
    model = _model()
    watched = WatchedLayers(model, also={"0.1": model[0][1]})
    before = watched.layers
    assert watched.follow_replacements(_no_others) == ()
    assert watched.layers is before
    model[1] = nn.Conv2d(8, 4, 3)
    assert watched.follow_replacements(_no_others) == ()
    assert (watched.layers["1"], watched.numbers_only) == (model[1], {})
    model[0] = nn.Identity()
    assert watched.follow_replacements(_no_others) == ("0.0",)
    assert list(watched.layers) == ["1"]


def test_another_module_may_be_replaced() -> None:
    model = _model()
    watched = WatchedLayers(model, ["0.0"])
    before = watched.layers
    model[1], model[0][1] = nn.Identity(), nn.GELU()
    assert watched.follow_replacements(_no_others) == ()
    assert watched.layers is before


def test_a_layer_that_moves_is_selected_again() -> None:
    model = _model()
    watched = WatchedLayers(model)
    model[0] = nn.Sequential(nn.ReLU(), model[0][0])
    assert watched.follow_replacements(_no_others) == ("0.0",)
    assert watched.layers == {"0.1": model[0][1], "1": model[1]}


def test_if_the_patterns_match_nothing_any_more_the_remaining_layers_are_kept() -> None:
    model = _model()
    watched = WatchedLayers(model, ["0.0", "1"])
    model[0] = nn.Identity()
    assert watched.follow_replacements(_no_others) == ("0.0",)
    assert list(watched.layers) == ["1"]


def test_own_parameters_are_those_of_the_layers_and_listed_ones_also_of_modules_inside() -> None:
    model = _model()
    nn.utils.parametrizations.weight_norm(model[1])
    weights = {"1.parametrizations.weight.original0", "1.parametrizations.weight.original1"}
    of_two = WatchedLayers(model, ["0", "1"])
    assert of_two.own_parameters() == {"1.bias"} | weights
    assert of_two.listed_parameters() == {"0.0.weight", "0.0.bias", "1.bias"} | weights
    assert WatchedLayers(model).listed_parameters() is None
