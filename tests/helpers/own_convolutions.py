"""Convolutions of other classes than torch's, and modules that only look like one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Conv2d(nn.Module):
    """The kernel is its weight, [out, in, k, k]."""

    def __init__(self, inputs: int, outputs: int, side: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, side, side) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight)


class Resampling(nn.Module):
    """Convolves, and resamples with a fixed filter; either may be missing."""

    def __init__(self, inputs: int, outputs: int, side: int = 3, *, up: bool = False) -> None:
        super().__init__()
        self.channels, self.up = inputs, up
        self.weight = nn.Parameter(torch.randn(outputs, inputs, side, side)) if side else None
        self.register_buffer("filter", torch.ones(1, 1, 2, 2))

    def forward(self, x: Tensor) -> Tensor:
        if self.up:
            fixed = self.filter.tile([self.channels, 1, 1, 1])
            x = functional.conv_transpose2d(x, fixed, stride=2, groups=self.channels)
        return x if self.weight is None else torch.nn.functional.conv2d(x, self.weight)


class UpLayer(nn.Module):
    """A transposed convolution without "conv" in its name; weight [in, out / groups, k, k]."""

    def __init__(self, inputs: int, outputs: int, groups: int = 1) -> None:
        super().__init__()
        self.groups = groups
        self.weight = nn.Parameter(torch.randn(inputs, outputs // groups, 2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self._up_forward(x)

    def _up_forward(self, x: Tensor) -> Tensor:
        return functional.conv_transpose2d(x, self.weight, stride=2, groups=self.groups)


class Experts(nn.Module):
    """Mixes the kernels of four experts, one row of its weight each."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.shape = (outputs, inputs, 3, 3)
        self.weight = nn.Parameter(torch.randn(4, outputs * inputs * 9))

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight.mean(0).view(self.shape))


class PointwiseLinear(nn.Linear):
    """A 1 × 1 convolution whose weight is that of a Linear, [out, in]."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight[:, :, None, None], self.bias)


class MyConvModule(nn.Module):
    """Calls a function of its own: known as a convolution by its name."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.einsum("nihw,oi->nohw", x, self.weight[:, :, 0, 0])


class ConvNeXtGRN(nn.Module):
    """A norm of [N, H, W, C] with one factor per channel, as in ConvNeXt V2."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 1, 1, channels))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + x


class ConvGate(nn.Module):
    """Looks like a convolution, and its weight [2, C, 1, 1] is none: two factors per channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight[0] + self.weight[1]


class OtherName(nn.Module):
    """A convolution whose kernel has another name."""

    def __init__(self, inputs: int, outputs: int, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.kernel = nn.Parameter(torch.randn(outputs, inputs, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.kernel)


class Adapted(nn.Module):
    """Uses the weight of a child, as an adapter does."""

    def __init__(self, base: nn.Conv2d) -> None:
        super().__init__()
        self.base = base

    @property
    def weight(self) -> Any:
        return self.base.weight

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight)
