"""``watch(graph=True)``: TensorBoard's Graphs tab, from a copy of the model."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter
from watched_training import batch, sgd

import fmapboard
from fmapboard.records import ModelGraph
from fmapboard.writers.folder import MemoryWriter


class Residual(nn.Module):
    """A block whose activation runs twice, with a function between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(self.relu(x)) + x)
        return self.head(x.mean((2, 3)))


class ReadsValues(Residual):
    def forward(self, x: Tensor) -> Tensor:
        is_kept = x.mean().item() > -9 and random.random() < 2
        return super().forward(functional.dropout(x) if is_kept else x)


class RaisesInCopies(nn.Conv2d):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        type(self).calls += 1
        if type(self).calls == 1:
            raise ValueError("not in a copy")
        return super().forward(x)


def logged(model: nn.Module, steps: int = 2, **options: object) -> list[ModelGraph | None]:
    """The graph of each logged step."""
    kept = MemoryWriter()
    optimizer = sgd(model)
    options = {"graph": True, **options}
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, **options):  # type: ignore[arg-type]
        for _ in range(steps):
            optimizer.zero_grad()
            model(batch()[0]).square().mean().backward()
            optimizer.step()
    return [step.graph for step in kept.steps]


def edges(graph: ModelGraph | None) -> list[tuple[str, str, tuple[str, ...]]]:
    assert graph is not None
    return [(node.name, node.op, node.inputs) for node in graph.nodes]


RESIDUAL = [
    ("Residual.input/x", "Input", ()),
    ("Residual/relu/relu", "relu", ("Residual.input/x",)),
    ("Residual/conv/weight", "Parameter", ()),
    ("Residual/conv/conv2d", "conv2d", ("Residual/relu/relu", "Residual/conv/weight")),
    ("Residual/add", "add", ("Residual/conv/conv2d", "Residual/relu/relu")),
    ("Residual/relu.call2/relu", "relu", ("Residual/add",)),
    ("Residual/mean", "mean", ("Residual/relu.call2/relu",)),
    ("Residual/head/weight", "Parameter", ()),
    ("Residual/head/bias", "Parameter", ()),
    (
        "Residual/head/linear",
        "linear",
        ("Residual/mean", "Residual/head/weight", "Residual/head/bias"),
    ),
    ("Residual.output/output", "Output", ("Residual/head/linear",)),
]


def test_the_graph_holds_every_operation_in_its_layer_call_once_per_run() -> None:
    first, second = logged(Residual())
    assert edges(first) == RESIDUAL
    assert second is None
    assert first is not None
    convolution = first.nodes[3]
    assert convolution.shapes == ((4, 3, 12, 12),)
    assert convolution.module.startswith("Conv2d(3, 3, kernel_size=(3, 3)")


def test_a_forward_pass_that_depends_on_values_is_recorded_as_it_ran() -> None:
    graph = logged(ReadsValues())[0]
    assert [node[1] for node in edges(graph)] == [
        *("Input", "mean", "dropout", "relu", "Parameter", "conv2d", "add", "relu", "mean"),
        *("Parameter", "Parameter", "linear", "Output"),
    ]


def test_random_numbers_drawn_in_the_copy_leave_training_bitwise_the_same() -> None:
    def left(graph: bool) -> list[object]:
        torch.manual_seed(0)
        random.seed(0)
        model = ReadsValues()
        assert (logged(model, graph=graph)[0] is not None) == graph
        weights = [parameter.tolist() for parameter in model.parameters()]
        return [weights, torch.get_rng_state().tolist(), random.getstate()]

    assert left(True) == left(False)


def test_arguments_that_forward_changes_reach_training_unchanged() -> None:
    seen: list[list[float]] = []

    class Parts:
        def __init__(self) -> None:
            self.images = [torch.ones(1, 3, 4, 4)]

    class TakesParts(nn.Sequential):
        def forward(self, parts: Parts) -> Tensor:
            images = parts.images.pop()
            seen.append(images.flatten().tolist())
            return super().forward(images.add_(1))

    model, kept = TakesParts(nn.Conv2d(3, 4, 3)), MemoryWriter()
    model[0].normalized = model[0].weight / 2  # no leaf, as weight_norm's
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=kept, every=1, graph=True) as board, board.step(0):
        model(Parts()).sum().backward()
        optimizer.step()
    assert kept.steps[0].graph is not None
    assert seen == [[1.0] * 48] * 2


def test_no_hook_runs_in_the_copy_and_the_owner_of_a_hook_is_not_copied() -> None:
    class Owner:
        calls = 0

        def __call__(self, *args: object) -> None:
            self.calls += 1

        def __deepcopy__(self, memo: object) -> Owner:
            raise AssertionError("copied")

    model, owner, everywhere = Residual(), Owner(), Owner()
    model.conv.register_forward_hook(owner)
    handle = nn.modules.module.register_module_forward_hook(everywhere)
    try:
        (graph,) = logged(model, steps=1)
    finally:
        handle.remove()
    assert edges(graph) == RESIDUAL
    assert (owner.calls, everywhere.calls) == (1, 5)


@pytest.mark.usefixtures("errors_are_only_logged")
def test_an_error_in_the_copy_is_said_once_and_training_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = nn.Sequential(RaisesInCopies(3, 4, 3))
    with caplog.at_level(logging.WARNING):
        assert logged(model) == [None, None]
    (said,) = [r.getMessage() for r in caplog.records if "graph" in r.getMessage()]
    assert said == (
        "fmapboard: graph: ValueError: not in a copy; the Graphs tab is not written; "
        "training continues"
    )


@pytest.mark.parametrize("kind", ["directory", "torch", "tensorboardX"])
def test_tensorboard_reads_the_graphs_of_two_models_as_one(tmp_path: Path, kind: str) -> None:
    if kind == "tensorboardX":
        own = pytest.importorskip("tensorboardX").SummaryWriter(str(tmp_path))
    else:
        own = SummaryWriter(str(tmp_path)) if kind == "torch" else None
    place = {"log_dir": tmp_path} if own is None else {"writer": own}
    models = {"a": Residual(), "b": nn.Sequential(nn.Conv2d(3, 4, 1), nn.Flatten())}
    boards = [
        fmapboard.watch(model, name=name, every=1, graph=True, **place)  # type: ignore[arg-type]
        for name, model in models.items()
    ]
    for board, model in zip(boards, models.values(), strict=True):
        with board.step(0):
            model(torch.rand(1, 3, 6, 6)).sum().backward()
        board.flush()
    for board in boards:
        board.close()
    if own is not None:
        own.close()
    names = [node.name for node in EventAccumulator(str(tmp_path)).Reload().Graph().node]
    second = ["b.Sequential/0/conv2d", "b.Sequential/1/flatten", "b.Sequential.output/output"]
    assert [name for name in names if name in second] == second
    assert ("a.Residual/conv/conv2d" in names) == (kind == "directory")
