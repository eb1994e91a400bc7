"""Errors of `fmapboard.watch`: an invalid option raises, a run-time error warns once."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from controlled_writers import FullDiskWriter
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor, nn
from watched_training import numbers, train_step

import fmapboard
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"every": 0}, "every=0: expected a whole number of steps, at least 1"),
        ({"every": -5}, "every=-5"),
        ({"layers": "stm"}, "no layer matches 'stm' among 8; closest: stem"),
        (
            {"probe": torch.zeros(2, 5, 12, 12)},
            r"model.forward\(\) failed on the probe of shape \[2, 5, 12, 12\]",
        ),
        ({"probe": torch.zeros(0, 3, 12, 12)}, "expected at least one sample"),
        ({"probe": "images"}, "expected a tensor of images"),
        ({"samples": 0}, "samples=0: expected a whole number, at least 1"),
        ({"scale": "batch"}, "scale='batch': expected 'channel' or 'layer' or 'locked'"),
        ({"colormap": "jet"}, "no palette 'jet'"),
        ({"start_step": -1}, "start_step=-1"),
        ({"normalization": (0.5, 0.5)}, r"normalization=\(0.5, 0.5\): expected \(mean, std\)"),
        ({"normalization": ((0.5,), (0.1, 0.1))}, "one number per channel"),
        ({"smaples": 3}, "no option 'smaples'; closest: samples"),
        ({"name": "a/b"}, "name='a/b'"),
        ({"log_dir": "x"}, "log_dir and writer are mutually exclusive"),
        ({"optimizer": "sgd"}, "optimizer=str: expected a torch.optim.Optimizer"),
    ],
)
def test_an_invalid_option_is_refused_at_once(options: dict[str, object], text: str) -> None:
    model = NestedNet()
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        fmapboard.watch(model, writer=MemoryWriter(), **options)
    assert hook_count(model) == 0


def test_a_model_with_nothing_to_watch_is_refused_with_what_it_has() -> None:
    with pytest.raises(
        fmapboard.NoConvolution, match=r"no other layer with parameters to watch; its modules are"
    ):
        fmapboard.watch(nn.Sequential(nn.ReLU(), nn.ReLU()), writer=MemoryWriter())


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fmapboard.WriteError, match="cannot write to"):
        fmapboard.watch(NestedNet(), tmp_path / "file" / "run")


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_failing_writer_warns_once_and_training_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), FullDiskWriter(full_at=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(3):
            train_step(model, optimizer)
    assert numbers(kept.steps) == [0, 2]
    assert [r.message for r in caplog.records] == [
        "fmapboard: writing: OSError: [Errno 28] No space left on device; this step is lost; "
        "training continues"
    ]


def test_an_error_is_raised_if_the_environment_variable_asks_for_it() -> None:
    model, kept = NestedNet(), FullDiskWriter(full_at=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=kept, every=1)
    for number in range(2):
        with board.step(number):
            train_step(model, optimizer)
    with pytest.raises(fmapboard.CaptureError, match="No space left"):
        board.flush()
    board.close()


def test_a_model_that_is_bypassed_gets_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    model, kept = NestedNet(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        for number in range(3):
            optimizer.zero_grad()
            with board.step(number):
                model.stem.forward(torch.zeros(1, 3, 8, 8))
    board.close()
    assert [r.message.split(":")[2] for r in caplog.records] == [
        " no watched layer ran in a training pass; call the model itself (not a scripted or "
        "traced copy), with gradients enabled, in the training thread"
    ]
    assert kept.steps == []


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_layer_that_fails_in_the_worker_is_left_out_and_the_step_is_written(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fmapboard.measure.reducer

    real = fmapboard.measure.reducer.PendingMeasurement.to_host

    def faulty(pending: fmapboard.measure.reducer.PendingMeasurement) -> object:
        if pending.layer_call.layer == "inner.0.0":
            raise MemoryError("no room")
        return real(pending)

    monkeypatch.setattr(fmapboard.measure.reducer.PendingMeasurement, "to_host", faulty)
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(3):
            train_step(model, optimizer)
    assert [r.message for r in caplog.records] == [
        "fmapboard: inner.0.0: MemoryError: no room; it is not logged; training continues"
    ]
    assert len(kept.steps) == 3
    left = {m.layer_call.layer for m in kept.steps[0].statistics}
    assert left
    assert "inner.0.0" not in left


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_bug_in_the_capture_of_one_layer_is_reported_once_and_other_layers_are_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fmapboard.measure.reducer

    real, tries = fmapboard.measure.reducer.statistics, []

    def faulty(maps: Tensor, floor: float | None = None, **options: bool) -> object:
        if maps.shape[1] == 16:
            tries.append(maps.shape)
            raise ZeroDivisionError("a bug")
        return real(maps, floor, **options)

    monkeypatch.setattr(fmapboard.measure.reducer, "statistics", faulty)
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(6):
            train_step(model, optimizer)
    assert [r.message for r in caplog.records] == [
        "fmapboard: inner.0.0: ZeroDivisionError: a bug; it is not logged; training continues"
    ]
    assert len(tries) == 3  # after that the layer is skipped
    assert numbers(kept.steps) == list(range(6))
    assert {"feature_maps_8x3x5x5/stem"} == {
        p.tag for p in kept.steps[-1].pictures if p.kind == "feature_maps"
    }
