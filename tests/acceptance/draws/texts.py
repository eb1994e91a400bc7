"""Batches of words and letters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

import torch
from data import Draw
from torch import Generator, Tensor
from torch.nn import functional


def reviews(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """24 words of 200, of which 20 praise and 20 blame; whether more of them praise."""
    kind = torch.randint(2, (count,), generator=generator)
    x = torch.randint(40, 200, (count, 24), generator=generator)
    told, side = torch.rand(count, 24, generator=generator), 20 * kind[:, None]
    x = torch.where(told < 0.25, x % 20 + side, x)
    return torch.where(told > 0.92, x % 20 + 20 - side, x), kind


def tickets(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """30 words of 300, of which each of 5 departments has 12 of its own; and the department."""
    kind = torch.randint(5, (count,), generator=generator)
    x = torch.randint(300, (count, 30), generator=generator)
    told = torch.rand(count, 30, generator=generator)
    return torch.where(told < 0.15, x % 12 + 12 * kind[:, None], x), kind


SPOKEN = (1.2 * torch.randn(5, 26, generator=Generator().manual_seed(3))).softmax(1)


def names(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Ten letters of a name, and its language."""
    kind = torch.randint(5, (count,), generator=generator)
    return torch.multinomial(SPOKEN[kind], 10, True, generator=generator), kind


CHARS = torch.tensor([min(ord(character), 127) for character in inspect.getsource(functional)])


def text(length: int, generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of a source file."""
    start = torch.randint(len(CHARS) - length, (count, 1), generator=generator)
    return (CHARS[start + torch.arange(length)],)


TEXT = partial(text, 32)

LETTERS = torch.tensor([ord(letter) for letter in "".join(topics.values()) if ord(letter) < 127])


def letters(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of Python's manual, 26 letters each."""
    first = torch.randint(len(LETTERS) - 26, (count, 1), generator=generator)
    return (LETTERS[first + torch.arange(26)],)


def words(kinds: int, length: int, answer: Callable[[Tensor], Tensor]) -> Draw:
    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x = torch.randint(kinds, (count, length), generator=generator)
        return x, answer(x)

    return draw


def contexts(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Five words of one of 8 topics, and any other word."""
    topic, other = torch.randint(8, (count, 1)), torch.randint(64, (count, 1))
    return (torch.cat([8 * torch.randint(8, (count, 5), generator=generator) + topic, other], 1),)


DOCS = torch.tensor(
    [
        ord(letter)
        for page in sorted((Path(__file__).parents[3] / "docs").glob("*.md"))
        for letter in page.read_text(encoding="utf-8")
        if ord(letter) < 127
    ]
)


def docs(length: int, generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of fmapboard's own docs."""
    start = torch.randint(len(DOCS) - length, (count, 1), generator=generator)
    return (DOCS[start + torch.arange(length)],)


def two_manuals(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of 8 to 24 letters, filled up with 0 to 48, and whose they are: docs or Python."""
    kind = torch.randint(2, (count,), generator=generator)
    own, other = docs(24, generator, count)[0], LETTERS
    start = torch.randint(len(other) - 24, (count, 1), generator=generator)
    x = torch.where(kind[:, None] == 0, own, other[start + torch.arange(24)])
    length = torch.randint(8, 25, (count, 1), generator=generator)
    x = torch.where(torch.arange(24) < length, x, 0)
    return functional.pad(x, (0, 24)), kind
