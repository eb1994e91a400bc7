"""Options are defined once: what a user can pass, what is validated and what help() shows agree."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
import torch
from torch import nn
from torchvision.transforms import transforms as v1
from torchvision.transforms import v2

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.integrations.training_run import RunOptions, checked
from fmapboard.options import Options, WatchOptions
from fmapboard.render.palettes import palette

NAMES = [field.name for field in fields(Options)]


def test_the_keyword_options_of_watch_are_those_that_are_validated() -> None:
    assert sorted(get_type_hints(WatchOptions)) == sorted(NAMES)


def test_watch_has_at_most_36_parameters_and_shows_each_with_its_default() -> None:
    shown = inspect.signature(fmapboard.watch).parameters
    assert len(shown) <= 36
    assert {name: shown[name].default for name in NAMES} == {
        field.name: field.default for field in fields(Options)
    }


def test_every_parameter_of_watch_is_documented() -> None:
    text = inspect.getdoc(fmapboard.watch) or ""
    for name in inspect.signature(fmapboard.watch).parameters:
        assert f"\n    {name}: " in text, name


def test_the_integrations_pass_on_every_option_except_those_that_they_set() -> None:
    own = {"share_writer", "log_dir", "layers", "validation"}
    assert set(RunOptions.__annotations__) - own == set(NAMES) - {"every", "start_step"}


def test_an_unknown_option_is_refused_with_the_closest_name() -> None:
    with pytest.raises(ConfigurationError, match=r"no option 'smaples'; closest: samples"):
        Options.of(smaples=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("logdir", "log_dir"), ("layer", "layers"), ("optimiser", "optimizer"),
        ("Every", "every"), ("num_samples", "samples"), ("normalize", "normalization"),
        ("_start_steps", "start_step"),
    ],
)  # fmt: skip
def test_watch_names_the_closest_of_all_its_options(given: str, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^no option '{given}'; closest: {meant}\b"):
        fmapboard.watch(nn.Conv2d(1, 1, 1), **{given: None})  # type: ignore[arg-type]


def test_an_option_that_resembles_none_is_refused_with_where_they_are_listed() -> None:
    with pytest.raises(ConfigurationError) as error:
        fmapboard.watch(nn.Conv2d(1, 1, 1), bananas=1)  # type: ignore[call-arg]
    assert str(error.value) == "no option 'bananas'; help(fmapboard.watch) lists them"


def test_an_integration_names_only_options_that_it_takes() -> None:
    with pytest.raises(ConfigurationError, match=r"no option 'logdir'; closest: log_dir$"):
        checked(10, logdir="x")
    with pytest.raises(ConfigurationError, match=r"no option 'freq'; help\("):
        checked(10, freq=None)


@pytest.mark.parametrize("others", [("x",), ("x", 100)])
def test_what_is_passed_by_position_is_refused_with_the_call_that_works(
    others: tuple[Any, ...],
) -> None:
    model = nn.Conv2d(1, 1, 1)
    with pytest.raises(ConfigurationError) as error:
        fmapboard.watch(model, torch.optim.SGD(model.parameters()), *others)  # type: ignore[arg-type]
    kinds = ", ".join(["SGD", *(type(each).__name__ for each in others)])
    assert str(error.value) == (
        f"watch(model, {kinds}): expected only the model and log_dir by position, all else by "
        "name: watch(model, log_dir, optimizer=optimizer, every=100)"
    )


@pytest.mark.parametrize("transforms", [v1, v2])
def test_a_normalize_transform_is_a_normalization(transforms: Any) -> None:
    given = transforms.Normalize([0.5, 0.25], (1, 2))
    assert Options.of(normalization=given).normalization == ((0.5, 0.25), (1.0, 2.0))


@pytest.mark.parametrize(
    "given", [([0.5, 0.25], [1, 2]), (torch.tensor([0.5, 0.25]), torch.tensor([1.0, 2.0]))]
)
def test_a_normalization_is_a_mean_and_a_deviation_per_channel(given: Any) -> None:
    assert Options.of(normalization=given).normalization == ((0.5, 0.25), (1.0, 2.0))


@pytest.mark.parametrize("given", [(0.5, 0.5), ((0.5,), (0.5, 0.5)), ((), ()), "ab", ((0.5,),)])
def test_a_normalization_that_is_not_a_pair_is_refused(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"expected \(mean, std\), each a sequence"):
        Options.of(normalization=given)


def test_gray_means_grey() -> None:
    assert Options.of(colormap="gray") == Options.of(colormap="grey")
    assert palette("gray").name == "grey"


def test_statistics_of_all_ranks_exclude_dropped_steps() -> None:
    with pytest.raises(ConfigurationError, match="each rank would drop other steps"):
        Options(reduce_statistics=True, when_full="drop_oldest")
