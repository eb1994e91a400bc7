"""A tap in compiled, traced, checkpointed and copied models."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tapped_models import Residual, images, logged, names
from torch import Tensor, nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.slow
def test_a_compiled_model_holds_no_trace_of_a_tap_and_is_not_compiled_again() -> None:
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    model, x = Residual().eval(), images()
    expected = model(x)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    assert torch.equal(compiled(x), expected)
    assert list(fmapboard.extract(compiled, x)) == ["conv", "sum"]
    assert torch.equal(compiled(x), expected)
    assert len(graphs) == 1


@pytest.mark.filterwarnings(r"ignore:.*torch\.jit\.")
def test_a_traced_model_holds_no_trace_of_a_tap() -> None:
    model, x = Residual(), images()
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        traced = torch.jit.trace(model, x)
        model(x)
    assert torch.equal(traced(x), model(x))
    assert names(kept.steps[0]) == ["conv", "sum"]


def test_a_checkpointed_part_is_recorded_once() -> None:
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Residual()

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.part, x, use_reentrant=False)  # type: ignore[no-any-return]

    step = logged(Net(), images())
    assert names(step) == ["part.conv", "sum"]
    assert "gradients_of_maps_Tap/sum" in {tagged.tag for tagged in step.pictures}


def test_a_copy_made_during_a_logged_step_is_not_recorded() -> None:
    model, x, kept = Residual(), images(), MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        twin = copy.deepcopy(model)
        twin(x)
        twin.name = "copied"
        model(x)
        twin(x)
    assert names(kept.steps[0]) == ["conv", "sum"]
