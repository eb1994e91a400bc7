"""Hooks exist only while armed, are removed on every exit path, and leave the model as it was."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
import torchvision
from hooked_model import RecordingSink, X
from module_hooks import hook_count
from networks import Raises, two_convolutions
from torch import nn

import fmapboard
from fmapboard import HookRegistry
from fmapboard.capture.passes import CaptureListener


def test_hooks_are_on_the_layers_only_while_the_root_runs() -> None:
    model, inside = torchvision.models.resnet18(), []
    model.fc.register_forward_hook(lambda *_: inside.append(hook_count(model)))
    registry = HookRegistry(model)
    registry.arm(RecordingSink(), sides=("output", "input"))
    assert hook_count(model) == 1
    model(torch.rand(2, 3, 32, 32))
    assert (hook_count(model), inside) == (1, [1 + 2 * 20])
    registry.disarm()
    assert hook_count(model) == 1
    assert not any("_compiled_call_impl" in vars(module) for module in model.modules())
    registry.disarm()
    assert hook_count(model) == 1


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_hooks_are_gone_after_an_exception_in_the_forward(error: type[BaseException]) -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 1), Raises(error()))
    registry = HookRegistry(model)
    registry.arm(RecordingSink())
    with pytest.raises(error):
        model(X)
    assert hook_count(model) == 0
    registry.disarm()


def test_hooks_are_gone_when_the_registry_is_garbage_collected() -> None:
    model = two_convolutions()
    registry = HookRegistry(model)
    registry.arm(RecordingSink())
    reference = weakref.ref(registry)
    del registry
    gc.collect()
    assert reference() is None
    assert not any("_compiled_call_impl" in vars(module) for module in model.modules())


def test_nothing_of_ours_runs_when_a_disarmed_registry_is_deleted() -> None:
    registry = HookRegistry(nn.Sequential(nn.Conv2d(1, 1, 1)))
    with registry.listening(CaptureListener()):
        pass
    called: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_filename)

    gc.disable()  # the garbage of other tests is not collected meanwhile
    sys.setprofile(note)
    del registry
    sys.setprofile(None)
    gc.enable()
    package = Path(fmapboard.__file__).parent
    ours = [path for path in called if Path(path).is_relative_to(package)]
    assert ours == []  # an interrupt would be lost


def test_arming_twice_records_for_the_second_listener() -> None:
    model, first, second = two_convolutions(), RecordingSink(), RecordingSink()
    registry = HookRegistry(model)
    registry.arm(first)
    registry.arm(second)
    model(X)
    registry.disarm()
    assert (first.labels, second.labels) == ([], ["0", "2"])
    assert hook_count(model) == 0


def test_hooks_that_cannot_be_installed_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = two_convolutions()
    registry = HookRegistry(model)

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("registration failed")

    with monkeypatch.context() as failing:
        failing.setattr(model[2], "register_forward_hook", broken)
        registry.arm(RecordingSink())
        with pytest.raises(RuntimeError, match="registration failed"):
            model(X)
    assert hook_count(model) == 0
    registry.disarm()


def test_the_users_own_hooks_stay_and_keep_their_order() -> None:
    model, calls = two_convolutions(), []
    for name in "ab":
        model[0].register_forward_hook(lambda *_, name=name: calls.append(name))
    before = list(model[0]._forward_hooks.values())
    registry = HookRegistry(model)
    registry.arm(RecordingSink(), sides=("output", "input"))
    later = model[0].register_forward_hook(lambda *_: calls.append("c"))
    model(X)
    assert list(model[0]._forward_hooks.values())[:2] == before
    registry.disarm()
    assert list(model[0]._forward_hooks.values())[:2] == before
    later.remove()
    assert calls == ["a", "b", "c"]
    assert list(model[0]._forward_hooks.values()) == before


def test_an_armed_model_computes_bitwise_the_same() -> None:
    model = torchvision.models.squeezenet1_1().eval()
    x = torch.rand(1, 3, 64, 64)
    expected = model(x)
    registry = HookRegistry(model)
    registry.arm(RecordingSink(), sides=("output", "input"))
    out = model(x)
    registry.disarm()
    assert torch.equal(out, expected)
    assert type(out.grad_fn) is type(expected.grad_fn)


def test_compiled_code_runs_again_once_both_registries_are_disarmed() -> None:
    import torch._dynamo

    def stance() -> str:
        return str(torch._dynamo.eval_frame._stance.stance)

    first, second = HookRegistry(two_convolutions()), HookRegistry(two_convolutions())
    first.arm(RecordingSink())
    second.arm(RecordingSink())
    assert stance() == "force_eager"
    first.disarm()
    assert stance() == "force_eager"
    second.disarm()
    assert stance() == "default"
