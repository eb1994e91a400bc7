"""``graph``: TensorBoard's Graphs tab, from a copy of the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.graph_pb2 import GraphDef
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.errors import ConfigurationError, ForwardError

IMAGES = torch.ones(4, 3, 12, 12)


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


def nodes(model: nn.Module, x: Any = IMAGES) -> list[Any]:
    found = GraphDef.FromString(fmapboard.graph(model, x).graph_def)
    return list(found.node)


def edges(model: nn.Module) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(node.name, node.op, tuple(node.input)) for node in nodes(model)]


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


def test_the_graph_holds_every_operation_in_its_layer_call() -> None:
    assert edges(Residual()) == RESIDUAL
    convolution = nodes(Residual())[3]
    (shape,) = convolution.attr["_output_shapes"].list.shape
    assert [axis.size for axis in shape.dim] == [4, 3, 12, 12]
    assert convolution.attr["module"].s.startswith(b"Conv2d(3, 3, kernel_size=(3, 3)")


def test_a_forward_pass_that_depends_on_values_is_recorded_as_it_ran() -> None:
    assert [node.op for node in nodes(ReadsValues())] == [
        *("Input", "mean", "dropout", "relu", "Parameter", "conv2d", "add", "relu", "mean"),
        *("Parameter", "Parameter", "linear", "Output"),
    ]


def test_the_model_its_input_and_the_random_states_are_left_unchanged() -> None:
    torch.manual_seed(0)
    random.seed(0)
    before = torch.get_rng_state(), random.getstate()
    images = torch.full((1, 3, 4, 4), -1.0)  # which the first layer overwrites

    class Parts:
        def __init__(self) -> None:
            self.images = [images]

    class TakesParts(ReadsValues):
        def forward(self, parts: Parts) -> Tensor:
            return super().forward(parts.images.pop().mul_(2))

    torch.manual_seed(0)
    model, parts = TakesParts(), Parts()
    torch.set_rng_state(before[0])
    names = [list(vars(module)) for module in model.modules()]
    assert nodes(model, parts)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert parts.images == [images]
    assert images.eq(-1).all()
    assert [list(vars(module)) for module in model.modules()] == names


def test_no_hook_runs_and_the_owner_of_a_hook_is_not_copied() -> None:
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
        assert edges(model) == RESIDUAL
    finally:
        handle.remove()
    assert (owner.calls, everywhere.calls) == (0, 0)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # torch.compile reads it
def test_a_compiled_model_is_not_compiled_again() -> None:
    compiled = 0

    def backend(module: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        nonlocal compiled
        compiled += 1
        return module.forward

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    model[0].compile(backend=backend)
    model[2] = torch.compile(model[2], backend=backend)
    model(IMAGES)
    before, called = compiled, model[0]._compiled_call_impl
    assert [node.op for node in nodes(model) if node.op == "conv2d"] == ["conv2d"] * 2
    model(IMAGES)
    assert compiled == before
    assert model[0]._compiled_call_impl is called


def test_an_error_of_the_model_names_the_layer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(5, 4, 3))
    with pytest.raises(ForwardError, match=r"^1 \(Conv2d\) raised RuntimeError"):
        fmapboard.graph(model, IMAGES)


def test_lazy_parameters_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="run it once"):
        fmapboard.graph(nn.LazyConv2d(4, 3), IMAGES)


def test_tensorboard_reads_the_graph_from_the_users_own_writer(tmp_path: Path) -> None:
    writer = SummaryWriter(str(tmp_path))
    writer.file_writer.add_event(fmapboard.graph(Residual(), IMAGES))
    writer.close()
    found = EventAccumulator(str(tmp_path)).Reload().Graph().node
    assert [(node.name, node.op, tuple(node.input)) for node in found] == RESIDUAL
