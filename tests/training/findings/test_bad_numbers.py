"""Extreme and non-finite values in a logged step: measured, counted and reported."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from controlled_writers import FullDiskWriter
from logged_step import log_pass, statistics_of
from run_reader import read
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.util import tensor_util
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

INF, NAN = math.inf, math.nan


class Same(nn.Module):
    """Returns its input, so that a test chooses the maps."""

    def forward(self, x: Tensor) -> Tensor:
        return x


def log(x: Tensor, **options: Any) -> LoggedStep:
    """Log a pass whose maps are ``x``; divisions by 0 and empty slices in numpy are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return log_pass(nn.Sequential(Same()), x, layers=[Same], inputs=True, **options)


def with_values(*values: float) -> Tensor:
    """Random maps [2, 3, 4, 4]; channel 1 of the first sample begins with these values."""
    x = torch.randn(2, 3, 4, 4)
    x[0, 1].view(-1)[: len(values)] = torch.tensor(values)
    return x


CASES: dict[str, Callable[[], Tensor]] = {
    "constant": lambda: torch.full((2, 3, 4, 4), 0.1),
    "zero": lambda: torch.zeros(2, 3, 4, 4),
    "1x1": lambda: torch.randn(2, 3, 1, 1),
    "1x1 of one sample": lambda: torch.randn(1, 3, 1, 1),
    "one channel": lambda: torch.randn(2, 1, 4, 4),
    "2048 channels": lambda: torch.randn(1, 2048, 2, 2),
    "one NaN": lambda: with_values(NAN),
    "infinities": lambda: with_values(INF, -INF, INF),
    "all kinds": lambda: with_values(NAN, INF, -INF, 3e38),
    "all NaN": lambda: torch.full((2, 3, 4, 4), NAN),
    "all infinite": lambda: torch.full((2, 3, 4, 4), -INF),
    "3e38": lambda: torch.full((2, 3, 4, 4), 3e38) * torch.tensor([1.0, -1.0, 0.5, 1.0]),
    "denormal": lambda: torch.randn(2, 3, 4, 4) * 1e-41,
    "a large mean": lambda: torch.randn(2, 3, 16, 16) * 1e-3 + 1e4,
    "float16 overflow in sums": lambda: torch.full((2, 3, 16, 16), 6e4).half(),
    "bfloat16 3e38": lambda: torch.full((2, 3, 4, 4), 3e38).bfloat16(),
    "float64 1e300": lambda: torch.randn(2, 3, 4, 4, dtype=torch.float64) * 1e300,
    "float64 1e-200": lambda: torch.randn(2, 3, 4, 4, dtype=torch.float64) * 1e-200,
}


@pytest.mark.parametrize("name", CASES)
def test_statistics_are_those_of_float64(name: str) -> None:
    x = CASES[name]()
    step = log(x)
    kept = statistics_of(step, "0")
    for channel in range(x.shape[1]):
        values = x[:, channel].double().numpy().ravel()
        known = values[np.isfinite(values)].astype(np.longdouble)
        size = np.max(np.abs(known), initial=0)
        for number, function in (
            (kept.minimum, np.min), (kept.maximum, np.max), (kept.mean, np.mean), (kept.std, np.std)
        ):  # fmt: skip
            true = float(function(known)) if known.size else NAN
            spread = 1e-4 * float(known.std()) if known.size else 0.0
            assert number[channel] == pytest.approx(
                true, rel=1e-4, abs=max(spread, float(size) * 1e-6), nan_ok=True
            )
        counts = (np.isnan(values).sum(), (values == INF).sum(), (values == -INF).sum())
        found = (kept.nan, kept.positive_infinity, kept.negative_infinity)
        assert tuple(row[channel] for row in found) == counts
        assert kept.constant[channel] == (
            known.size == values.size > 1 and known.min() == known.max()
        )


@pytest.mark.each_once
@pytest.mark.parametrize("colormap", ["grey", "signed"])
@pytest.mark.parametrize("name", CASES)
def test_histograms_hold_every_finite_value_and_pictures_are_drawn(
    name: str, colormap: str
) -> None:
    x = CASES[name]()
    step = log(x, colormap=colormap)
    histogram = next(h for h in step.histograms if h.tag == "activations/0")
    finite = int(torch.isfinite(x).sum())
    assert histogram.counts.sum() == finite
    assert histogram.nonfinite == x.numel() - finite
    assert np.isfinite(histogram.edges).all()
    assert (np.diff(histogram.edges) >= 0).all()
    (maps,) = (p for p in step.pictures if p.kind == "feature_maps")
    assert maps.samples[0].pixels.size > 0


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 3, 0, 4), (2, 0, 4, 4)])
def test_an_empty_batch_is_skipped_and_the_next_step_is_logged(shape: tuple[int, ...]) -> None:
    model, kept = nn.Sequential(Same()), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, layers=[Same], every=1)
    for number, x in enumerate((torch.zeros(shape), torch.randn(2, 3, 4, 4))):
        with board.step(number):
            model(x)
    board.close()
    assert [[m.layer_call.label for m in step.statistics] for step in kept.steps][-1] == ["0"]
    assert kept.steps[-1].step == 1


