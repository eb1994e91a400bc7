"""``ParameterVersions``: whether a model has changed, without reading its parameters' values."""

from __future__ import annotations

import weakref

import torch
from torch import nn

_MAX_PARAMETERS = 16

Versions = tuple[int | None, ...]
"""Version counters of parameters; None for one that is gone or has no counter."""


class ParameterVersions:
    """Reads the version counters of up to 16 of a model's parameters, from any thread.

    Every in-place change of a tensor, such as an optimizer's, increments its counter. The
    parameters are held by weak references; they are spread evenly over those that require a
    gradient now, or over all if none does.

    >>> layer = nn.Linear(2, 2)
    >>> versions = ParameterVersions(layer)
    >>> before = versions.read()
    >>> nn.init.zeros_(layer.weight).sum().item()
    0.0
    >>> most_changes(before, versions.read())
    1
    """

    def __init__(self, model: nn.Module) -> None:
        own = list(model.parameters())
        own = [p for p in own if p.requires_grad] or own
        count = min(len(own), _MAX_PARAMETERS)
        self._parameters = [weakref.ref(own[i * len(own) // count]) for i in range(count)]

    def read(self) -> Versions:
        """The current version counters; takes about 3 µs."""
        with torch._C.DisableTorchFunction():  # a mode of the user's must not see the reading
            return tuple(map(_version, self._parameters))

    def ids(self) -> set[int]:
        """The ``id`` of each parameter that still exists."""
        return {id(p) for reference in self._parameters if (p := reference()) is not None}


def most_changes(before: Versions, after: Versions) -> int:
    """How often the parameter that was changed most often was changed between two readings."""
    pairs = zip(before, after, strict=True)
    return max((b - a for a, b in pairs if a is not None and b is not None), default=0)


def _version(reference: weakref.ref[nn.Parameter]) -> int | None:
    parameter = reference()
    try:
        return None if parameter is None else parameter._version
    except RuntimeError:  # an inference tensor has no counter
        return None
