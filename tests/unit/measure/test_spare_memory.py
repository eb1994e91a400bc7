"""Memory that is given back is used again for the same shape and dtype, and only then."""

from __future__ import annotations

import torch

from fmapboard.measure.spare_memory import SpareMemory


def test_what_was_given_back_is_taken_again_once() -> None:
    memory = SpareMemory()
    first = memory.take((3, 16), torch.float32)
    memory.give_back(first)
    assert memory.take((3, 16), torch.float64) is not first
    assert memory.take((4, 16), torch.float32) is not first
    assert memory.take((3, 16), torch.float32) is first
    assert memory.take((3, 16), torch.float32) is not first


def test_only_the_latest_are_kept() -> None:
    memory = SpareMemory()
    given = [torch.empty(count, 16) for count in range(1, 20)]
    for tensor in given:
        memory.give_back(tensor)
    again = [memory.take((len(tensor), 16), torch.float32) for tensor in given]
    kept = [new is old for new, old in zip(again, given, strict=True)]
    assert kept == [False] * 7 + [True] * 12
