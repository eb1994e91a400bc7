"""The training steps whose device work is budgeted; `python device_workloads.py` prints a table."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torchvision
from device_trace import Trace
from torch import Tensor, nn
from traced_step import traced_step

IMAGES = (64, 3, 224, 224)
EVERYTHING = {"inputs": True, "activation_gradients": True}
BF16 = {"autocast": torch.bfloat16}
LAST = {"channels_last": True}


@dataclass(frozen=True, slots=True)
class Workload:
    """A model, the shape of its input, and the arguments of ``traced_step``."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def trace(self, **options: Any) -> Trace:
        return traced_step(self.make, self.shape, **self.options, **options)


class UNet3d(nn.Module):
    """A 3-D U-Net with two convolutions per level and instance norms, in place where it can be."""

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 256, 320)) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.down = nn.ModuleList(_block(i, o) for i, o in [(1, widths[0]), *pairs])
        self.up = nn.ModuleList(nn.ConvTranspose3d(o, i, 2, 2) for i, o in pairs)
        self.decode = nn.ModuleList(_block(2 * i, i) for i, _ in pairs)
        self.head, self.pool = nn.Conv3d(widths[0], 3, 1), nn.MaxPool3d(2)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for block in list(self.down)[:-1]:
            skips.append(block(x))
            x = self.pool(skips[-1])
        x = self.down[-1](x)
        for up, decode in reversed(list(zip(self.up, self.decode, strict=True))):
            x = decode(torch.cat([up(x), skips.pop()], 1))
        found: Tensor = self.head(x)
        return found


def _block(inputs: int, outputs: int) -> nn.Sequential:
    parts: list[nn.Module] = []
    for width in (inputs, outputs):
        parts += nn.Conv3d(width, outputs, 3, padding=1), nn.InstanceNorm3d(outputs)
        parts.append(nn.LeakyReLU(inplace=True))
    return nn.Sequential(*parts)


def two_layers() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 28 * 28, 10),
    )  # fmt: skip


ResNet18, ResNet50 = torchvision.models.resnet18, torchvision.models.resnet50
WORKLOADS = {
    "two layers b64": Workload(two_layers, (64, 3, 32, 32)),
    "ResNet-18 b64": Workload(ResNet18, IMAGES),
    "ResNet-50 b64": Workload(ResNet50, IMAGES),
    "ResNet-50 channels_last": Workload(ResNet50, IMAGES, LAST),
    "ResNet-50 bf16": Workload(ResNet50, IMAGES, BF16),
    "ResNet-50 bf16 channels_last": Workload(ResNet50, IMAGES, {**BF16, **LAST}),
    "ConvNeXt-T b64": Workload(torchvision.models.convnext_tiny, IMAGES),
    "ConvNeXt-L b64": Workload(torchvision.models.convnext_large, IMAGES),
    "3-D U-Net b2": Workload(UNet3d, (2, 1, 128, 128, 128)),
}


def row(name: str, trace: Trace) -> str:
    """A row of the table, as Markdown."""
    return (
        f"| {name} | {len(trace.watched)} | {trace.launches} | {trace.launches_per_tensor:.1f} | "
        f"{sum(trace.watched) / 1e9:.2f} GB | {trace.reads:.2f} | {trace.peak / 1e6:.0f} MB | "
        f"{trace.to_host / 1e6:.1f} MB | {len(trace.waits)} |"
    )


HEAD = (
    "| workload | watched tensors | launches | per tensor | watched | bytes moved / watched | "
    "peak extra memory | to the host | waits |\n|---|---|---|---|---|---|---|---|---|"
)


def main(*words: str) -> None:
    """Print the figures of the workloads whose names contain a word; -v: by operation too."""
    wanted = [word for word in words if word != "-v"]
    print(HEAD)
    for name, workload in WORKLOADS.items():
        for more, options in (("", {}), (", everything", EVERYTHING)):
            if wanted and not any(word in name + more for word in wanted):
                continue
            trace = workload.trace(**options)
            print(row(name + more, trace), flush=True)
            if "-v" in words:
                for key, (launches, nbytes) in trace.by_op().items():
                    print(f"    {key:45} {launches:5} {nbytes / 1e6:10.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
