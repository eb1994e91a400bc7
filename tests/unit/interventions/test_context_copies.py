"""Copies of a model that are made under `intervene` are without the intervention."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import warm_python
from hooked_model import X
from networks import two_convolutions
from torch import nn

import fmapboard
from fmapboard import intervene, silence


def _loaded(model: nn.Module) -> nn.Module:
    stream = io.BytesIO()
    torch.save(model, stream)
    loaded: nn.Module = torch.load(io.BytesIO(stream.getvalue()), weights_only=False)
    return loaded


@pytest.mark.parametrize(
    "twin",
    [
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        _loaded,
        lambda model: torch.optim.swa_utils.AveragedModel(model).module,
    ],
    ids=["deepcopy", "pickle", "torch.save", "EMA"],
)
def test_a_copy_made_in_the_block_computes_what_the_model_does_outside(twin: Any) -> None:
    model = two_convolutions()
    before = model(X)
    every = {"2": silence()}
    with intervene(model, {"2": silence()}, inputs=every, gradients=every):
        copied = twin(model)
        assert torch.equal(copied(X), before)
        maps = fmapboard.extract(copied, X)
        assert torch.equal(maps["2"], before)
        assert not model(X).any()
    copied(X).sum().backward()
    assert copied[2].bias.grad.any()


_WITHOUT_FMAPBOARD = """
import sys
sys.modules["fmapboard"] = None
import torch
model = torch.load(sys.argv[1], weights_only=False)
print(bool(model(torch.ones(1, 1, 8, 8)).any()))
"""


def test_a_model_saved_in_the_block_loads_without_fmapboard(tmp_path: Path) -> None:
    model, file = two_convolutions(), tmp_path / "model.pt"
    with intervene(model, {"2": silence()}):
        torch.save(model, file)
    done = warm_python.run(_WITHOUT_FMAPBOARD, file)
    assert (done.returncode, done.stdout) == (0, "True\n")
