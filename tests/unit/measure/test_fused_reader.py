"""When the fused kernels are not used: layers are then read with plain operations, and one warning
says why."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fmapboard
from fmapboard.errors import WarnOnce
from fmapboard.measure.fused import choice
from fmapboard.measure.fused.choice import reader_for
from fmapboard.measure.fused.reader import FusedReader
from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerCall, LayerMeasurement
from fmapboard.writers.memory import MemoryWriter

CPU = torch.device("cpu")
CONV = nn.Conv2d(3, 4, 3)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]


def ready(failures: list[str]) -> FusedReader:
    """A reader that takes tensors of the CPU, for which nothing is compiled."""
    reader = FusedReader(failures.append)
    reader._devices.add(CPU)
    return reader


def reduced(reducer: Reducer, maps: torch.Tensor) -> LayerMeasurement:
    return reducer(LayerCall("conv", "Conv2d"), "feature_maps", maps, CONV).to_host()


def failing_launch(calls: list[str]) -> Any:
    def reduce(*args: Any) -> None:
        calls.append("reduce")
        raise RuntimeError("Triton Error [CUDA]: out of resources\nmore text")

    return SimpleNamespace(reduce=reduce)


def test_without_triton_compiling_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    failures: list[str] = []
    reader = FusedReader(failures.append)
    assert not reader.compile(CPU)
    assert len(failures) == 1
    assert failures[0].endswith("Triton is not installed")
    assert reader.read(torch.randn(2, 3, 4, 4)) is None


def test_a_failed_launch_is_reported_once_and_every_layer_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[str] = []
    module = "fmapboard.measure.fused.launch"
    monkeypatch.setitem(sys.modules, module, failing_launch(calls))
    failures: list[str] = []
    maps = torch.randn(2, 4, 9, 9)
    # With this scale, what is drawn is copied in the same launch.
    reducer = Reducer(scale="layer", fused=ready(failures))
    expected = reduced(Reducer(scale="layer"), maps)
    for _ in range(2):
        found = reduced(reducer, maps)
        assert found.planes is not None
        assert expected.planes is not None
        np.testing.assert_array_equal(found.planes.pixels, expected.planes.pixels)
        assert str(found.statistics) == str(expected.statistics)
        assert str(found.sample) == str(expected.sample)
    assert failures == [
        "fused kernels are not used, layers are read in several steps: "
        "Triton Error [CUDA]: out of resources"
    ]


def test_after_a_failure_nothing_is_launched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    module = "fmapboard.measure.fused.launch"
    monkeypatch.setitem(sys.modules, module, failing_launch(calls))
    failures: list[str] = []
    reader = ready(failures)
    for _ in range(3):
        assert reader.read(torch.randn(2, 4, 9, 9)) is None
        assert (
            reader.tiles(torch.randn(1, 4, 9, 9), 64, centered=False, channels=4, view="") is None
        )
    assert calls == ["reduce"]
    assert len(failures) == 1


def test_what_the_kernels_cannot_read_is_declined_without_a_warning() -> None:
    failures: list[str] = []
    reader = ready(failures)
    maps = torch.randn(2, 3, 4, 4)
    for declined in (
        maps.double(),
        maps.to("meta"),
        torch.view_as_complex(torch.randn(2, 3, 4, 2)).conj().imag,
        nn.Parameter(maps),
    ):
        assert not reader.covers(declined)
        assert reader.read(declined) is None
    assert reader.covers(maps)
    huge = torch.empty(1).expand(2**16, 2**15)
    assert reader.read(huge) is None
    assert failures == []


def test_the_option_is_off_by_default_until_a_device_has_passed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for fused in (False, "auto"):
        assert reader_for(CONV, fused, WarnOnce()) is None  # type: ignore[arg-type]
    monkeypatch.setattr(choice, "PASSED_ON_A_DEVICE", True)
    assert reader_for(CONV, "auto", WarnOnce()) is None  # no CUDA device
    assert warnings_in(caplog) == []


def test_a_model_that_is_not_on_a_cuda_device_is_logged_and_one_warning_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, writer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), MemoryWriter()
    with fmapboard.watch(model, writer=writer, every=1, fused=True) as board:
        for number in range(2):
            with board.step(number):
                model(torch.randn(2, 3, 8, 8)).sum().backward()
    assert [len(step.statistics) for step in writer.steps] == [2, 2]
    about = [text for text in warnings_in(caplog) if "fused" in text]
    assert about == ["fmapboard: fused=True has no effect: the model is not on a CUDA device"]


def test_kernels_that_do_not_compile_are_reported_when_watch_is_called(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parameter = SimpleNamespace(device=torch.device("cuda", 0))
    model = SimpleNamespace(parameters=lambda: [parameter], buffers=list)

    def check(device: torch.device) -> None:
        raise ArithmeticError("wrong values of a torch.float32 tensor (2, 32)")

    monkeypatch.setitem(
        sys.modules, "fmapboard.measure.fused.warm_up", SimpleNamespace(check=check)
    )
    monkeypatch.setattr("fmapboard.measure.fused.reader._current", lambda device: torch.no_grad())
    assert reader_for(model, True, WarnOnce()) is None  # type: ignore[arg-type]
    (text,) = warnings_in(caplog)
    assert text.endswith("wrong values of a torch.float32 tensor (2, 32)")
