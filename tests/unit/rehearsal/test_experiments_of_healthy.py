"""Healthy trainings that look like faults: no question may warn of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.rehearsal.experiments import EXPERIMENTS

COUNT = 96
CLASSES = 4


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


IMAGES = drawn(COUNT, 1, 8, 8)
LABELS = torch.arange(COUNT) % CLASSES
IMAGES[torch.arange(COUNT), :, LABELS * 2] += 1.0


class Training(NamedTuple):
    """A network, the tensors of its batches, and a loss."""

    model: nn.Module
    tensors: tuple[Tensor, ...]
    loss: Any = functional.cross_entropy


class Net(nn.Module):
    """A network whose forward pass is a function of its layers and the inputs."""

    def __init__(self, run: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.run = run

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


class Paired(Net):
    """The same with a second argument."""

    def forward(self, x: Tensor, other: Tensor) -> Any:  # type: ignore[override]
        return self.run(self, x, other)


def perceptron(inputs: int = 64, outputs: int = CLASSES) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs))


def head_of_large_features() -> Training:
    return Training(nn.Linear(256, CLASSES), (drawn(COUNT, 256).relu() * 12, LABELS))


def generator() -> Training:
    """What a discriminator is to say of the images is 1 for all of them."""
    judge = perceptron(64, 1)

    def loss(output: Tensor, batch: Any) -> Tensor:
        return functional.binary_cross_entropy_with_logits(judge(output), batch[1])

    return Training(perceptron(16, 64), (drawn(COUNT, 16), torch.ones(COUNT, 1)), loss)


def layers_dropped_at_random() -> Training:
    def run(net: Any, x: Tensor) -> Any:
        x = net.first(x.flatten(1))
        for layer in (net.second, net.third):
            if not net.training or torch.rand(()) > 0.9:
                x = x + layer(x).relu()
        return net.head(x)

    layers = {"second": nn.Linear(32, 32), "third": nn.Linear(32, 32)}
    model = Net(run, first=nn.Linear(64, 32), **layers, head=nn.Linear(32, CLASSES))
    return Training(model, (IMAGES, LABELS))


def probe() -> Training:
    """A linear layer that shows what features hold, whose loss does not train them."""

    def run(net: Any, x: Tensor) -> Any:
        features = net.body(x)
        return net.head(features), net.probe(features.detach())

    def loss(outputs: Any, batch: Any) -> Tensor:
        return sum(functional.cross_entropy(output, batch[1]) for output in outputs)  # type: ignore[return-value]

    body = perceptron(64, 16)
    model = Net(run, body=body, head=nn.Linear(16, CLASSES), probe=nn.Linear(16, CLASSES))
    return Training(model, (IMAGES, LABELS), loss)


def sets_of_items() -> Training:
    items = torch.stack([drawn(30, seed=k).argsort()[:8] for k in range(COUNT)])
    labels = (items < 10).sum(1).clamp(max=CLASSES - 1)
    body = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    model = Net(
        lambda net, x: net.head(net.body(net.embed(x)).mean(1)),
        embed=nn.Embedding(30, 16),
        body=body,
        head=nn.Linear(16, CLASSES),
    )
    return Training(model, (items, labels))


def linear_attention() -> Training:
    """A softmax over the features of the queries, and one over the places of the keys."""

    def run(net: Any, x: Tensor) -> Any:
        size, length, width = x.shape
        heads = net.body(x + net.place(torch.arange(length)))
        queries, keys, values = heads.view(size, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        found = queries.softmax(-1) @ (keys.softmax(-2).transpose(-1, -2) @ values)
        return net.head(found.transpose(1, 2).reshape(size, length, width).mean(1))

    layers = {"place": nn.Embedding(8, 16), "body": nn.Linear(16, 48)}
    series = drawn(COUNT, 8, 16).cumsum(1)
    return Training(Net(run, **layers, head=nn.Linear(16, CLASSES)), (series, LABELS))


def convolution_over_padding() -> Training:
    """It reaches over the end of each text, where the same padding always stands."""

    def run(net: Any, tokens: Tensor, mask: Tensor) -> Any:
        found = net.body(net.embed(tokens).transpose(1, 2))
        return net.head(found.masked_fill(mask[:, None] == 0, -1e4).amax(2))

    valid = (torch.arange(12)[None] < 4 + torch.arange(COUNT)[:, None] % 9).long()
    tokens = torch.randint(1, 30, (COUNT, 12), generator=torch.Generator().manual_seed(0)) * valid
    layers = {"embed": nn.Embedding(30, 16, padding_idx=0), "body": nn.Conv1d(16, 16, 3, padding=1)}
    return Training(
        Paired(run, **layers, head=nn.Linear(16, CLASSES)),
        (tokens, valid, tokens[:, 0] % CLASSES),
        lambda o, b: functional.cross_entropy(o, b[2]),
    )


def targets_far_away() -> Training:
    """All outputs are pulled up alike, as all labels are above them."""
    targets = 300 + 50 * IMAGES.mean((1, 2, 3))[:, None]
    return Training(perceptron(64, 1), (IMAGES, targets), nn.L1Loss())


def distances() -> Training:
    """The output is a distance, which is to be small where the label is 1."""

    def run(net: Any, x: Tensor, other: Tensor) -> Any:
        return (net.body(x) - net.body(other)).square().sum(1)

    def loss(output: Tensor, batch: Any) -> Tensor:
        same: Tensor = batch[2]
        return (same * output + (1 - same) * (2 - output).relu()).mean()

    same = (LABELS.flip(0).roll(1) == LABELS).float()
    return Training(Paired(run, body=perceptron()), (IMAGES, IMAGES.flip(0).roll(1, 0), same), loss)


def empty_masks() -> Training:
    masks = torch.zeros(4, 1, 8, 8)
    return Training(nn.Conv2d(1, 1, 3, padding=1), (IMAGES[:4], masks), nn.BCEWithLogitsLoss())


def loud_images_before_a_norm() -> Training:
    model = nn.Sequential(nn.BatchNorm2d(1), perceptron())
    return Training(model, (IMAGES * 40 - 60, LABELS))


def labels_of_some_nodes() -> Training:
    """Half of the nodes of a graph have labels that are known."""
    near = (LABELS[:32, None] == LABELS[:32]).float() / 8
    model = Paired(lambda net, x, near: near @ net.body(x), body=perceptron())
    known = torch.arange(32) % 3 > 0

    def loss(output: Tensor, batch: Any) -> Tensor:
        return functional.cross_entropy(output[known], batch[2][known])

    return Training(model, (IMAGES[:32], near, LABELS[:32]), loss)


def hidden_pixels() -> Training:
    """The loss is of the pixels that a mask hides, which are dark."""
    dark = IMAGES.sigmoid() * 0.1
    hidden = (drawn(COUNT, 1, 8, 8, seed=1) > 0).float()
    model = nn.Conv2d(1, 1, 3, padding=1)
    return Training(
        model, (dark, hidden), lambda o, b: ((o - b[0]).square() * b[1]).sum() / b[1].sum()
    )


def examples_and_queries() -> Training:
    """Few-shot learning: a query is compared with the mean of the examples of each class."""

    def run(net: Any, examples: Tensor, queries: Tensor) -> Any:
        means = net.body(examples).view(-1, CLASSES, 16).mean(0)
        return -torch.cdist(net.body(queries), means)

    model = Paired(run, body=perceptron(64, 16))
    queries = IMAGES.roll(CLASSES, 0)
    return Training(
        model, (IMAGES, queries, LABELS), lambda o, b: functional.cross_entropy(o, b[2])
    )


def void_borders() -> Training:
    masks = (IMAGES[:, 0] > 0.5).long()
    masks[:, :2] = 255
    loss = nn.CrossEntropyLoss(ignore_index=255)
    return Training(nn.Conv2d(1, 2, 3, padding=1), (IMAGES, masks), loss)


def one_logit_per_image() -> Training:
    """A discriminator: outputs [N], as the labels, which are 0 and 1."""
    model = nn.Sequential(perceptron(outputs=1), nn.Flatten(0))
    return Training(model, (IMAGES, (LABELS < 2).float()), nn.BCEWithLogitsLoss())


def as_many_classes_as_tokens() -> Training:
    """Outputs [N, L, C] with L = C: either axis may be that of the classes."""
    tokens = torch.arange(COUNT)[:, None].add(torch.arange(6)) % 6
    model = nn.Sequential(nn.Embedding(6, 16), nn.Linear(16, 6))
    return Training(
        model,
        (tokens, tokens.roll(1, 1)),
        lambda o, b: functional.cross_entropy(o.flatten(0, 1), b[1].flatten()),
    )


class NodesNet(nn.Module):
    """Takes the whole batch, a dict, by the names in it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = perceptron()

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        scores: Tensor = batch["near"] @ self.body(batch["nodes"])
        return scores


