"""What sets of cases that are gone have left to later ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pydoc_data.topics import topics
from typing import Any

import data
import torch
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import how
from data import Draw, changed
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function
from nets.strangers_faults import relabelled
from nets.strangers_fifth import changed_weights as weights
from nets.strangers_fifth import mlp, near
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

FIT = partial(how, steps=120, every=10)
SGD = partial(FIT, kind=optim.SGD, momentum=0.9)
BERT = library.BODY | {"vocab_size": 100, "num_labels": 4, "max_position_embeddings": 48}
LONG = {"steps": 195, "every": 13}
FEW = {"steps": 104, "every": 8, "batch": 8}
NORMED = partial(cnn.plain, norm=nn.BatchNorm2d)
TEXT = torch.tensor([ord(letter) for letter in "".join(topics.values()) if ord(letter) < 127])


class Net(nn.ModuleDict):
    """Parts, and a function of them and the input."""

    def __init__(self, run: Any, **parts: nn.Module) -> None:
        super().__init__(parts)
        self.run = run

    def forward(self, *x: Tensor) -> Any:
        return self.run(self, *x)


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


def numbers(columns: int, of: Callable[[Tensor], Tensor], rows: int = 0) -> Draw:
    """Normal numbers and a function of them; the same ``rows`` in each step, or new ones."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        chosen = Generator().manual_seed(0) if rows else generator
        x = torch.randn(rows or count, columns, generator=chosen)
        return x, of(x)

    return draw


def lesions(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A grey picture, of which 8 in 1000 pixels are of a lesion, that is brighter."""
    images, _, discs, _ = data.scenes(generator, count)
    mask = near(discs, 1.6)
    return images.mean(1, keepdim=True) + 0.5 * mask, mask


def some_black(images: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(images[:1]), images[1:]])


def hidden(*layers: int, start: Callable[[Tensor], object], act: type = nn.ReLU) -> nn.Module:
    """A perceptron; ``start`` is applied to the weights of all layers but the last."""
    model = mlp(*layers, act=act)
    for layer in list(model)[1:-1]:
        if isinstance(layer, nn.Linear):
            start(layer.weight.data)
            nn.init.zeros_(layer.bias)
    return model


def always_eval(_: int, model: nn.Module, *__: object) -> None:
    model.eval()


def noise(*shape: int, classes: int = 0) -> Draw:
    """Random numbers, and random classes or a random number."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x, y = torch.rand(count, *shape, generator=generator), torch.rand(count, 1)
        return x, (y[:, 0] * classes).long() if classes else y

    return draw


def words(kinds: int, length: int, answer: Callable[[Tensor], Tensor]) -> Draw:
    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x = torch.randint(kinds, (count, length), generator=generator)
        return x, answer(x)

    return draw


class Series(nn.Module):
    """A recurrent layer; the last state counts."""

    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM, out: int = 1) -> None:
        super().__init__()
        self.body, self.last = kind(1, 64, batch_first=True), nn.Linear(64, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x)[0][:, -1])


class Words(nn.Module):
    """A transformer; ``pool`` is what its head sees."""

    def __init__(self, kinds: int, out: int, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.words, self.place = nn.Embedding(kinds, 32), nn.Parameter(0.1 * torch.randn(16, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
        self.body, self.last, self.pool = nn.TransformerEncoder(layer, 2), nn.Linear(32, out), pool

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.pool(self.body(self.words(x) + self.place[: x.shape[1]])))


def contexts(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Five words of one of 8 topics, and any other word."""
    topic, other = torch.randint(8, (count, 1)), torch.randint(64, (count, 1))
    return (torch.cat([8 * torch.randint(8, (count, 5), generator=generator) + topic, other], 1),)


def small(channels: int = 3, classes: int = 8, size: int = 32) -> nn.Sequential:
    """Two strided convolutions and two Linear layers."""
    convs = [nn.Conv2d(channels, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()]
    layers = [nn.Flatten(), nn.Linear(2 * size * size, 96), nn.ReLU(), nn.Linear(96, classes)]
    return nn.Sequential(*convs, *layers)


def through(code: int, cut: nn.Module | None = None, end: nn.Module | None = None) -> nn.Module:
    """An autoencoder of photographs; ``cut`` stands between its halves."""
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 32, 4, 2, 1)]
    down += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2048, code)]
    up = [nn.Linear(code, 2048), nn.ReLU(), nn.Unflatten(1, (32, 8, 8))]
    up += [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, cut or nn.Identity(), *up, end or nn.Tanh())


class Text(nn.Module):
    """A GRU over words, then the mean of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.body = nn.Embedding(102, 24), nn.GRU(24, 48, batch_first=True)
        self.last = nn.Linear(48, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(self.words(x))[0].mean(1))


def next_day(x: float, y: float, middle: float = 1200) -> Draw:
    """Four days of electricity, every third hour, and the next day's mean; in ``x``, ``y`` kW."""
    draw = changed(data.demand, lambda found: (found.mT[:, ::3] - middle) / x)
    return relabelled(draw, lambda found: (found.mean(2) - middle) / y)


def twins(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pairs of pictures, some of them the same file, and whether both show the same digit."""
    (one, kind), (two, other) = (data.digits(generator, count) for _ in range(2))
    same = torch.rand(count, generator=generator) < 0.2
    two, other = torch.where(same[:, None, None, None], one, two), torch.where(same, kind, other)
    return torch.cat([one, two], 1), (kind == other).float()


def keypoints(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """The centre of a disc, -1 to 1."""
    images, _, discs, _ = data.scenes(generator, count)
    return images, discs[:, :2] / 16 - 1


def slab(width: int = 8) -> nn.Module:
    """Segmentation of a volume, without norm."""
    convs = [nn.Conv3d(1, width, 3, 1, 1), nn.ReLU(), nn.Conv3d(width, width, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*convs, nn.Conv3d(width, 1, 1))


def pointer() -> nn.Module:
    """Where an object is: three convolutions and two Linear layers."""
    convs = [cnn.unit(a, b, stride=2, norm=None) for a, b in ((3, 16), (16, 24), (24, 32))]
    return nn.Sequential(*convs, mlp(512, 64, 2))


def tastes(end: Function) -> nn.Module:
    """Matrix factorization of users and films."""

    def run(m: nn.ModuleDict, who: Tensor, what: Tensor) -> Tensor:
        return m["end"]((m["who"](who) * m["what"](what)).sum(1))

    parts = {"who": nn.Embedding(200, 12), "what": nn.Embedding(200, 12), "end": end}
    return weights(Net(run, **parts), lambda w: w.mul_(0.3))


def starred(model: nn.Module, who: Tensor, what: Tensor, stars: Tensor) -> Tensor:
    return (model(who, what) - stars).square().mean()


digits, voxels, gestures = data.digits, data.voxels, data.gestures


TONES, MOVES = data.tones(), changed(gestures, lambda x: x / 5)


entropy, cat, Weights = functional.cross_entropy, torch.cat, nn.ParameterList


REST = torch.tensor([[0, 0, 9.81, 0, 0, 0.14], [2.1, 2.1, 3.2, 0.5, 0.3, 0.22]])[..., None]
