"""The texts of a batch whose tokens are to be named: copies of the ids of those that are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.model.distributed import PLAIN
from fmapboard.model.tensors import is_observable, tensors
from fmapboard.records import Texts

_IDS = "input_ids"
"""How the names of arguments with ids end, in transformers."""
_NO_IDS = ("mask", "type", "position", "label")
"""In the names of arguments with other whole numbers per token."""


class PendingTexts(NamedTuple):
    """``records.Texts`` still on the device.

    Attributes:
        ids: whole numbers [S, T], a copy.
    """

    ids: Tensor

    def to_host(self) -> Texts:
        """Wait for the device and copy to the host."""
        return Texts(self.ids.cpu().numpy().astype(np.int64))


def drawn_texts(args: Any, kwargs: Mapping[str, Any], most: int | None) -> list[PendingTexts]:
    """Copies of the ids of the first texts that a network receives, one entry per length.

    Args:
        args: what the network was called with.
        kwargs: likewise.
        most: how many texts to copy; None copies all.
    """
    found = []
    for ids in ids_by_length(args, kwargs).values():
        with aside(ids.device.type):
            found.append(PendingTexts(ids[:most].detach().clone()))
    return found


def ids_by_length(args: Any, kwargs: Mapping[str, Any]) -> dict[int, Tensor]:
    """Number of tokens per text -> the first ids [N, T] of that length that a network receives.

    Ids are whole numbers. Arguments called ``input_ids`` come first, and those called a mask,
    types, positions or labels are none.

    Args:
        args: what the network was called with.
        kwargs: likewise.
    """
    named = [(name, tensor) for name, tensor in _named(args, kwargs) if _may_be_ids(tensor)]
    named = [(name, tensor) for name, tensor in named if not any(no in name for no in _NO_IDS)]
    named.sort(key=lambda entry: not entry[0].endswith(_IDS))
    found: dict[int, Tensor] = {}
    for _, ids in named:
        found.setdefault(ids.shape[1], ids)
    return found


def is_only_text(args: Any, kwargs: Mapping[str, Any]) -> bool:
    """True if a network receives the ids of one text per sample and, besides, nothing but masks.

    Masks are boolean, or their arguments are called so; types, positions and labels are ignored.

    Args:
        args: what the network was called with.
        kwargs: likewise.
    """
    given = [
        tensor
        for name, tensor in _named(args, kwargs)
        if tensor.dtype != torch.bool and not any(no in name for no in _NO_IDS)
    ]
    return len(given) == 1 and _may_be_ids(given[0])


def _named(args: Any, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """All tensors, with the names of the arguments that hold them, "" without one."""
    named = [*kwargs.items()]
    for argument in args:
        named += argument.items() if isinstance(argument, Mapping) else [("", argument)]
    for name, value in named:
        for tensor in tensors(value):
            yield str(name), tensor


def _may_be_ids(tensor: Tensor) -> bool:
    if tensor.dim() != 2 or tensor.shape[1] < 2 or type(tensor) not in PLAIN:
        return False
    is_whole = not (tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized)
    return is_whole and tensor.dtype != torch.bool and is_observable(tensor)
