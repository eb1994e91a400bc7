"""Layers of many kinds: their outputs are drawn, or only measured, or skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import timm.layers
import torch
import torchvision
from logged_step import log_pass, measurement, pictures
from networks import Cast
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


def log_training_step(model: nn.Module, x: Any, **options: Any) -> LoggedStep:
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, **options) as board, board.step(0):
        model(x).abs().sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
    return kept.steps[0]


def images() -> Tensor:
    return torch.randn(2, 3, 8, 8)


@pytest.mark.filterwarnings("ignore:Complex modules", "ignore:Casting complex")
@pytest.mark.parametrize(
    "name",
    ["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "complex64"],
)
def test_maps_of_every_type_are_drawn_and_measured(name: str) -> None:
    x, dtype = images(), getattr(torch, name)
    step = log_pass(nn.Sequential(Cast(dtype)), x, layers=[Cast])
    kept, true = measurement(step, "0"), x.to(dtype)
    wide = true.abs() if dtype.is_complex else true.double()
    assert kept.statistics is not None
    np.testing.assert_allclose(kept.statistics.mean, wide.double().mean((0, 2, 3)), rtol=1e-4)
    assert pictures(step, "feature_maps_Cast/0").samples[0].pixels.shape == (32, 12)
    assert ("absolute values" in pictures(step, "feature_maps_Cast/0").description) == (
        dtype.is_complex
    )


@pytest.mark.filterwarnings("ignore:Complex modules")
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.complex64])
def test_networks_of_other_dtypes_train_and_have_norms(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3)).to(dtype)
    step = log_training_step(model, images().to(dtype), activation_gradients=True)
    tags = {p.tag for p in step.pictures}
    assert {"feature_maps_4x3x3x3/0", "gradients_of_maps_4x3x3x3/0"} <= tags
    true = torch.linalg.vector_norm(model[0].weight.grad.to(torch.complex128)).item()
    assert step.scalars["gradient_norm/0.weight"] == pytest.approx(true, rel=1e-3)


def test_channels_last_maps_give_the_same_pictures() -> None:
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3)), images()
    plain = log_pass(model, x)
    turned = log_pass(
        model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    )
    for one, other in zip(plain.statistics, turned.statistics, strict=True):
        assert one.planes is not None
        assert other.planes is not None
        difference = one.planes.pixels.astype(int) - other.planes.pixels
        assert np.abs(difference).max() <= 1  # the convolution itself adds in another order


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 3, 3, padding=1)
        self.again = self.head

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.head(self.head(x)) * 2)


def test_a_shared_module_has_one_name_and_each_of_its_calls_is_drawn() -> None:
    tags = {p.tag.split("/")[1] for p in log_training_step(Shared(), images()).pictures}
    assert tags == {"head", "head.call2", "head.call3", "sample_0"}


@dataclass
class Answer:
    number: int
    maps: Tensor


@pytest.mark.parametrize(
    ("wrap", "drawn"),
    [
        (lambda x: (x, None), True),
        (lambda x: {"index": x.argmax(1), "maps": x}, True),
        (lambda x: Answer(3, x), True),
        (lambda x: [None, {"deep": (x,)}], True),
        (lambda x: None, False),
        (lambda x: x.argmax(1), False),
        (lambda x: "text", False),
        (lambda x: (item for item in x), False),
    ],
)
def test_the_first_tensor_of_any_output_is_drawn_and_none_is_no_error(
    wrap: Any, drawn: bool
) -> None:
    class Odd(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return wrap(x)

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.odd = nn.Conv2d(3, 4, 3), Odd()

        def forward(self, x: Tensor) -> Tensor:
            answer = self.odd(self.conv(x))
            items = list(answer) if isinstance(answer, Iterator) else []
            assert not isinstance(answer, Iterator) or len(items) == 2
            return x

    step = log_pass(Whole(), images(), layers=["conv", Odd])
    assert ("feature_maps_Odd/odd" in {p.tag for p in step.pictures}) == drawn


@pytest.mark.parametrize(
    ("make", "shape", "channels"),
    [
        (lambda: nn.Linear(5, 7), (2, 5), 7),
        (lambda: nn.LSTM(5, 7, batch_first=True), (2, 3, 5), 7),
        (lambda: nn.BatchNorm2d(3), (2, 3, 8, 8), 3),
        (lambda: nn.MaxPool2d(2), (2, 3, 8, 8), 3),
        (lambda: nn.ConvTranspose2d(3, 7, 2), (2, 3, 8, 8), 7),
        (lambda: nn.Conv1d(3, 7, 2), (2, 3, 8), 7),
        (lambda: nn.Conv3d(3, 7, 2), (2, 3, 4, 8, 8), 7),
        (lambda: nn.TransformerEncoderLayer(8, 2, batch_first=True, dropout=0.0), (2, 3, 8), 8),
    ],
)
def test_any_requested_module_is_measured(
    make: Callable[[], nn.Module], shape: tuple[int, ...], channels: int
) -> None:
    step = log_pass(nn.Sequential(make()), torch.randn(shape), layers="0")
    kept = measurement(step, "0")
    assert kept.statistics is not None
    assert kept.statistics.mean.shape == (channels,)
    assert "activations/0" in {h.tag for h in step.histograms}


def old_spectral(conv: nn.Module) -> nn.Module:
    return nn.utils.spectral_norm(conv)


def old_weight(conv: nn.Module) -> nn.Module:
    return nn.utils.weight_norm(conv)


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
@pytest.mark.parametrize(
    "normed",
    [
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.orthogonal,
        old_spectral,
        old_weight,
    ],
)
def test_parametrized_convolutions_train_as_if_unwatched_and_are_drawn(normed: Any) -> None:
    def train(watched: bool) -> tuple[dict[str, Tensor], list[LoggedStep]]:
        torch.manual_seed(0)
        model, kept = nn.Sequential(normed(nn.Conv2d(3, 4, 3)), nn.ReLU()), MemoryWriter()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        board = None
        if watched:
            options = {"kernels": 1, "every": 1}
            board = fmapboard.watch(model, writer=kept, optimizer=optimizer, **options)
        for _ in range(3):
            model(images()).square().mean().backward()
            optimizer.step()
        if board is not None:
            board.close()
        return model.state_dict(), kept.steps

    (bare, _), (seen, steps) = train(False), train(True)
    assert all(torch.equal(bare[name], seen[name]) for name in bare)
    for step in steps:
        tags = {p.tag for p in step.pictures}
        assert {"feature_maps_4x3x3x3/0", "kernels_4x3x3x3/0"} < tags


def test_a_lazy_convolution_is_drawn_from_its_first_pass_on_under_its_true_shape() -> None:
    model, kept = nn.Sequential(nn.LazyConv2d(4, 3)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, probe=images()):
        assert is_lazy(model[0].weight)
        for _ in range(2):
            model(images()).sum().backward()
            optimizer.step()
    for step in kept.steps:
        assert "feature_maps_4x3x3x3/0" in {p.tag for p in step.pictures}
        assert "gradient_norm/0.weight" in step.scalars


@pytest.mark.parametrize(
    "convolution",
    [
        timm.layers.StdConv2d,
        timm.layers.ScaledStdConv2d,
        timm.layers.Conv2dSame,
        torchvision.ops.Conv2dNormActivation,
    ],
)
def test_convolutions_of_timm_and_torchvision_are_drawn(
    convolution: Callable[..., nn.Module],
) -> None:
    step = log_training_step(nn.Sequential(convolution(3, 4, 3)), images())
    drawn = {p.tag.split("/")[0] for p in step.pictures}
    assert {"feature_maps_4x3x3x3", "kernels_4x3x3x3"} < drawn


@pytest.mark.filterwarnings("ignore")  # each call of torch.ao warns that it is deprecated
def test_quantized_layers_are_drawn_and_measured_by_their_dequantized_values() -> None:
    from torch.ao import quantization

    model = nn.Sequential(
        quantization.QuantStub(), nn.Conv2d(3, 4, 3), quantization.DeQuantStub()
    ).eval()
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    quantization.prepare(model, inplace=True)
    x = images()
    model(x)
    quantization.convert(model, inplace=True)
    step, true = log_pass(model, x, layers="1"), model[1](model[0](x)).dequantize().double()
    kept = measurement(step, "1")
    assert kept.statistics is not None
    np.testing.assert_allclose(kept.statistics.mean, true.mean((0, 2, 3)), rtol=1e-5)
    (maps,) = (p for p in step.pictures if p.kind == "feature_maps")
    assert "dequantized from torch.quint8" in maps.description
    linear = nn.Sequential(nn.Flatten(), nn.Linear(192, 5))
    dynamic = quantization.quantize_dynamic(linear, {nn.Linear})
    kept = measurement(log_pass(dynamic, x, layers="1"), "1")
    assert kept.statistics is not None
    np.testing.assert_allclose(kept.statistics.mean, dynamic(x).double().mean(0), rtol=1e-5)
