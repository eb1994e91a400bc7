"""A rehearsal names what does not fit, warns of nothing else, and leaves no trace."""

from __future__ import annotations

import gc
import json
import random
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hidden_state import KINDS, InGlobalRandomStates, Stateless
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.rehearsal.experiments import EXPERIMENTS
from fmapboard.rehearsal.result import Rehearsal, RehearsalFault
from fmapboard.rehearsal.training_copy import TrainingCopy

CLASSES = 4


def images(count: int = 96) -> tuple[Tensor, Tensor]:
    """Images whose class is the brightest quarter, [N, 1, 8, 8]."""
    drawn = torch.Generator().manual_seed(3)
    labels = torch.arange(count) % CLASSES
    found = torch.rand(count, 1, 8, 8, generator=drawn)
    for number, label in enumerate(labels.tolist()):
        found[number, :, 2 * label : 2 * label + 2] += 0.7
    return found, labels


def network(*last: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(512, CLASSES),
        *last,
    )


def rehearsed(
    model: nn.Module | None = None,
    batch: Any = None,
    loss: Any = functional.cross_entropy,
    *,
    rate: float = 0.02,
    **options: Any,
) -> Rehearsal:
    model = network() if model is None else model
    if batch is None:
        batch = DataLoader(TensorDataset(*images()), 32)
    optimizer = options.pop("optimizer", None)
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    return fmapboard.rehearse(model, batch, loss, optimizer, progress=False, **options)


def faults(found: Rehearsal) -> list[str]:
    return [outcome.kind for outcome in found.faults]


def answer(found: Rehearsal, kind: str) -> Any:
    return next(outcome.answer for outcome in found.outcomes if outcome.kind == kind)


def test_a_healthy_training_answers_every_question_and_has_no_fault() -> None:
    found = rehearsed(bfloat16=True)
    assert [(o.kind, o.answer.judgement) for o in found.outcomes] == [
        ("same_twice", "fine"),
        ("train_and_eval", "fine"),
        ("every_parameter_moves", "fine"),
        ("images_mix", "fine"),
        ("input_reaches_output", "fine"),
        ("target_is_hidden", "fine"),
        ("padding_is_ignored", "not judged"),
        ("every_input_matters", "fine"),
        ("labels_count", "fine"),
        ("first_loss", "fine"),
        ("one_batch_is_learnt", "fine"),
        ("rates", "fine"),
        ("labels_fit_images", "fine"),
        ("bfloat16_agrees", "fine"),
    ]
    found.raise_for_faults()
    assert found.verdict.startswith("no fault found (14 questions in ")
    assert json.loads(json.dumps(found.to_dict()))["faults"] == []


def test_a_fault_is_printed_raised_and_drawn() -> None:
    found = rehearsed(network(nn.Softmax(dim=0)))
    assert faults(found)[0] == "images_mix"
    named = "exchanging one image changes the outputs of others, first in 6 (Softmax)"
    assert str(found).startswith(f"fault: {named}")
    assert answer(found, "images_mix").layer == "6"
    with pytest.raises(RehearsalFault, match=r"first in 6 \(Softmax\)"):
        found.raise_for_faults()
    assert found._repr_html_().startswith('<img src="data:image/png;base64,')
    assert found.image().width > 800


class Detaches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network()[:-1]
        self.head = nn.Linear(512, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(x).detach())
        return scores


class Listed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(64, 64)]
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.layers[0](x.flatten(1)).relu())
        return scores


class Tokens(nn.Module):
    """A transformer over 10 tokens: a class, or the next token."""

    def __init__(
        self, *, batch_first: bool = True, positions: bool = True, predicts: bool = False
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(20, 16)
        self.positions = nn.Parameter(torch.randn(10, 16) * positions)
        layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=batch_first)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 20)
        self.predicts = predicts

    def forward(self, tokens: Tensor) -> Tensor:
        found = self.body(self.embedding(tokens) + self.positions)
        scores: Tensor = self.head(found if self.predicts else found.mean(1))
        return scores