HEALTHY: dict[str, tuple[str, Callable[[], Training]]] = {
    "head of large features": ("first_loss", head_of_large_features),
    "generator": ("labels_count", generator),
    "layers dropped at random": ("every_parameter_moves", layers_dropped_at_random),
    "probe": ("every_parameter_moves", probe),
    "sets of items": ("input_reaches_output", sets_of_items),
    "linear attention": ("input_reaches_output", linear_attention),
    "loud images before a norm": ("input_reaches_output", loud_images_before_a_norm),
    "convolution over padding": ("padding_is_ignored", convolution_over_padding),
    "targets far away": ("labels_count", targets_far_away),
    "distances": ("first_loss", distances),
    "empty masks": ("labels_count", empty_masks),
    "examples and queries": ("images_mix", examples_and_queries),
    "void borders": ("labels_count", void_borders),
    "labels of some nodes": ("labels_count", labels_of_some_nodes),
    "hidden pixels": ("first_loss", hidden_pixels),
    "one logit per image": ("first_loss", one_logit_per_image),
    "as many classes as tokens": ("first_loss", as_many_classes_as_tokens),
}


NOT_JUDGED = ("first_loss", "images_mix")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_has_no_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    kind, make = HEALTHY[name]
    asked = tuple([experiment for experiment in EXPERIMENTS if experiment.kind == kind])
    monkeypatch.setattr("fmapboard.rehearsal.run.EXPERIMENTS", asked)
    training = make()
    count = len(training.tensors[0])
    batches = [tuple(t[k : k + 32] for t in training.tensors) for k in range(0, count, 32)]
    optimizer = torch.optim.SGD(training.model.parameters(), lr=0.01)
    found = fmapboard.rehearse(training.model, batches, training.loss, optimizer, progress=False)
    assert (found.faults, found.suspicions) == ((), ()), found
    assert found.outcomes[0].answer.judgement == "fine" or kind in NOT_JUDGED, found
    assert "Error" not in found.outcomes[0].answer.text


def test_a_network_may_take_the_whole_dict() -> None:
    torch.manual_seed(0)
    model = NodesNet()
    near = (LABELS[:32, None] == LABELS[:32]).float() / 8
    batch = {"near": near, "nodes": IMAGES[:32], "y": LABELS[:32]}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for loss in (functional.cross_entropy, lambda o, b: functional.cross_entropy(o, b["y"])):
        found = fmapboard.rehearse(model, batch, loss, optimizer, progress=False)
        assert (found.faults, found.suspicions) == ((), ()), found
        assert not any("raises" in outcome.answer.text for outcome in found.outcomes)
