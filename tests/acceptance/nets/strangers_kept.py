"""What sets of cases that are gone have left to later ones."""

from __future__ import annotations

from functools import partial
from pydoc_data.topics import topics

import torch
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import how
from nets import library
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

FIT = partial(how, steps=120, every=10)
SGD = partial(FIT, kind=optim.SGD, momentum=0.9)
BERT = library.BODY | {"vocab_size": 100, "num_labels": 4, "max_position_embeddings": 48}
TEXT = torch.tensor([ord(letter) for letter in "".join(topics.values()) if ord(letter) < 127])


def letters(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pieces of Python's manual, 26 letters each."""
    first = torch.randint(len(TEXT) - 26, (count, 1), generator=generator)
    return (TEXT[first + torch.arange(26)],)


def gpt() -> nn.Module:
    sizes = {"vocab_size": 128, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 32}
    return library.Logits(library.hf("GPT2LMHeadModel", **sizes))


def bert(labels: int, end: nn.Module) -> nn.Module:
    net = library.hf("BertForSequenceClassification", **BERT | {"num_labels": labels})
    return nn.Sequential(library.Logits(net), end)


def spoken(shift: int, model: nn.Module, text: Tensor) -> Tensor:
    """The targets are so many letters further."""
    return functional.cross_entropy(model(text[:, :24]).mT.float(), text[:, shift : shift + 24])


def answered(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return bce(model(x), y)


class Rows(nn.Module):
    """An LSTM reads a digit's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.LSTM(28, 64, batch_first=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x[:, 0])[0][:, -1])
