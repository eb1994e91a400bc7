"""`tap`: a tensor that is no module's output is logged as a layer, and is left alone otherwise."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tapped_models import Residual, images, logged, names
from torch import Tensor, nn

import fmapboard
from fmapboard.capture import taps
from fmapboard.capture.passes import PassRecorder
from fmapboard.writers.folder import MemoryWriter


def test_a_tap_returns_the_very_same_object() -> None:
    value = images()
    assert fmapboard.tap("x", value) is value
    seen = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            out = self.conv(x)
            seen.append(fmapboard.tap("x", out) is out)
            return out

    fmapboard.extract(Net(), value)
    assert seen == [True]


def test_outside_of_a_logged_step_a_tap_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(taps, "_deliver", fail)
    monkeypatch.setattr(taps, "_armed", ())  # without loggers of other tests that are not closed
    model, kept = Residual(), MemoryWriter()
    model(images())
    with fmapboard.watch(model, writer=kept, every=2) as board:
        for step in (1, 3):
            with board.step(step):
                model(images())
        with pytest.raises(AssertionError), board.step(4):
            model(images())
    model(images())
    assert taps._armed == ()


def test_extract_returns_the_value_before_the_in_place_relu() -> None:
    model, x = Residual(), images()
    maps = fmapboard.extract(model, x)
    with torch.no_grad():
        assert torch.equal(maps["sum"], model.conv(x) + x)
    assert list(maps) == ["conv", "sum"]
    assert list(fmapboard.extract(model, x, side="input")) == ["conv"]
    both = fmapboard.extract(model, x, side="both")
    assert (list(both), list(both.inputs)) == (["conv", "sum"], ["conv"])


def test_extract_gradients_returns_the_gradient_of_the_tapped_tensor() -> None:
    model, x = Residual(), images()
    found = fmapboard.extract_gradients(model, x, loss=Tensor.sum)["sum"]
    added = (model.conv(x) + x).detach().requires_grad_()
    added.relu().mean((2, 3)).sum().backward()
    (gradient,) = found.grad_output
    assert gradient is not None
    assert torch.equal(gradient, added.grad)
    assert found.grad_input == ()


def test_a_logged_step_holds_the_value_and_the_gradient_as_those_of_a_layer() -> None:
    model, x = Residual(), images()
    with torch.no_grad():
        expected = model.conv(x) + x
    step = logged(model, x)
    measured, gradient = [one for one in step.statistics if one.layer_call.label == "sum"]
    assert (measured.kind, gradient.kind) == ("feature_maps", "gradients_of_maps")
    assert (measured.layer_call.type, measured.shape) == ("Tap", (2, 3, 8, 8))
    assert measured.statistics is not None
    lowest = expected.amin((0, 2, 3)).numpy()
    assert measured.statistics.minimum.tolist() == pytest.approx(lowest.tolist())
    drawn = {tagged.tag for tagged in step.pictures}
    assert {"feature_maps_Tap/sum", "gradients_of_maps_Tap/sum"} <= drawn
    histograms = {histogram.tag for histogram in step.histograms}
    assert {"activations/sum", "activation_gradients/sum"} <= histograms
    assert "gradients_of_maps_3x3x3x3/conv" not in drawn  # activation_gradients is off
    assert "fmapboard/sum" in {record.tag for record in step.records}


def test_the_training_is_bitwise_the_same() -> None:
    model, x, kept = Residual(), images(), MemoryWriter()
    twin = copy.deepcopy(model)
    for one in (model, twin):
        optimizer = torch.optim.SGD(one.parameters(), lr=0.1)
        with (
            fmapboard.watch(one, writer=kept, optimizer=optimizer, every=1)
            if one is model
            else contextlib.nullcontext()
        ):
            for _ in range(3):
                optimizer.zero_grad()
                one(x).square().sum().backward()
                optimizer.step()
    assert len(kept.steps) == 3
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.usefixtures("errors_are_only_logged")
def test_an_error_of_ours_in_a_tap_does_not_reach_the_training(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(PassRecorder, "_running_part", fail)
    step = logged(Residual(), images())
    assert names(step) == ["conv"]
    assert "Tap: ValueError: a fault" in caplog.text


def test_only_the_taps_of_the_model_that_runs_are_recorded() -> None:
    watched, other, x = Residual("own"), Residual("other"), images()
    kept = MemoryWriter()
    with fmapboard.watch(watched, writer=kept, every=1) as board, board.step(0):
        other(x)
        watched(x)
        fmapboard.tap("outside", x)
        other(x)
    assert names(kept.steps[0]) == ["conv", "own"]

    first, second = MemoryWriter(), MemoryWriter()
    whole = nn.Sequential(watched)
    with (
        fmapboard.watch(whole, writer=first, every=1) as outer,
        fmapboard.watch(watched, writer=second, every=1) as inner,
        outer.step(0),
        inner.step(0),
    ):
        whole(x)
    assert names(first.steps[0]) == ["0.conv", "own"]
    assert names(second.steps[0]) == ["conv", "own"]


def test_without_a_call_of_the_model_itself_the_taps_of_its_parts_are_recorded() -> None:
    parts, other = nn.ModuleDict({"a": Residual("a sum")}), Residual("other")
    kept = MemoryWriter()
    with fmapboard.watch(parts, writer=kept, every=1) as board, board.step(0):
        other(images())
        parts["a"](images())
    assert names(kept.steps[0]) == ["a.conv", "a sum"]


def test_layers_does_not_have_to_name_a_tap_and_can_leave_it_out() -> None:
    model, x = nn.Sequential(Residual("sum.a"), nn.Flatten()), images()
    assert list(fmapboard.extract(model, x, "0.conv")) == ["0.conv", "sum.a"]
    assert list(fmapboard.extract(model, x, ["0.conv", "!sum.*"])) == ["0.conv"]
    assert list(fmapboard.extract(model, x, "!sum.*")) == ["0.conv"]
    assert list(fmapboard.extract(model, x, nn.Conv2d)) == ["0.conv", "sum.a"]


def test_names_may_repeat_be_those_of_layers_or_hostile() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            fmapboard.tap("conv", x)
            fmapboard.tap("again", x)
            fmapboard.tap("again", x)
            fmapboard.tap("", x)
            fmapboard.tap("\ud800<b>", x)
            return self.conv(x)  # type: ignore[no-any-return]

    found = ["conv.tap", "again", "again.call2", "Tap", "\\ud800<b>", "conv"]
    assert list(fmapboard.extract(Net(), images())) == found
    assert names(logged(Net(), images())) == found


def test_a_value_may_be_a_structure_or_hold_no_tensor() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            fmapboard.tap("pair", (3, {"a": x}))
            fmapboard.tap("none", None)
            return self.conv(x)  # type: ignore[no-any-return]

    x = images()
    assert torch.equal(fmapboard.extract(Net(), x)["pair"][1]["a"], x)
    assert names(logged(Net(), x)) == ["pair", "conv"]


def test_no_hook_stays_on_a_tapped_parameter() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 1)

        def forward(self, x: Tensor) -> Tensor:
            fmapboard.tap("weight", self.conv.weight)
            return self.conv(x)  # type: ignore[no-any-return]

    model = Net()
    step = logged(model, images())
    assert names(step) == ["weight", "conv"]
    assert not model.conv.weight._backward_hooks
    assert "gradients_of_maps_Tap/weight" not in {tagged.tag for tagged in step.pictures}


def test_the_probe_and_images_of_visualize_are_drawn_too(tmp_path: Path) -> None:
    from fmapboard.image_passes import ImagePasses
    from fmapboard.measure.reducer import Reducer

    model, x = Residual(), images()
    step = logged(model, x, probe=x)
    assert "feature_maps_Tap/sum" in {tagged.tag for tagged in step.pictures}
    step = logged(model, x, probe=x, layers="!sum")
    assert "feature_maps_Tap/sum" not in {tagged.tag for tagged in step.pictures}
    recorded = [one.to_host() for one in ImagePasses(model, Reducer())(x)]
    assert [[m.layer_call.label for m in one.measured] for one in recorded] == [["conv", "sum"]] * 2


def test_the_error_of_a_failed_pass_lists_the_taps_that_ran() -> None:
    model = nn.Sequential(Residual(), nn.Linear(5, 5))
    with pytest.raises(fmapboard.ForwardError) as raised:
        fmapboard.extract(model, images())
    assert raised.value.layer == "1"
    assert [line.split()[0] for line in raised.value.ran] == ["0.conv", "sum"]