class TwoHeads(nn.Module):
    """A class and a value, of which one does not train the body."""

    def __init__(self, *, detaches: bool = True) -> None:
        super().__init__()
        self.body = network()[:-1]
        self.of_class = nn.Linear(512, CLASSES)
        self.of_value = nn.Linear(512, 1)
        self.detaches = detaches

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(x)
        value = self.of_value(features.detach() if self.detaches else features)
        return self.of_class(features), value


def both(output: tuple[Tensor, Tensor], batch: tuple[Tensor, Tensor]) -> Tensor:
    classes, value = output
    brightness = batch[0].mean((1, 2, 3))
    return functional.cross_entropy(classes, batch[1]) + squared(value[:, 0], brightness)


class Recurrent(nn.Module):
    """Classes from the state of a layer of an LSTM over the rows of images."""

    def __init__(self, layer: int) -> None:
        super().__init__()
        self.rows = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, CLASSES)
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        _, (states, _) = self.rows(x[:, 0])
        scores: Tensor = self.head(states[self.layer])
        return scores


class Causal(nn.Module):
    """The next of 10 tokens from those before it: [N, C, T], or [N, T, C] for 20 classes."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.body = nn.Conv1d(16, classes, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        earlier = functional.pad(self.embedding(tokens).transpose(1, 2), (2, 0))
        scores: Tensor = self.body(earlier)
        return scores.transpose(1, 2) if scores.shape[1] == 20 else scores


def segments() -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(1, 3, 3, padding=1)


class Patches(nn.Module):
    """Classes from the patches of images [N, 3, 8, 8], cut with or without a permute."""

    def __init__(self, *, permutes: bool) -> None:
        super().__init__()
        self.embedding = nn.Linear(48, 16)
        self.head = nn.Linear(16, CLASSES)
        self.permutes = permutes

    def forward(self, x: Tensor) -> Tensor:
        patches = x.reshape(len(x), 4, 48)
        if self.permutes:
            cut = x.reshape(len(x), 3, 2, 4, 2, 4)
            patches = cut.permute(0, 2, 4, 1, 3, 5).reshape(len(x), 4, 48)
        scores: Tensor = self.head(self.embedding(patches).relu().mean(1))
        return scores


class Padded(nn.Module):
    """A class of tokens of which the last ones, 0, are padding."""

    def __init__(self, *, inverts: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(20, 16)
        self.positions = nn.Parameter(torch.randn(10, 16))
        self.body = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(16, CLASSES)
        self.inverts = inverts

    def forward(self, tokens: Tensor) -> Tensor:
        is_padding = tokens == 0
        ignored = ~is_padding if self.inverts else is_padding
        found = self.body(self.embedding(tokens) + self.positions, src_key_padding_mask=ignored)
        scores: Tensor = self.head(found.masked_fill(is_padding[..., None], 0.0).mean(1))
        return scores


class Tied(nn.Module):
    """The class of each row of an image, from the weights of an embedding."""

    def __init__(self, deviation: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 96), nn.LayerNorm(96))
        self.head = nn.Linear(96, CLASSES, bias=False)
        nn.init.normal_(self.head.weight, std=deviation)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(x))
        return scores


def by_reshape(output: Tensor, batch: Any) -> Tensor:
    return functional.cross_entropy(output.reshape(-1, 3), batch[1].flatten())


def by_permute(output: Tensor, batch: Any) -> Tensor:
    return by_reshape(output.permute(0, 2, 3, 1), batch)


def at_half_size(output: Tensor, batch: Any) -> Tensor:
    halves = functional.interpolate(output, size=(4, 4), mode="bilinear")
    return functional.cross_entropy(halves, batch[1][:, ::2, ::2])


def of_logits(output: Tensor, labels: Tensor) -> Tensor:
    return functional.binary_cross_entropy_with_logits(output[:, 0], labels)


TOKENS = torch.randint(0, 20, (32, 11), generator=torch.Generator().manual_seed(1))


def next_token(output: Tensor, batch: Any) -> Tensor:
    return functional.cross_entropy(output.flatten(0, 1), batch[1].flatten())


def squared(output: Tensor, values: Tensor) -> Tensor:
    return (output - values).square().mean()


PIXELS, LABELS = images(32)
BATCH = PIXELS, LABELS
TEXT = TOKENS[:, :10], TOKENS[:, 0] % CLASSES
MASKS = PIXELS, (PIXELS[:, 0] * 1.7).long().clamp(max=2)
DRAWN = torch.Generator().manual_seed(4)
CLIPS = torch.rand(32, 1, 6, 8, 8, generator=DRAWN), LABELS
HIDDEN = torch.rand(32, 10, generator=DRAWN) < 0.3
VALUES = PIXELS.mean((1, 2, 3))[:, None]


def hidden_tokens(label: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens of which some are hidden as 0, and labels."""
    return TOKENS[:, :10].masked_fill(HIDDEN, 0), label


