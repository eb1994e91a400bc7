"""Copies of a model made while its hooks are armed capture nothing and load without fmapboard."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
import warm_python
from hooked_model import RecordingSink, X
from networks import two_convolutions
from torch import nn

from fmapboard import HookRegistry


def _saved(model: nn.Module) -> bytes:
    stream = io.BytesIO()
    torch.save(model, stream)
    return stream.getvalue()


def _loaded(data: bytes) -> nn.Module:
    model: nn.Module = torch.load(io.BytesIO(data), weights_only=False)
    return model


@pytest.mark.parametrize(
    "twin",
    [
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: _loaded(_saved(model)),
        lambda model: torch.optim.swa_utils.AveragedModel(model).module,
    ],
    ids=["deepcopy", "pickle", "torch.save", "EMA"],
)
def test_a_copy_made_while_armed_captures_nothing_and_computes_the_same(twin: Any) -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    copied = twin(model)
    out = copied(X)
    assert (sink.begun, sink.reported) == (0, [])
    expected = model(X)
    registry.disarm()
    assert torch.equal(out, expected)
    assert sink.begun == 1
    copied(X)
    assert sink.begun == 1


def test_a_shallow_copy_of_a_layers_hook_is_inert() -> None:
    model, sink = two_convolutions(), RecordingSink()
    registry, found = HookRegistry(model), []
    registry.arm(sink)
    model[1].register_forward_hook(lambda *_: found.extend(model[2]._forward_hooks.values()))
    model(X)
    (own,) = found
    sink.reported.clear()
    assert copy.copy(own)(model[2], (X,), {}, X) is None
    assert sink.reported == []
    registry.disarm()


_WITHOUT_FMAPBOARD = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "fmapboard":
            raise ModuleNotFoundError("fmapboard is not installed here")

sys.meta_path.insert(0, Blocker())
import pickle, torch
for path in sys.argv[1:]:
    model = torch.load(path, weights_only=False)
    print(tuple(model(torch.ones(1, 1, 8, 8)).shape))
    pickle.loads(pickle.dumps(model))
assert "fmapboard" not in sys.modules
"""


@pytest.mark.slow
def test_a_model_saved_while_armed_loads_and_runs_where_fmapboard_is_not_installed(
    tmp_path: Path,
) -> None:
    model = two_convolutions()
    registry = HookRegistry(model, also={"1": model[1]})
    registry.arm(RecordingSink(), sides=("output", "input"))
    (tmp_path / "armed.pt").write_bytes(_saved(model))
    (tmp_path / "copied.pt").write_bytes(_saved(copy.deepcopy(model)))
    registry.disarm()
    done = warm_python.run(_WITHOUT_FMAPBOARD, tmp_path / "armed.pt", tmp_path / "copied.pt")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "(1, 2, 4, 4)\n(1, 2, 4, 4)\n"


class CopiesItself(nn.Module):
    """Copies its layers, which have hooks then, inside ``forward``."""

    def __init__(self, twin: Any) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3))
        self.twin, self.copies = twin, list[nn.Module]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.copies.append(self.twin(self.layers))
        return self.layers(x)  # type: ignore[no-any-return]


def _ours(module: nn.Module) -> list[object]:
    """What a module holds that fmapboard defines, in its hook dictionaries and attributes."""
    held = [*vars(module).values()]
    held += [value for one in held if isinstance(one, dict) for value in one.values()]
    return [
        one
        for one in held
        for name in (type(one).__module__, getattr(one, "__module__", None))
        if str(name).startswith("fmapboard")
    ]


@pytest.mark.parametrize(
    "twin",
    [copy.deepcopy, copy.copy, lambda model: _loaded(_saved(model))],
    ids=["deepcopy", "copy", "torch.save"],
)
def test_a_copy_made_inside_forward_holds_nothing_of_ours(twin: Any) -> None:
    model, sink = CopiesItself(twin), RecordingSink()
    with HookRegistry(model).listening(sink, sides=("output", "input")):
        expected = model(X)
        assert sink.labels == ["layers.0", "layers.0", "layers.1", "layers.1"]
        (copied,) = model.copies
        assert [_ours(module) for module in copied.modules()] == [[]] * 3
        assert torch.equal(copied(X), expected)
    assert len(sink.labels) == 4
