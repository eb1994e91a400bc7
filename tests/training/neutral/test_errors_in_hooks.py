"""An error of fmapboard's in a hook never reaches the user's forward pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from networks import NestedNet
from watched_training import train_step

import fmapboard
from fmapboard import HookRegistry
from fmapboard.capture import passes
from fmapboard.capture.passes import CallNumbers, CaptureListener, LayerCalls, PassRecorder
from fmapboard.session.selection import PassSelection, TrainingPasses
from fmapboard.writers.folder import MemoryWriter

FAULTS: dict[str, tuple[Any, str]] = {
    "a layer's kernel shape": (passes, "kernel_shape"),
    "an activation's floor": (passes, "floor_of"),
    "layer call": (LayerCalls, "of"),
    "numbering of calls": (CallNumbers, "next"),
    "begin of a pass": (PassSelection, "_begins"),
    "end of a pass": (PassSelection, "_returns"),
    "which passes count": (TrainingPasses, "counts"),
    "policy": (PassSelection, "decide"),
    "thread": (PassRecorder, "_is_foreign_thread"),
    "replicas": (PassRecorder, "_is_on_other_device"),
    "compiled": (passes, "is_unobservable"),
}


def trained(monkeypatch: pytest.MonkeyPatch, fault: tuple[Any, str] | None) -> list[torch.Tensor]:
    """Parameters after three steps, with or without a watch whose hooks fail."""
    torch.manual_seed(0)
    model = NestedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if fault is None:
        for _ in range(3):
            train_step(model, optimizer)
        return [parameter.detach().clone() for parameter in model.parameters()]
    calls = []

    def fail(*args: Any, **options: Any) -> None:
        calls.append(args)
        raise LookupError("a fault of ours")

    with (
        fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1, inputs=True),
        monkeypatch.context() as broken,
    ):
        broken.setattr(*fault, fail)
        for _ in range(3):
            train_step(model, optimizer)
    assert calls
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_error_in_a_hook_is_reported_and_training_is_the_same(
    fault: tuple[Any, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = trained(monkeypatch, None)
    watched = trained(monkeypatch, fault)
    for one, other in zip(watched, bare, strict=True):
        assert torch.equal(one, other)
    assert "LookupError: a fault of ours; it is not logged; training continues" in caplog.text


@pytest.mark.usefixtures("errors_are_only_logged")
def test_the_other_layers_are_logged_without_the_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model, writer = NestedNet(), MemoryWriter()
    layer_call = LayerCalls.of

    def fail_for_one(self: LayerCalls, name: str, *args: Any) -> Any:
        if name == "stem":
            raise LookupError("a fault of ours")
        return layer_call(self, name, *args)

    monkeypatch.setattr(LayerCalls, "of", fail_for_one)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    assert caplog.text.count("stem: LookupError: a fault of ours") == 1
    drawn = {
        picture.layer_call.layer
        for picture in writer.steps[0].pictures
        if picture.layer_call and picture.kind == "feature_maps"
    }
    assert drawn
    assert "stem" not in drawn


def test_the_errors_of_a_listener_of_the_users_own_are_raised() -> None:
    class Failing(CaptureListener):
        def begin(self, args: Any, kwargs: Any) -> None:
            raise LookupError("a fault of the listener")

        def captured(self, *args: Any) -> None:
            return

    model = NestedNet()
    with HookRegistry(model).listening(Failing()), pytest.raises(LookupError):
        model(torch.zeros(2, 3, 12, 12))