def shifts(output: Tensor, batch: Any) -> Tensor:
    return next_token(output[:, :-1], (None, batch[1][:, 1:]))


def clips(same: bool) -> Rehearsal:
    videos = CLIPS[0][:, :, :1].expand(-1, -1, 6, -1, -1) if same else CLIPS[0]
    model = nn.Sequential(nn.Flatten(), nn.Linear(384, CLASSES))
    return rehearsed(model, (videos.contiguous(), LABELS))


def colours(permutes: bool) -> Rehearsal:
    return rehearsed(Patches(permutes=permutes), (PIXELS.expand(-1, 3, -1, -1), LABELS))


def padded(inverts: bool) -> Rehearsal:
    tokens = TOKENS[:, :10].clamp(min=1).clone()
    tokens[:, 7:] = 0
    return rehearsed(Padded(inverts=inverts), (tokens, LABELS))


def stepped(gamma: float) -> Rehearsal:
    """A scheduler is stepped after each batch."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma)
    optimizer.register_step_post_hook(lambda *_: schedule.step())
    found = rehearsed(model, BATCH, optimizer=optimizer)
    assert schedule.last_epoch == 0
    assert optimizer.param_groups[0]["lr"] == 0.02
    return found


def one_cycle() -> Rehearsal:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=100, div_factor=1e12)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(1e-13)
    return rehearsed(model, BATCH, optimizer=optimizer)


def to_one(last: nn.Module) -> nn.Sequential:
    return network(nn.Linear(CLASSES, 1), last)


def replaced_after_the_optimizer() -> Rehearsal:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model[5] = nn.Linear(512, CLASSES)
    return rehearsed(model, BATCH, optimizer=optimizer)


def sorted_labels(output: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(output, labels.sort()[0])


def climbed(output: Tensor, labels: Tensor) -> Tensor:
    return -functional.cross_entropy(output, labels)


FAULTS: dict[str, tuple[str, Callable[[], Rehearsal]]] = {
    "view": ("images_mix", lambda: rehearsed(Tokens(batch_first=False), TEXT)),
    "positions": ("input_reaches_output", lambda: rehearsed(Tokens(positions=False), TEXT)),
    "mask": (
        "target_is_hidden",
        lambda: rehearsed(Tokens(predicts=True), (TOKENS[:, :-1], TOKENS[:, 1:]), next_token),
    ),
    "same images": (
        "input_reaches_output",
        lambda: rehearsed(None, (PIXELS[:1].repeat(32, 1, 1, 1), LABELS)),
    ),
    "detach": ("every_parameter_moves", lambda: rehearsed(Detaches(), BATCH)),
    "list": ("every_parameter_moves", lambda: rehearsed(Listed(), BATCH)),
    "optimizer": ("every_parameter_moves", replaced_after_the_optimizer),
    "rate of 0": ("every_parameter_moves", lambda: rehearsed(None, BATCH, rate=0.0)),
    "eval": ("train_and_eval", lambda: rehearsed(network().eval(), BATCH)),
    "twice": ("first_loss", lambda: rehearsed(network(nn.Softmax(dim=1)), BATCH)),
    "logits": ("first_loss", lambda: rehearsed(None, BATCH, nn.NLLLoss())),
    "sign": ("first_loss", lambda: rehearsed(None, BATCH, climbed)),
    "other labels": ("first_loss", lambda: rehearsed(None, BATCH, sorted_labels)),
    "broadcast": (
        "first_loss",
        lambda: rehearsed(
            network(nn.Linear(CLASSES, 1)), (PIXELS, PIXELS.mean((1, 2, 3))), squared
        ),
    ),
    "detached head": ("every_parameter_moves", lambda: rehearsed(TwoHeads(), BATCH, both)),
    "state of the first layer": ("every_parameter_moves", lambda: rehearsed(Recurrent(0), BATCH)),
    "same frames": ("input_reaches_output", lambda: clips(same=True)),
    "shifted twice": (
        "target_is_hidden",
        lambda: rehearsed(Causal(20), (TOKENS[:, :-1], TOKENS[:, 1:]), shifts),
    ),
    "labels of visible tokens": (
        "target_is_hidden",
        lambda: rehearsed(
            Tokens(predicts=True),
            hidden_tokens(TOKENS[:, :10].masked_fill(HIDDEN, -100)),
            next_token,
        ),
    ),
    "reshaped classes": ("first_loss", lambda: rehearsed(segments(), MASKS, by_reshape)),
    "targets beyond the sigmoid": (
        "first_loss",
        lambda: rehearsed(to_one(nn.Sigmoid()), (PIXELS, VALUES * 8 - 4), squared),
    ),
    "sigmoid twice": (
        "first_loss",
        lambda: rehearsed(to_one(nn.Sigmoid()), (PIXELS, (LABELS % 2).float()), of_logits),
    ),
    "large first logits": ("first_loss", lambda: rehearsed(Tied(3.0), BATCH)),
    "reshaped patches": ("input_reaches_output", lambda: colours(permutes=False)),
    "inverted padding": ("input_reaches_output", lambda: padded(inverts=True)),
    "schedule per batch": ("rates", lambda: stepped(0.5)),
    "low rate": ("rates", lambda: rehearsed(None, BATCH, rate=1e-8)),
    "high rate": ("rates", lambda: rehearsed(None, BATCH, rate=1e3)),
    "shape": ("one_step_runs", lambda: rehearsed(None, (PIXELS[:, :, :4], LABELS))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_kind_of_fault_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, rehearse = FAULTS[name]
    asked = [experiment for experiment in EXPERIMENTS if experiment.kind == kind]
    monkeypatch.setattr("fmapboard.rehearsal.run.EXPERIMENTS", tuple(asked))
    assert faults(rehearse()) == [kind]


HEALTHY: dict[str, tuple[str, Callable[[], Rehearsal]]] = {
    "two heads": (
        "every_parameter_moves",
        lambda: rehearsed(TwoHeads(detaches=False), BATCH, both),
    ),
    "state of the last layer": ("every_parameter_moves", lambda: rehearsed(Recurrent(1), BATCH)),
    "moving clips": ("input_reaches_output", lambda: clips(same=False)),
    "as many classes as tokens": (
        "target_is_hidden",
        lambda: rehearsed(
            Causal(10),
            (TOKENS[:, :-1] % 10, TOKENS[:, 1:] % 10),
            lambda output, batch: functional.cross_entropy(output, batch[1]),
        ),
    ),
    "shifted once": (
        "target_is_hidden",
        lambda: rehearsed(Causal(20), (TOKENS[:, :-1], TOKENS[:, :-1]), shifts),
    ),
    "labels of hidden tokens": (
        "target_is_hidden",
        lambda: rehearsed(
            Tokens(predicts=True),
            hidden_tokens(TOKENS[:, :10].masked_fill(~HIDDEN, -100)),
            next_token,
        ),
    ),
    "permuted classes": ("first_loss", lambda: rehearsed(segments(), MASKS, by_permute)),
    "masks at half size": ("first_loss", lambda: rehearsed(segments(), MASKS, at_half_size)),
    "targets within the sigmoid": (
        "first_loss",
        lambda: rehearsed(to_one(nn.Sigmoid()), (PIXELS, VALUES), squared),
    ),
    "small first logits": ("first_loss", lambda: rehearsed(Tied(0.1), BATCH)),
    "permuted patches": ("input_reaches_output", lambda: colours(permutes=True)),
    "padding": ("input_reaches_output", lambda: padded(inverts=False)),
    "slow schedule": ("rates", lambda: stepped(0.99)),
    "warm-up of OneCycle": ("one_batch_is_learnt", one_cycle),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_next_to_a_fault_and_is_none_has_none(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, rehearse = HEALTHY[name]
    asked = [experiment for experiment in EXPERIMENTS if experiment.kind == kind]
    monkeypatch.setattr("fmapboard.rehearsal.run.EXPERIMENTS", tuple(asked))
    found = rehearse()
    assert faults(found) == []
    assert "Error" not in answer(found, kind).text


def test_one_batch_that_cannot_be_learnt_is_a_fault() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(CLASSES))

        def forward(self, x: Tensor) -> Tensor:
            return x.mean((1, 2, 3))[:, None] * 0 + self.scale

    found = rehearsed(Constant(), (PIXELS[:30], LABELS[:30]))
    assert faults(found) == ["input_reaches_output", "one_batch_is_learnt"]


def by_distribution(output: Tensor, batch: Any) -> Tensor:
    """Energy distance between outputs and labels, of which each order is as good."""
    labels = functional.one_hot(batch[1], CLASSES).float()
    return 2 * torch.cdist(output, labels).mean() - torch.cdist(output, output).mean()


@pytest.mark.parametrize(
    ("shuffles", "loss", "judged"),
    [
        (True, functional.cross_entropy, "suspicion"),
        (False, functional.cross_entropy, "fine"),
        (True, by_distribution, "not judged"),
    ],
)
def test_labels_that_were_shuffled_are_found_where_there_are_several_batches(
    shuffles: bool, loss: Any, judged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [experiment for experiment in EXPERIMENTS if experiment.kind == "labels_fit_images"]
    monkeypatch.setattr("fmapboard.rehearsal.run.EXPERIMENTS", tuple(asked))
    monkeypatch.setattr("fmapboard.rehearsal.experiments.labels_fit_images._features", none)
    pixels, labels = images(768)
    if shuffles:
        labels = labels[torch.randperm(768, generator=torch.Generator().manual_seed(2))]
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    found = rehearsed(
        model, DataLoader(TensorDataset(pixels, labels), 48), loss, optimizer=optimizer
    )
    assert answer(found, "labels_fit_images").judgement == judged
    found.raise_for_faults()
    doubts = ["labels_fit_images"] if judged == "suspicion" else []
    assert found.to_dict()["suspicions"] == doubts
    said = "suspicion: labels may not belong to images: loss of 8 batches"
    assert repr(found).startswith(said) == bool(doubts)
    assert ("Look at what shuffles" in repr(found)) == bool(doubts)


def none(*_: object) -> list[Tensor]:
    """No features for linear models."""
    return []


class Adversary(nn.Module):
    """A discriminator whose state a careless call would change."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8))
        self.own = torch.Generator().manual_seed(1)

    def forward(self, x: Tensor) -> Tensor:
        noise = torch.rand(8, generator=self.own)
        scores: Tensor = (self.layers(x) * noise).sum(1)
        return scores


