"""`intervene` acts on compiled models, and compiled code is used again after the block."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor, nn

from fmapboard import extract, intervene, scale, silence

X = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


@pytest.fixture(autouse=True)
def _nothing_compiled() -> None:
    torch.compiler.reset()


def expected_of(model: nn.Module) -> Tensor:
    """What the model returns if all of the stem's channels are silenced, without a hook."""
    kept = model.stem.weight.detach().clone(), model.stem.bias.detach().clone()
    with torch.no_grad():
        model.stem.weight.zero_()
        model.stem.bias.zero_()
        out = model(X)
        model.stem.weight.copy_(kept[0])
        model.stem.bias.copy_(kept[1])
    return out


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of dynamo itself
@pytest.mark.parametrize(
    ("backend", "how"),
    [
        pytest.param("inductor", "wrapped", marks=pytest.mark.sweep),
        *(("eager", how) for how in ("wrapped", "in place", "before", "function")),
    ],
)
def test_a_compiled_model_is_changed_in_the_block_only_and_not_compiled_again(
    backend: str, how: str
) -> None:
    from torch._dynamo.utils import counters

    model = NestedNet().eval()
    silenced, bare = expected_of(model), model(X).detach()
    compiled: Any = model
    if how in ("wrapped", "before"):
        compiled = torch.compile(model, backend=backend)
    elif how == "in place":
        model.compile(backend=backend)
    else:
        compiled = torch.compile(lambda x: model(x), backend=backend)
    if how != "before":  # otherwise the first call is in the block
        torch.testing.assert_close(compiled(X), bare)
    counters.clear()
    named = compiled if isinstance(compiled, nn.Module) else model
    with intervene(named, {"stem": silence()}, gradients={"head": scale(0.0)}):
        changed = compiled(X)
        changed.sum().backward()
        maps = extract(named, X, "stem")
    assert torch.equal(changed, silenced)
    assert not model.inner[0][0].weight.grad.any()
    assert not maps["stem"].any()
    assert hook_count(model) == 0
    torch.testing.assert_close(compiled(X), bare)
    assert sum(counters["recompiles"].values()) == 0


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_a_model_that_is_compiled_in_the_block_is_without_the_intervention_afterwards() -> None:
    model = NestedNet().eval()
    silenced, bare = expected_of(model), model(X)
    with intervene(model, {"stem": silence()}):
        compiled = torch.compile(model, backend="eager")
        assert torch.equal(compiled(X), silenced)
    assert torch.equal(compiled(X), bare)


_FIRST_COMPILED_IN_THE_BLOCK = """
import sys, torch, fmapboard
model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.ReLU())
x = torch.ones(1, 1, 4, 4)
model[0].bias.data.fill_(9.0)
before = model(x)
silenced = fmapboard.intervene(model, {"0": fmapboard.silence()}, gradients={"1": abs})
with silenced:
    assert not model(x).any()
assert "torch._dynamo" not in sys.modules  # importing it takes seconds
with silenced:
    compiled = torch.compile(model, backend="eager")
    assert not compiled(x).any()
    with fmapboard.intervene(model, {"1": fmapboard.replace(5.0)}):
        assert (compiled(x) == 5).all()
    assert not compiled(x).any()
assert torch.equal(compiled(x), before)
assert not model[0]._forward_hooks
"""


def test_without_compiled_code_the_compiler_is_not_imported_and_the_block_may_compile() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FIRST_COMPILED_IN_THE_BLOCK],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
