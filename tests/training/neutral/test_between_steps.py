"""Between steps, a due one included, a watched model can be scripted, traced, copied and saved."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import warm_python
from logged_step import statistics_of
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel
from torchvision.models.resnet import BasicBlock, ResNet

import fmapboard
from fmapboard.capture import module_calls
from fmapboard.writers.folder import MemoryWriter

STEPS = 5
SLOT = "_compiled_call_impl"


class Parent(nn.Module):
    """The watched model is a part of it."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).relu()  # type: ignore[no-any-return]


def sequential() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(400, 4)
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "Sequential": sequential,
    "own class": NestedNet,
    "ResNet-10": lambda: ResNet(BasicBlock, [1, 1, 1, 1], num_classes=4),
}


def images() -> Tensor:
    return torch.randn(4, 3, 12, 12)


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(model(images()), torch.randint(0, 4, (4,))).backward()
    optimizer.step()


def entries(model: nn.Module) -> int:
    """Hooks on the model, and functions in the slots of copies."""
    return hook_count(model) + sum(SLOT in vars(module) for module in model.modules())


def at_each_step(
    model: nn.Module, act: Callable[[int], None], *, counted: bool = True, every: int = 2
) -> MemoryWriter:
    """Train, and act between the steps, before the first one and inside each ``board.step``."""
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.1), MemoryWriter()
    board = fmapboard.watch(
        model, writer=kept, optimizer=optimizer if counted else None, every=every
    )
    for number in range(STEPS):
        if counted:
            act(number)
        with nullcontext() if counted else board.step(number):
            if not counted:
                act(number)
            step(model, optimizer)
    board.close()
    return kept


@pytest.mark.parametrize("counted", [False, True])
def test_between_steps_no_module_has_a_hook(counted: bool) -> None:
    model, inside = NestedNet(), list[int]()
    noted = model.stem.register_forward_hook(lambda *_: inside.append(hook_count(model)))
    kept = at_each_step(model, lambda _: inside.append(hook_count(model)), counted=counted)
    noted.remove()
    assert [step.step for step in kept.steps] == [0, 2, 4]
    assert inside[::2] == [1] * STEPS
    assert [count > 1 for count in inside[1::2]] == [True, False, True, False, True]


@pytest.mark.filterwarnings("ignore:.torch.jit")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_model_and_its_parent_can_be_scripted_at_every_step(make: Any) -> None:
    model = make()
    parent, x = Parent(model), images()

    def act(number: int) -> None:
        scripted, outer = torch.jit.script(model), torch.jit.script(parent)
        model.eval()
        for module in (scripted, outer):
            module.eval()
        assert torch.allclose(scripted(x), model(x), atol=1e-5)
        assert torch.allclose(outer(x), model(x).relu(), atol=1e-5)
        loaded = io.BytesIO()
        torch.jit.save(scripted, loaded)
        assert b"fmapboard" not in loaded.getvalue()
        model.train()

    kept = at_each_step(model, act)
    assert [step.step for step in kept.steps] == [0, 2, 4]
    assert all(step.pictures for step in kept.steps)


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_model_can_be_traced_exported_and_copied_at_every_step(make: Any) -> None:
    model, x = make(), images()
    average = AveragedModel(model)

    def act(number: int) -> None:
        model.eval()
        expected = model(x)
        saved = io.BytesIO()
        torch.save(model, saved)
        saved.seek(0)
        copies = [
            copy.deepcopy(model),
            pickle.loads(pickle.dumps(model)),
            torch.load(saved, weights_only=False),
            AveragedModel(model).module,
            torch.fx.symbolic_trace(model),
        ]
        others = [torch.jit.trace(model, x, check_trace=False)]
        if number < 2:  # the second one is a step that is not logged
            others.append(torch.export.export(model, (x,)).module())
        for twin in (*copies, *others):
            assert torch.allclose(twin(x), expected, atol=1e-5)
        assert [entries(twin) for twin in copies] == [0] * len(copies)
        average.update_parameters(model)
        model.train()

    kept = at_each_step(model, act)
    assert [step.step for step in kept.steps] == [0, 2, 4]
    assert all(step.pictures for step in kept.steps)
    assert entries(average) == 0


class OwnState(NestedNet):
    """Decides itself what belongs into a copy, as models do that hold what cannot be pickled."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


@pytest.mark.filterwarnings("ignore:.torch.jit")
@pytest.mark.parametrize("fallback", ["own state", "no slot"])
def test_where_the_slot_cannot_be_used_copies_work_and_scripting_names_the_reason(
    fallback: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fallback == "no slot":
        monkeypatch.setattr(module_calls, "_torch_has_slot", lambda: False)
    model, x = OwnState() if fallback == "own state" else NestedNet(), images()
    messages = list[str]()

    def act(number: int) -> None:
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert twin(x).shape == (4, 4)
        try:
            torch.jit.script(model)
        except AttributeError as error:
            messages.append(str(error))

    kept = at_each_step(model, act)
    assert [step.step for step in kept.steps] == [0, 2, 4]
    assert all(statistics_of(step, "stem") for step in kept.steps)
    assert len(messages) == 3  # at due steps only
    assert all(text.startswith("torch.jit.script: this model has a hook of") for text in messages)
    assert hook_count(model) == 0


_WITHOUT_FMAPBOARD = """
import sys
sys.modules["fmapboard"] = None
import torch
for path in sys.argv[1:]:
    model = torch.load(path, weights_only=False)
    print(tuple(model(torch.ones(2, 3, 12, 12)).shape))
"""


@pytest.mark.slow
def test_a_model_saved_at_any_step_loads_where_fmapboard_is_not_installed(tmp_path: Path) -> None:
    model = sequential()
    at_each_step(model, lambda number: torch.save(model, tmp_path / f"{number}.pt"))
    paths = sorted(tmp_path.iterdir())
    done = warm_python.run(_WITHOUT_FMAPBOARD, *paths)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "(2, 4)\n" * STEPS
