"""Which modules of other classes than torch's are convolutions."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
import torch
from own_convolutions import (
    Adapted,
    Conv2d,
    ConvGate,
    ConvNeXtGRN,
    Experts,
    MyConvModule,
    OtherName,
    PointwiseLinear,
    Resampling,
    UpLayer,
)
from run_reader import read, tags_of
from torch import Tensor, nn
from torch.nn.utils import parametrizations, spectral_norm
from torchvision.ops import DeformConv2d

from fmapboard import intervene, silence, watch
from fmapboard.capture.kernels import read_kernels
from fmapboard.errors import ConfigurationError
from fmapboard.measure.layout import Axes, Sequences, axes_of
from fmapboard.model.kernel_shapes import (
    fits,
    is_convolution,
    kernel_shape,
    may_differ,
    output_channels,
    spatial_axes,
    unused_convolutions,
)
from fmapboard.model.roles import role_of
from fmapboard.records import StepData, TransposedShape
from fmapboard.summary.build import SummaryBuilder


@pytest.mark.parametrize(
    ("module", "shape", "channels"),
    [
        (Conv2d(3, 8), (8, 3, 3, 3), 8),
        (Resampling(3, 8, up=True), (8, 3, 3, 3), 8),
        (UpLayer(4, 6, groups=2), (4, 3, 2, 2), 6),
        (DeformConv2d(3, 8, 3), (8, 3, 3, 3), 8),
        (DeformConv2d(3, 1, 1), (1, 3, 1, 1), 1),
        (MyConvModule(3, 8), (8, 3, 1, 1), 8),
        (Experts(3, 8), (4, 216), None),
        (PointwiseLinear(3, 8), (8, 3), None),
        (spectral_norm(Conv2d(3, 8)), (8, 3, 3, 3), 8),
        (parametrizations.spectral_norm(Conv2d(3, 8)), (8, 3, 3, 3), 8),
        (parametrizations.weight_norm(Conv2d(3, 8)), (8, 3, 3, 3), 8),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_a_module_with_a_weight_that_is_convolved_is_a_convolution(
    module: nn.Module, shape: tuple[int, ...], channels: int | None
) -> None:
    assert is_convolution(module)
    assert spatial_axes(module) == 2
    assert kernel_shape(module) == shape
    assert isinstance(kernel_shape(module), TransposedShape) == isinstance(module, UpLayer)
    assert output_channels(module) == channels
    assert may_differ(module) == (channels is not None)


class ModulatedConv2d(nn.Module):
    """Scales its kernel per sample, as in StyleGAN2, in a function of its own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, outputs, inputs, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return modulated(x, self.weight)


class Modulated(ModulatedConv2d):
    """The same, and the function is torch's."""

    def forward(self, x: Tensor) -> Tensor:
        weight = (self.weight * x.mean((2, 3))[:, None, :, None, None]).flatten(0, 1)
        return nn.functional.conv2d(x.flatten(0, 1), weight, groups=len(x)).view(len(x), -1, 6, 6)


def modulated(x: Tensor, weight: Tensor) -> Tensor:
    return nn.functional.conv2d(x, weight[0])


@pytest.mark.parametrize("kind", [ModulatedConv2d, Modulated])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_modulated_kernel_of_five_axes_is_watched_and_not_drawn_as_one_of_three(
    kind: type[ModulatedConv2d], batch: int, tmp_path: Path
) -> None:
    layer = kind(3, 8)
    assert (is_convolution(layer), spatial_axes(layer), kernel_shape(layer)) == (True, 2, None)
    model = nn.Sequential(nn.Conv2d(3, 3, 1), layer)
    with watch(model, tmp_path, every=1) as board, board.step(0):
        model(torch.rand(batch, 3, 8, 8)).mean().backward()
    tags = tags_of(read(tmp_path))
    assert f"feature_maps_{kind.__name__}/1" in tags
    assert [tag for tag in tags if tag.startswith("kernels_")] == ["kernels_3x3x1x1/0"]


