"""Optimizers are found among all objects of the process, without disturbing other threads."""

from __future__ import annotations

import threading

import torch
from torch import nn

from fmapboard.gradients.optimizers import holding


class Own(torch.optim.SGD):
    """A user's subclass."""


def test_the_optimizers_that_hold_a_parameter_are_found() -> None:
    first, second, third = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    one = torch.optim.Adam(first.parameters())
    other = Own(second.parameters(), lr=0.1)
    assert holding({id(first.weight), id(second.bias)}) in ([one, other], [other, one])
    assert holding({id(third.weight)}) == []


def test_an_optimizer_that_is_gone_holds_nothing() -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    assert holding({id(layer.weight)}) == [optimizer]
    del optimizer
    assert holding({id(layer.weight)}) == []


def test_a_search_does_not_break_tuples_that_other_threads_build() -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    is_over, errors, built = threading.Event(), [], 0

    def build() -> None:
        nonlocal built
        while not is_over.is_set():
            try:
                tuple(number for number in range(1000))
            except SystemError as error:
                errors.append(error)
            built += 1

    thread = threading.Thread(target=build)
    thread.start()
    try:
        for _ in range(10):
            assert holding({id(layer.weight)}) == [optimizer]
    finally:
        is_over.set()
        thread.join()
    assert built > 0
    assert errors == []
