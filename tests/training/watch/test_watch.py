"""What a logged step of `fmapboard.watch` contains, in real training loops."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from logged_step import measurement, pictures, statistics_of
from networks import NestedNet
from torch import nn
from torch.nn import functional
from watched_training import batch, tags, train_step

import fmapboard
import fmapboard.formats.tab_records
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


def test_a_logged_step_holds_everything_that_is_promised_for_a_layer() -> None:
    model, kept = NestedNet(), MemoryWriter()
    initial = {name: value.detach().clone() for name, value in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, every=1, inputs=True, activation_gradients=True
    ):
        train_step(model, optimizer)
    assert tags(kept.steps[0]) == {
        *(f"{kind}_8x3x5x5/stem" for kind in ("feature_maps", "inputs", "gradients_of_maps")),
        *(f"{r}_16x8x3x3/inner.0.0" for r in ("feature_maps", "inputs", "gradients_of_maps")),
        "kernels_8x3x5x5/stem",
        "kernels_16x8x3x3/inner.0.0",
        "network_input/sample_0",
        *(
            f"{group}/{layer}"
            for group in ("activations", "inputs", "activation_gradients")
            for layer in ("stem", "inner.0.0")
        ),
        *(
            f"{group}/{layer}.{part}"
            for group in ("weights", "gradients")
            for layer in ("stem", "inner.0.0")
            for part in ("weight", "bias")
        ),
        "gradient_norm/total",
        *(f"gradient_norm/{name}" for name, _ in model.named_parameters()),
        *(
            f"update_ratio/{name}"
            for name, parameter in initial.items()
            if parameter.any()  # the shift of BatchNorm is 0
        ),
        "batchnorm_gap/inner.0.1",
        "learning_rate/0",
        "output/spread",
        *(
            f"{group}/{layer}"
            for group in ("constant_channels", "nonfinite")
            for layer in ("stem", "inner.0.0", "relu")
        ),
        "dead_channels/relu",
        "fmapboard/logged_step_ms",
        *(
            f"{p}/{layer}"
            for p in ("fmapboard", "fmapboard_first")
            for layer in ("stem", "inner.0.0")
        ),
        "fmapboard_checks",
        "fmapboard_findings",
        "fmapboard_overview",
        "fmapboard_overview_first",
    }


def test_inputs_and_gradients_of_maps_are_written_only_on_request() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    groups = {tag.split("/")[0] for tag in tags(kept.steps[0])}
    assert not {g for g in groups if g.startswith(("inputs", "gradients_of_maps", "activation_g"))}


def drawn_kernels(steps: Sequence[LoggedStep]) -> list[int]:
    return [s.step for s in steps if any(p.kind == "kernels" for p in s.pictures)]


@pytest.mark.parametrize(
    ("options", "drawn"), [({}, [0, 4]), ({"max_channels": None}, [0]), ({"kernels": 2}, [0, 2, 4])]
)
def test_kernels_are_drawn_where_they_have_changed_or_at_every_nth_step(
    options: dict[str, Any], drawn: list[int]
) -> None:
    model, kept = nn.Conv2d(3, 4, 3), MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1, **options) as board:
        for step in range(6):
            with board.step(step), torch.no_grad():
                model(torch.rand(1, 3, 8, 8))
                model.weight.mul_(1.015)
    assert drawn_kernels(kept.steps) == drawn


def test_kernels_are_those_that_the_forward_pass_used() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    peak = model.stem.weight.abs().max().item()
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        train_step(model, optimizer)
    assert model.stem.weight.abs().max().item() != peak
    record = next(r for r in kept.steps[0].records if r.tag == "fmapboard/stem")
    header, _ = fmapboard.formats.tab_records.unpack(record.blobs)
    kernels = next(p for p in header["pictures"] if p["role"] == "kernels")
    assert kernels["peak"] == pytest.approx(peak)


@pytest.mark.parametrize("most", [2, 3])
def test_kernels_with_three_input_channels_are_rgb_however_few_are_drawn(most: int) -> None:
    model, kept = NestedNet(), MemoryWriter()
    with fmapboard.watch(model, writer=kept, max_channels=most) as board, board.step(0):
        model(batch()[0])
    stem, inner = (p.samples[0] for p in kept.steps[0].pictures if p.kind == "kernels")
    assert stem.palette is None
    assert stem.pixels.shape[2] == 3
    assert inner.palette is not None
    assert inner.pixels.shape == (1 + 4 * most, 1 + 4 * most)


def test_gradient_norms_are_those_that_the_optimizer_used() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        x, y = batch()
        functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        expected = {n: p.grad.double().norm().item() for n, p in model.named_parameters()}
        optimizer.step()
    scalars = kept.steps[0].scalars
    for name, norm in expected.items():
        assert scalars[f"gradient_norm/{name}"] == pytest.approx(norm, rel=1e-5)
    total = math.sqrt(sum(norm**2 for norm in expected.values()))
    assert scalars["gradient_norm/total"] == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize(
    ("layers", "listed"),
    [
        ("stem", ["stem.weight", "stem.bias"]),
        (nn.BatchNorm2d, ["inner.0.1.weight", "inner.0.1.bias"]),
        (
            lambda name, _: name == "inner.0",
            [f"inner.0.{i}.{own}" for i in (0, 1) for own in ("weight", "bias")],
        ),
    ],
)
def test_gradient_norms_follow_the_chosen_layers_and_the_total_is_of_all(
    layers: Any, listed: list[str]
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, layers=layers) as board:
        x, y = batch()
        functional.cross_entropy(model(x), y).backward()
        board.before_clipping()
        total = math.hypot(*(p.grad.double().norm().item() for p in model.parameters()))
        optimizer.step()
    scalars = kept.steps[0].scalars
    for group in ("gradient_norm", "gradient_norm_before_clipping"):
        found = [tag.partition("/")[2] for tag in scalars if tag.startswith(f"{group}/")]
        assert found == ["total", *listed]
        assert scalars[f"{group}/total"] == pytest.approx(total, rel=1e-5)


def test_a_gradient_that_is_not_finite_lists_the_norms_of_all_parameters() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, layers="stem"):
        for factor in (1.0, math.nan):
            optimizer.zero_grad()
            functional.cross_entropy(model(batch()[0]), batch()[1]).backward()
            model.stem.weight.grad.mul_(factor)
            optimizer.step()
    first, second = ({tag for tag in s.scalars if "gradient_norm/" in tag} for s in kept.steps)
    assert first == {f"gradient_norm/{name}" for name in ("total", "stem.weight", "stem.bias")}
    assert len(second) == 1 + len(list(model.parameters()))
    assert math.isfinite(kept.steps[1].scalars["gradient_norm/head.bias"])


def test_each_sample_is_a_grid_of_its_own_and_never_a_colour() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, samples=3):
        train_step(model, optimizer)
    maps = pictures(kept.steps[0], "feature_maps_8x3x5x5/stem")
    assert [raster.pixels.shape for raster in maps.samples] == [(58, 30)] * 3
    inputs = [p.tag for p in kept.steps[0].pictures if p.kind == "network_input"]
    assert inputs == [f"network_input/sample_{k}" for k in range(3)]


def test_a_probe_draws_the_same_images_at_every_step_and_numbers_stay_live() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    probe = torch.randn(2, 3, 12, 12)
    model.eval()
    expected = fmapboard.extract(model, probe)["stem"]
    model.train()
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, probe=probe):
        train_step(model, optimizer)
        train_step(model, optimizer)
    first, second = (pictures(step, "feature_maps_8x3x5x5/stem") for step in kept.steps)
    assert len(first.samples) == 2
    for a, b in zip(first.samples, second.samples, strict=True):
        assert (a.pixels == b.pixels).all()
    measured = measurement(kept.steps[0], "stem")
    assert measured.planes is not None
    assert measured.planes.hi[0, 0] == pytest.approx(expected[0, 0].max().item())
    assert measured.planes.shape == (2, 8, 12, 12)
    live = [statistics_of(step, "stem").maximum[0] for step in kept.steps]
    assert live[0] != live[1]


def test_a_validation_pass_between_steps_is_not_captured() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        model.eval()
        with torch.no_grad():
            model(torch.full((4, 3, 12, 12), 100.0))
        model.train()
        train_step(model, optimizer)
    assert statistics_of(kept.steps[0], "stem").maximum.max() < 50


def test_with_accumulation_the_first_forward_is_drawn_and_the_norm_is_of_the_sum() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for scale in (1.0, 1000.0):
            model(torch.full((4, 3, 12, 12), scale)).sum().backward()
        expected = model.head.bias.grad.norm().item()
        optimizer.step()
    assert statistics_of(kept.steps[0], "stem").maximum.max() < 50
    assert kept.steps[0].scalars["gradient_norm/head.bias"] == pytest.approx(expected)


def test_gradients_of_maps_are_those_of_the_loss_and_not_of_the_scaled_loss() -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x = batch()[0]
    true = fmapboard.extract_gradients(model, x, loss=torch.sum)["stem"].grad_output[0]
    with fmapboard.watch(
        model, writer=kept, optimizer=optimizer, scaler=scaler, activation_gradients=True
    ):
        scaler.scale(model(x).sum()).backward()
        scaler.step(optimizer)
    found = statistics_of(kept.steps[0], "stem", "gradients_of_maps")
    assert found.maximum.max() == pytest.approx(true.max().item(), rel=1e-5)


def test_parametrized_and_lone_convolutions_have_histograms_of_their_weights() -> None:
    lone, kept = nn.Conv2d(3, 4, 3), MemoryWriter()
    nn.utils.parametrizations.weight_norm(lone)
    optimizer = torch.optim.SGD(lone.parameters(), lr=0.1)
    with fmapboard.watch(lone, writer=kept, optimizer=optimizer):
        lone(torch.randn(1, 3, 8, 8)).sum().backward()
        optimizer.step()
    assert {h.tag for h in kept.steps[0].histograms if h.tag.startswith("weights/")} == {
        "weights/bias",
        "weights/parametrizations.weight.original0",
        "weights/parametrizations.weight.original1",
    }


def test_a_large_network_input_is_averaged_down_and_says_so() -> None:
    model, kept = NestedNet(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    with board.step(0):
        model(torch.rand(1, 3, 600, 300))
    board.close()
    picture = next(p for p in kept.steps[0].pictures if p.kind == "network_input")
    assert picture.samples[0].pixels.shape == (200, 100, 3)
    assert picture.description.endswith("each pixel is the mean of 3×3 values")


def test_a_layer_that_is_replaced_after_watch_is_followed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        for number in range(4):
            if number == 1:
                model.stem = nn.Conv2d(3, 8, 7, padding=3)
            if number == 2:
                model.relu = nn.Sequential(nn.Conv2d(8, 8, 1), nn.ReLU())
            if number == 3:
                model.inner[0] = nn.AvgPool2d(3)
                model.head = nn.Linear(8, 4)
            with board.step(number):
                train_step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    board.close()
    assert "feature_maps_8x3x5x5/stem" in tags(kept.steps[0])
    assert {"feature_maps_8x3x7x7/stem", "weights/stem.weight"} <= tags(kept.steps[1])
    assert "feature_maps_8x3x5x5/stem" not in tags(kept.steps[1])
    assert {"feature_maps_8x8x1x1/relu.0", "dead_channels/relu.1"} <= tags(kept.steps[2])
    assert "feature_maps_8x3x7x7/stem" in tags(kept.steps[3])
    (said,) = [record.message for record in caplog.records]
    assert said.endswith(
        "no longer part of the model and are not logged any more: inner.0.0; to log what replaced "
        "them, call fmapboard.watch() again"
    )


def test_a_weight_that_is_replaced_by_one_of_another_shape_is_followed() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1))
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1, kernels=1) as board:
        for number in range(2):
            if number == 1:  # as pruning does
                model[0].out_channels = 4
                model[0].weight = nn.Parameter(model[0].weight[:4].detach())
                model[0].bias = nn.Parameter(model[0].bias[:4].detach())
            with board.step(number):
                model(torch.rand(2, 3, 8, 8))
    assert {"feature_maps_8x3x3x3/0", "kernels_8x3x3x3/0"} <= tags(kept.steps[0])
    assert {"feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0"} <= tags(kept.steps[1])
    assert "feature_maps_8x3x3x3/0" not in tags(kept.steps[1])


def test_without_update_ratios_every_other_scalar_is_logged() -> None:
    def scalars(**options: bool) -> dict[str, float]:
        torch.manual_seed(0)
        model, kept = nn.Sequential(nn.Conv2d(3, 4, 12), nn.Flatten()), MemoryWriter()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, **options):  # type: ignore[arg-type]
            train_step(model, optimizer)
        return {tag: value for tag, value in kept.steps[0].scalars.items() if "_ms" not in tag}

    everything, fewer = scalars(), scalars(update_ratios=False)
    ratios = {tag for tag in everything if tag.startswith("update_ratio/")}
    assert len(ratios) == 2
    assert fewer == {tag: value for tag, value in everything.items() if tag not in ratios}