def test_of_a_weight_with_two_axes_the_beginning_of_each_row_is_drawn() -> None:
    layer = Experts(32, 16)
    (pending,) = read_kernels({"0": layer}, 64)
    kernels = pending.to_host()
    assert (kernels.weight.shape, kernels.layout) == ((4, 1, 1, 2048), "rows")
    assert (kernels.weight[:, 0, 0] == layer.weight[:, :2048].detach().numpy()).all()
    summary = SummaryBuilder()(StepData(0, 0.0, kernels=(kernels,)))
    assert "the first 2048 of 4608 weights of each" in summary.pictures[0].description


class ConvByMatrix(nn.Module):
    """As Conv1D of transformers: a Linear layer with another order of axes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class FactorAndKernel(nn.Module):
    """Its weight has one axis; the kernel is another tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.kernel = nn.Parameter(torch.ones(3, 3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.conv2d(x, self.kernel) * self.weight[:, None, None]


@pytest.mark.parametrize(
    "module",
    [
        Resampling(3, 3, 0, up=True), ConvNeXtGRN(8), OtherName(3, 8), Adapted(nn.Conv2d(3, 8, 3)),
        ConvByMatrix(), FactorAndKernel(), nn.Linear(3, 8), nn.BatchNorm2d(3), nn.Bilinear(2, 3, 4),
    ],
    ids=lambda module: type(module).__name__,
)  # fmt: skip
def test_other_modules_are_none(module: nn.Module) -> None:
    assert not is_convolution(module)
    assert (kernel_shape(module), spatial_axes(module)) == (None, None)


def test_a_forward_that_is_set_on_the_module_counts() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 3, 1, 1))

    def forward(self: Layer, x: Tensor) -> Tensor:
        return torch.conv2d(x, self.weight)

    layer = Layer()
    assert not is_convolution(layer)
    layer.forward = types.MethodType(forward, layer)
    assert is_convolution(layer)


def test_the_output_must_have_the_channels_of_the_kernel() -> None:
    x = torch.rand(2, 3, 8, 8)
    assert fits(Conv2d(3, 8), Conv2d(3, 8)(x))
    assert fits(Conv2d(3, 8), Conv2d(3, 8)(x)[0])
    assert fits(UpLayer(3, 6, groups=3), UpLayer(3, 6, groups=3)(x))
    assert not fits(ConvGate(3), ConvGate(3)(x))
    assert not fits(ConvGate(2), torch.rand(2, 2))
    assert fits(Experts(3, 8), Experts(3, 8)(x))  # its weight does not say it
    assert fits(nn.Conv2d(3, 8, 3), x)


def test_axes_are_those_of_a_convolution() -> None:
    assert axes_of(Conv2d(3, 8), (2, 8, 6, 6)) == Axes()
    assert axes_of(Conv2d(3, 8), (8, 6, 6)) == Axes(channels=0, batch=None)
    assert axes_of(PointwiseLinear(3, 8), (2, 8, 6, 6)) == Axes()
    assert axes_of(PointwiseLinear(3, 8), (2, 6, 8)) == Axes(channels=2, tokens=True)


class QuantizedConv2d(nn.Module):
    """As torch's quantized ones: the weight is a method."""

    def weight(self) -> Tensor:
        return torch.ones(1)


def test_other_parts_treat_them_as_convolutions() -> None:
    model = nn.Sequential(Conv2d(3, 8))
    assert role_of(model[0]) == "convolution"
    assert Sequences.of(model) == Sequences(tokens_are_patches=True)
    with pytest.raises(ConfigurationError, match="there are 8 channels, 0…7"):
        intervene(model, {"0": silence(8)})


def test_what_looks_like_a_convolution_and_is_none_is_found() -> None:
    model = nn.ModuleDict({
        "conv": nn.Conv2d(3, 3, 1), "named": OtherName(3, 3), "norm": ConvNeXtGRN(3),
        "outer": OtherName(3, 3, inner=nn.Conv2d(3, 3, 1)),
        "fixed": Resampling(3, 3, 0, up=True), "adapted": Adapted(nn.Conv2d(3, 3, 1)),
        "quantized": QuantizedConv2d(),
    })  # fmt: skip
    found = unused_convolutions(dict(model.named_modules()))
    assert sorted(found) == ["named", "norm", "quantized"]