def test_an_empty_batch_in_training_keeps_its_norms() -> None:
    model, kept = nn.Sequential(nn.Conv2d(3, 4, 3)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer):
        model(torch.zeros(0, 3, 8, 8)).sum().backward()
        optimizer.step()
    assert kept.steps[0].scalars["gradient_norm/total"] == 0.0


class Breaks(nn.Module):
    """From its third pass on, the output of the third call of ``bad`` holds NaN and infinity."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.bad = Same()
        self.passes = 0

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        maps = self.bad(self.bad(self.first(x)))
        if self.passes > 2:
            maps = maps.clone()
            maps[0, 0, 0, :3] = torch.tensor([NAN, NAN, INF])
            maps = self.bad(maps)
        return self.second(maps)


def texts(run: Path) -> dict[str, list[tuple[int, str]]]:
    """Tag -> steps and texts of the Text dashboard."""
    accumulator = read(run)
    found = accumulator.PluginTagToContent(text_metadata.PLUGIN_NAME)
    return {
        tag: [
            (
                event.step,
                tensor_util.make_ndarray(event.tensor_proto)[()].decode(),
            )  # 0-d
            for event in accumulator.Tensors(tag)
        ]
        for tag in found
    }


def test_the_first_bad_activation_is_named_once_in_the_log_and_as_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Breaks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(
        model, tmp_path, optimizer=optimizer, every=1, layers=["first", "second", Same]
    ):
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 8, 8)).sum().backward()
            optimizer.step()
    said = (
        "step 2: first non-finite values: 2 NaN, 1 +Inf of 288 in the activations of "
        "layer `bad` (Same, call 3)"
    )
    tag = "fmapboard/first_nonfinite"
    written = texts(tmp_path)
    assert written.keys() == {tag, "fmapboard/checks", "fmapboard/why"}
    assert written[tag] == [(2, said)]
    step, finding = written["fmapboard/checks"][0]
    assert step == 2
    assert "in this layer, in code between `bad` (call 2) and this layer" in finding
    warning, verdict = (r.message for r in caplog.records if r.levelname == "WARNING")
    own = finding.removeprefix("- **warning: nonfinite**: ")
    assert warning == f"fmapboard: step 2: nonfinite: {own}"
    assert verdict.startswith("fmapboard: fault: ")


def test_a_non_finite_gradient_of_a_parameter_is_named_if_all_activations_are_finite(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, name="net"):
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(2, 3, 8, 8)).sum().backward()
            model[1].bias.grad[:3] = torch.tensor([NAN, -INF, -INF])
            optimizer.step()
    said = "first non-finite values: 1 NaN, 2 -Inf in the gradient of parameter `1.bias`"
    first, second = (step.texts for step in kept.steps)
    assert first.pop("net.fmapboard/first_nonfinite") == f"step 0: {said}"
    assert "such values arise in the backward pass" in first.pop("net.fmapboard/checks")
    assert "then in 1 further layer" in second.pop("net.fmapboard/checks")
    assert first == second == {}
    warning, verdict = (each.message for each in caplog.records)
    assert (warning.count("nonfinite: "), verdict.count("cause: nonfinite: ")) == (1, 1)


def test_an_overflowing_norm_of_finite_gradients_is_not_reported_as_non_finite() -> None:
    model, kept = nn.Sequential(nn.Conv2d(3, 4, 3).double()), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer):
        model(torch.randn(2, 3, 8, 8).double()).sum().backward()
        model[0].weight.grad.fill_(1e300)
        optimizer.step()
    assert kept.steps[0].texts == {}


def test_the_first_non_finite_gradient_of_maps_in_backward_order_is_named() -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient * INF

    class WithBadGradient(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
            self.last = nn.Conv2d(4, 4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.last(Bad.apply(self.second(self.first(x))))

    model, kept = WithBadGradient(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, activation_gradients=True):
        model(torch.randn(2, 3, 8, 8)).abs().sum().backward()
        optimizer.step()
    text = kept.steps[0].texts["fmapboard/first_nonfinite"]
    assert "in the gradient of the activations of layer `second` (Conv2d)" in text


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_non_finite_value_is_reported_again_after_a_step_that_could_not_be_stored() -> None:
    model, kept = nn.Sequential(Same()), FullDiskWriter(full_at=0)
    board = fmapboard.watch(model, writer=kept, layers=[Same], every=1)
    for number in range(3):
        with board.step(number):
            model(with_values(NAN))
    board.close()
    assert [bool(step.texts) for step in kept.steps] == [True, False]
