"""Options are defined once: what a user can pass, what is validated and what help() shows agree."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
import torch

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.integrations.training_run import RunOptions
from fmapboard.options import Options, WatchOptions
from fmapboard.render.palettes import palette

NAMES = [field.name for field in fields(Options)]


def test_the_keyword_options_of_watch_are_those_that_are_validated() -> None:
    assert sorted(get_type_hints(WatchOptions)) == sorted(NAMES)


def test_watch_has_at_most_32_parameters_and_shows_each_with_its_default() -> None:
    shown = inspect.signature(fmapboard.watch).parameters
    assert len(shown) <= 32
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
    with pytest.raises(ConfigurationError, match="no option 'smaples'; closest: samples"):
        Options.of(smaples=3)  # type: ignore[call-arg]


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
