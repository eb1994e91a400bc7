"""The networks of the first-difference acceptance: six architectures with random weights.

Biases, running statistics and layer scales are random too: at their initial values (0 and 1) many
planted differences would change nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional


class UNet(nn.Module):
    """Two levels, transposed convolutions, skips that are concatenated in ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.enc1, self.enc2 = _double(3, 16), _double(16, 32)
        self.pool = nn.MaxPool2d(2)
        self.bottom = _double(32, 64)
        self.up2 = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.dec2 = _double(64, 32)
        self.up1 = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.dec1 = _double(32, 16)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        one = self.enc1(x)
        two = self.enc2(self.pool(one))
        x = self.up2(self.bottom(self.pool(two)))
        x = self.dec2(self.join(x, two, 2))
        x = self.dec1(self.join(self.up1(x), one, 1))
        return self.end(self.out(x))

    def join(self, up: Tensor, skip: Tensor, level: int) -> Tensor:
        return torch.cat([up, skip], 1)

    def end(self, x: Tensor) -> Tensor:
        return x


def _double(ins: int, outs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(ins, outs, 3, padding=1), nn.BatchNorm2d(outs), nn.ReLU(inplace=True),
        nn.Conv2d(outs, outs, 3, padding=1), nn.BatchNorm2d(outs), nn.ReLU(inplace=True),
    )  # fmt: skip


class FunctionalResidual(nn.Module):
    """Residual blocks in which everything without weights is a function."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.convs = nn.ModuleList([nn.Conv2d(16, 16, 3, padding=1) for _ in range(6)])
        self.norms = nn.ModuleList([nn.GroupNorm(4, 16) for _ in range(6)])
        self.smooth = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.weight = nn.Parameter(torch.randn(10, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(self.standardized(x))
        for number in range(3):
            x = self.block(x, number)
            if number == 0:
                x = self.pooled(x)
        return functional.linear(self.smooth(self.enlarged(x)).mean((2, 3)), self.weight)

    def standardized(self, x: Tensor) -> Tensor:
        return (x - 0.45) / 0.22

    def block(self, x: Tensor, number: int) -> Tensor:
        out = self.norms[2 * number](self.convs[2 * number](x))
        out = self.norms[2 * number + 1](self.convs[2 * number + 1](self.activated(out, number)))
        return self.joined(out, x, number)

    def activated(self, x: Tensor, number: int) -> Tensor:
        return functional.relu_(x)

    def joined(self, out: Tensor, x: Tensor, number: int) -> Tensor:
        return functional.relu(out + x)

    def pooled(self, x: Tensor) -> Tensor:
        return functional.max_pool2d(x, 2)

    def enlarged(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2, mode="bilinear")


def _vit() -> nn.Module:
    vit: nn.Module = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=10)
    for block in vit.blocks:
        block.attn.fused_attn = False  # the fused kernel ignores `scale`
    return vit


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "resnet18": lambda: torchvision.models.resnet18(weights=None),
    "mobilenet_v3_small": lambda: torchvision.models.mobilenet_v3_small(weights=None),
    "vit_tiny": _vit,
    "convnext_atto": lambda: timm.create_model("convnext_atto", num_classes=10),
    "unet": UNet,
    "functional_residual": FunctionalResidual,
}
"""Name -> a new network."""

TUNED_ON: dict[str, Callable[[], nn.Module]] = {
    "efficientnet_b0": lambda: torchvision.models.efficientnet_b0(weights=None),
    "swin_t": lambda: torchvision.models.swin_t(weights=None),
}
"""Networks with which the default tolerances were chosen; no difference is planted in them."""


def network(name: str) -> nn.Module:
    """A network in eval mode, always with the same random weights and buffers."""
    torch.manual_seed(7)
    model = {**NETWORKS, **TUNED_ON}[name]()
    with torch.no_grad():
        for tensor_name, parameter in model.named_parameters():
            last = tensor_name.rpartition(".")[2]
            if last == "gamma":
                parameter.uniform_(0.5, 1.0)
            elif last == "bias":
                parameter.normal_(0, 0.1)
        for tensor_name, buffer in model.named_buffers():
            if tensor_name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            if tensor_name.endswith("running_var"):
                buffer.uniform_(0.5, 2.0)
    return model.eval()


def images() -> Tensor:
    """Two random images [2, 3, 64, 64]."""
    return torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(11))