def test_a_loss_that_refers_to_other_networks_is_called_with_copies_of_them() -> None:
    adversary = Adversary()
    generator = nn.Sequential(nn.Linear(8, 64), nn.Sigmoid())
    before = [tensor.clone() for tensor in adversary.state_dict().values()]
    state = adversary.own.get_state()
    found = rehearsed(generator, torch.randn(32, 8), lambda o, _: -adversary(o).mean())
    assert faults(found) == []
    assert all(map(torch.equal, adversary.state_dict().values(), before))
    assert torch.equal(adversary.own.get_state(), state)
    assert [parameter.grad for parameter in adversary.parameters()] == [None, None, None, None]


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_bitwise_the_same_after_a_rehearsal(kind: type[Stateless]) -> None:
    def trained(*, rehearses: bool) -> list[Tensor]:
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        model = kind()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        batch = torch.rand(16, 3, 8, 8), torch.arange(16) % 3
        for step in range(4):
            if rehearses and step in (0, 2):
                rehearsed(model, batch, optimizer=optimizer, seconds=0.3)
            optimizer.zero_grad()
            functional.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()
        drawn = torch.rand(3), torch.tensor(random.random()), torch.tensor(np.random.rand())
        return [*(tensor.clone() for tensor in model.state_dict().values()), *drawn]

    bare = trained(rehearses=False)
    seen = trained(rehearses=True)
    assert all(map(torch.equal, seen, bare))


