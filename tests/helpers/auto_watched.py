"""Trainings whose models are watched without a call of ``watch``, as ``fmapboard run`` does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from torch.optim import Optimizer

from fmapboard.auto_watch import AutoWatch


class Watching:
    """An `AutoWatch`, and the lines it says."""

    def __init__(self, folder: Path, every: int) -> None:
        self.lines: list[str] = []
        self.watch = AutoWatch(str(folder), every, {}, self.lines.append, False)

    def found(self) -> dict[str | None, str]:
        """Name of each model that is watched -> its type."""
        return {each.name: type(each.model()).__name__ for each in self.watch.watched}

    def steps(self) -> list[int]:
        """How many steps each model has taken."""
        return [each.steps.next for each in self.watch.watched]


@contextlib.contextmanager
def watching(folder: Path, every: int = 3) -> Iterator[Watching]:
    """Know each optimizer that is created in the block."""
    found = Watching(folder, every)
    original: Any = Optimizer._patch_step_function

    def patched(optimizer: Optimizer) -> None:
        original(optimizer)
        found.watch.created(optimizer)

    with mock.patch.object(Optimizer, "_patch_step_function", patched):
        yield found
    found.watch.close()
