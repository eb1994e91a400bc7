"""A training step in each of the modes that people use on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional
from workloads import photographs

from gpu.device import Device
from gpu.networks import Work
from gpu.report import Skip

images = lru_cache(maxsize=4)(photographs)


@dataclass(frozen=True)
class Mode:
    """How a step is trained.

    Attributes:
        dtype: Dtype of autocast; None for no autocast.
        scaled: The loss is scaled by a GradScaler.
        channels_last: Memory format of model and batch.
        compiled: Mode of ``torch.compile``; None for an eager model.
    """

    dtype: torch.dtype | None = None
    scaled: bool = False
    channels_last: bool = False
    compiled: str | None = None


MODES = {
    "eager": Mode(),
    "amp": Mode(torch.bfloat16),
    "amp16": Mode(torch.float16, scaled=True),
    "channels_last": Mode(channels_last=True),
    "amp_channels_last": Mode(torch.bfloat16, channels_last=True),
    "compile": Mode(compiled="default"),
    "reduce_overhead": Mode(compiled="reduce-overhead"),
}


class Training:
    """A training step; each call runs forward, backward and SGD, and returns the loss.

    Args:
        work: The network and its batch.
        mode: A key of ``MODES``.
        device: Where it trains.
        fused: Use the fused optimizer.

    Attributes:
        raw: The network.
        model: The network, compiled if the mode says so.
        scaler: The GradScaler of the mode, or None.

    Raises:
        Skip: The mode does not exist on this device.
    """

    def __init__(self, work: Work, mode: str, device: Device, *, fused: bool = False) -> None:
        chosen = MODES[mode]
        if chosen.compiled == "reduce-overhead" and not device.is_cuda:
            raise Skip("CUDA graphs need a CUDA device")
        torch.manual_seed(0)
        self.work, self.mode, self.device = work, chosen, device
        network, batch = work.make(), _batch(work.shape)
        if chosen.channels_last:
            if batch.dim() != 4:
                raise Skip("channels_last is for images [N, C, H, W]")
            network = network.to(memory_format=torch.channels_last)
            batch = batch.contiguous(memory_format=torch.channels_last)
        self.raw, self.x = network.to(device.name), batch.to(device.name)
        self.y = work.labels().to(device.name)
        self.model: nn.Module = self.raw
        if chosen.compiled is not None:
            self.model = _compiled(self.raw, chosen.compiled, device)
        self.optimizer = torch.optim.SGD(
            self.raw.parameters(), lr=1e-3, momentum=0.9, fused=fused or None
        )
        self.scaler = torch.amp.GradScaler(device.type, init_scale=256.0) if chosen.scaled else None

    def __call__(self) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        dtype = self.mode.dtype
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            loss = functional.cross_entropy(self.model(self.x).float(), self.y)
        if self.scaler is None:
            loss.backward()
            self.optimizer.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        return loss.detach()

    @contextmanager
    def eager(self) -> Iterator[None]:
        """Run a compiled model eagerly, so that hooks of the layers run."""
        with torch.compiler.set_stance("force_eager"):
            yield


def _batch(shape: tuple[int, ...]) -> Tensor:
    if len(shape) == 4:
        return images(*shape)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def _compiled(network: nn.Module, mode: str, device: Device) -> nn.Module:
    torch.compiler.reset()
    if device.type == "cpu":  # a dry run: no C++ compiler, no minutes
        return torch.compile(network, backend="aot_eager")
    return torch.compile(network, mode=None if mode == "default" else mode)