def parametrized() -> nn.Sequential:
    return nn.Sequential(
        nn.Flatten(),
        nn.utils.parametrizations.weight_norm(nn.Linear(64, 16)),
        nn.ReLU(),
        nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16)),
        nn.utils.parametrizations.orthogonal(nn.Linear(16, CLASSES)),
    )


class Counts(nn.Module):
    """Counts its calls in a dict of a dict, and draws from a generator of Python there."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, CLASSES)
        self.kept: dict[str, Any] = {"of": {"calls": 0}, "own": random.Random(4), "seen": []}

    def forward(self, x: Tensor) -> Tensor:
        self.kept["of"]["calls"] += 1
        self.kept["seen"].append(self.kept["own"].random())
        scores: Tensor = self.layer(x.flatten(1)) + self.kept["of"]["calls"] * self.kept["seen"][-1]
        return scores


def with_hooks_that_draw() -> nn.Module:
    model = network()
    own = torch.Generator().manual_seed(9)
    numbers = np.random.default_rng(1)

    def add_noise(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        return output + torch.randn(output.shape, generator=own) / 100 + numbers.normal() / 100

    def change(gradient: Tensor) -> Tensor:
        return gradient + torch.randn(gradient.shape, generator=own) / 1000

    model[0].register_forward_hook(add_noise)
    weight: Any = model[0].weight
    weight.register_hook(change)
    return model


def lbfgs(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)


@pytest.mark.parametrize("raises", [None, ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("make", [parametrized, Counts, with_hooks_that_draw, network])
def test_training_with_state_of_other_kinds_is_bitwise_the_same(
    make: Callable[[], nn.Module], raises: type[BaseException] | None
) -> None:
    batch = images(32)

    def loss(output: Tensor, labels: Tensor) -> Tensor:
        if raises is not None and len(shown) == 8:
            raise raises
        shown.append(1)
        return functional.cross_entropy(output, labels)

    class Shared(list[int]):
        def __deepcopy__(self, memo: Any) -> Shared:
            return self

    def trained(*, rehearses: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = make()
        optimizer = lbfgs(model) if make is network else torch.optim.Adam(model.parameters())
        for step in range(4):
            if rehearses and step == 2:
                shown.clear()
                seconds = 1.0 if raises is None else 60.0
                found = rehearsed(model, batch, loss, optimizer=optimizer, seconds=seconds)
                assert found.is_interrupted is (raises is KeyboardInterrupt)
                assert len(shown) >= 8

            def closure() -> float:
                optimizer.zero_grad()
                value = functional.cross_entropy(model(batch[0]), batch[1])
                value.backward()  # type: ignore[no-untyped-call]
                return float(value.detach())

            optimizer.step(closure)
        return [tensor.clone() for tensor in (*model.state_dict().values(), torch.rand(3))]

    shown = Shared()
    bare = trained(rehearses=False)
    seen = trained(rehearses=True)
    assert all(map(torch.equal, seen, bare))


class Augmented(Dataset[tuple[Tensor, int]]):
    """Draws from a generator of its own and from the global ones."""

    def __init__(self) -> None:
        self.own = np.random.default_rng(0)
        self.pixels, self.labels = images(64)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        noise = self.own.random() + torch.rand(()) + random.random()
        return self.pixels[number] + float(noise) / 10, int(self.labels[number])


@pytest.mark.parametrize("gives", ["loader", "iterator", "list", "copied iterator"])
def test_what_the_loop_draws_is_the_same_after_a_rehearsal(gives: str) -> None:
    def drawn(*, rehearses: bool) -> list[Tensor]:
        model = network()
        torch.manual_seed(0)
        random.seed(0)
        generator = torch.Generator().manual_seed(5)
        loader = DataLoader(Augmented(), 16, shuffle=True, generator=generator)
        source: Any = loader if gives == "loader" else iter(loader)
        if gives in ("list", "copied iterator"):
            source = list(loader)
        if gives == "copied iterator":
            source = iter(source)
        if rehearses:
            found = rehearsed(model, source)
            assert answer(found, "labels_fit_images").judgement == "fine"
        return [images for images, _ in source]

    bare = drawn(rehearses=False)
    seen = drawn(rehearses=True)
    assert len(bare) == 4
    assert all(map(torch.equal, seen, bare))


def test_a_generator_function_is_refused_before_anything_is_drawn() -> None:
    source = (batch for batch in [images(8)])
    with pytest.raises(ConfigurationError, match="takes batches from the training"):
        rehearsed(network(), source)
    assert len(list(source)) == 1


@pytest.mark.parametrize("call", [3, 40, 150])
def test_ctrl_c_ends_a_rehearsal_with_what_is_known(call: int) -> None:
    class Interrupted(InGlobalRandomStates):
        def change(self, maps: Tensor) -> Tensor:
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return super().change(maps)

    calls: list[int] = []
    model = Interrupted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [tensor.clone() for tensor in model.state_dict().values()]
    state = torch.get_rng_state()
    batch = torch.rand(16, 3, 8, 8), torch.arange(16) % 3
    torch.set_rng_state(state)
    found = rehearsed(model, batch, optimizer=optimizer)
    assert found.is_interrupted
    assert len(found.outcomes) < 13
    assert "ended by Ctrl-C" in found.verdict
    assert torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, model.state_dict().values(), before))


def test_without_time_a_step_within_one_tick_of_the_clock_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readings = iter([0.0])  # the beginning; a tick takes 16 ms on Windows
    monkeypatch.setattr(time, "monotonic", lambda: next(readings, 10.0))
    found = rehearsed(seconds=5.0)
    assert {outcome.answer.judgement for outcome in found.outcomes} == {"not judged"}


def test_without_time_the_rest_is_not_judged() -> None:
    found = rehearsed(seconds=0.0)
    assert {outcome.answer.judgement for outcome in found.outcomes} == {"not judged"}
    assert found.verdict.startswith("nothing could be judged")


def test_wrong_arguments_are_refused() -> None:
    model = network()
    with pytest.raises(ConfigurationError, match="optimizer=None: pass the optimizer"):
        fmapboard.rehearse(model, images(8), nn.CrossEntropyLoss())
    with pytest.raises(ConfigurationError, match="batch=int: expected what the training loop"):
        rehearsed(model, 3)
    with pytest.raises(ConfigurationError, match="loss=str: expected a function"):
        rehearsed(model, images(8), "loss")


def test_few_copies_of_the_network_are_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = weakref.WeakSet[TrainingCopy]()
    most = [0]

    class Counted(TrainingCopy):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            alive.add(self)
            gc.collect()
            most[0] = max(most[0], len(alive))

    monkeypatch.setattr("fmapboard.rehearsal.run.TrainingCopy", Counted)
    found = rehearsed(network(nn.Softmax(dim=0)))  # at seven rates
    assert len(answer(found, "rates").curves) == 7
    assert most == [3]
