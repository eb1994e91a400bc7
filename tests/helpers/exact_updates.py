"""Trainings of which every update is known exactly, beside what fmapboard has logged of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from fmapboard.records import LoggedStep

Ratios = dict[str, float]


class Exact:
    """The ratio |change| / |value| of each parameter, in float64.

    Attributes:
        ratios: one dict per measured update; parameters whose norm was 0 are left out.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self.ratios: list[Ratios] = []

    @contextmanager
    def update(self) -> Iterator[None]:
        """Measure what happens to the parameters in the block."""
        before = self._values()
        yield
        after = self._values()
        self.ratios.append(
            {
                name: float((after[name] - old).norm() / old.norm())
                for name, old in before.items()
                if old.norm()
            }
        )

    def _values(self) -> dict[str, Tensor]:
        return {n: p.detach().double().clone() for n, p in self._model.named_parameters()}


def of_group(step: LoggedStep, group: str) -> Ratios:
    """Name -> value of the scalars of a group."""
    found = (tag.split("/", 1) for tag in step.scalars if "/" in tag)
    return {name: step.scalars[f"{kind}/{name}"] for kind, name in found if kind == group}


def update_ratios(step: LoggedStep) -> Ratios:
    return of_group(step, "update_ratio")


def largest_error(found: Ratios, exact: Ratios) -> float:
    """Largest relative error; the names must agree."""
    assert set(found) == set(exact)
    return max(abs(found[name] / ratio - 1) for name, ratio in exact.items())
