"""Run a recipe of examples/recipes in this process, with or without fmapboard."""

from __future__ import annotations

import logging
import runpy
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from module_hooks import hook_count
from torch import Tensor, nn

import fmapboard

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"


class NoBoard:
    """Stands in for the logger of `fmapboard.watch` and does nothing."""

    def __enter__(self) -> NoBoard:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def before_clipping(self) -> None:
        pass

    def close(self) -> None:
        pass


class WarningCollector(logging.Handler):
    """Collects the warnings that fmapboard logs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def names_of(recipe: str) -> dict[str, Any]:
    """The names that a recipe's script defines."""
    return runpy.run_path(str(RECIPES / f"{recipe}.py"), run_name=recipe)


def train(recipe: str, logdir: Path, *, steps: int, every: int) -> dict[str, Tensor]:
    """Train as the recipe does; return the trained parameters and buffers.

    Raises:
        AssertionError: fmapboard warned, or left a hook.
    """
    heard, ours = WarningCollector(), logging.getLogger("fmapboard")
    ours.addHandler(heard)
    try:
        model: nn.Module = names_of(recipe)["train"](steps, every, logdir)
    finally:
        ours.removeHandler(heard)
    assert heard.messages == []
    assert hook_count(model) == 0
    return model.state_dict()


def train_unwatched(recipe: str, logdir: Path, *, steps: int) -> dict[str, Tensor]:
    """`train` with `fmapboard.watch` replaced by a function that does nothing."""

    def nothing(*_: Any, **__: Any) -> NoBoard:
        return NoBoard()

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(fmapboard, "watch", nothing))
        if recipe == "diffusion":
            patches.enter_context(mock.patch("fmapboard.integrations.accelerate.watch", nothing))
        return train(recipe, logdir, steps=steps, every=1)
