"""What runs in a ``TritonProcess`` that interprets: a training step watched with fused kernels."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

import fmapboard
from fmapboard import session
from fmapboard.measure import layout
from fmapboard.measure.fused import launch, tiles_kernel
from fmapboard.measure.fused.reader import FusedReader
from fmapboard.records import LoggedStep
from fmapboard.writers.memory import MemoryWriter


class _Counted:
    """A kernel whose launches are counted."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.launches = kernel, 0

    def __getitem__(self, grid: Any) -> Any:
        self.launches += 1
        return self.kernel[grid]


def network(kind: str) -> tuple[nn.Module, Tensor]:
    """A small network and a batch: ``"maps"``, ``"channels_last"``, ``"bfloat16"``, ``"volumes"``
    or ``"sequences"``."""
    generator = torch.Generator().manual_seed(0)
    if kind == "volumes":
        net = nn.Sequential(nn.Conv3d(1, 3, 3), nn.ReLU(), nn.Conv3d(3, 2, 3))
        return net, torch.randn(2, 1, 7, 8, 9, generator=generator)
    if kind == "sequences":
        net = nn.Sequential(nn.Conv1d(2, 3, 3), nn.ReLU(), nn.Conv1d(3, 2, 3))
        return net, torch.randn(2, 2, 40, generator=generator)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 17, 3, stride=2),
        nn.AdaptiveAvgPool2d(1), nn.Conv2d(17, 2, 1),
    )  # fmt: skip
    images = torch.randn(2, 3, 14, 11, generator=generator)
    if kind == "channels_last":
        images = images.to(memory_format=torch.channels_last)
        net = net.to(memory_format=torch.channels_last)
    if kind == "bfloat16":
        net, images = net.bfloat16(), images.bfloat16()
    return net, images


def logged(kind: str, fused: bool, nonfinite: bool, options: dict[str, Any]) -> Any:
    """The logged step of one training step, and how often each kernel was launched."""
    torch.manual_seed(0)
    model, images = network(kind)
    if nonfinite:
        images[0, 0, ..., 3], images[1, 0, ..., 4] = torch.nan, torch.inf
    counted = _Counted(launch.statistics_kernel), _Counted(tiles_kernel.tiles_kernel)

    def reader_for(*args: Any) -> FusedReader | None:
        reader = FusedReader(_fail)
        reader._devices.add(torch.device("cpu"))
        return reader if fused else None

    before = session.reader_for, layout._real
    session.reader_for = reader_for
    if fused:  # as on an accelerator, which reads 16-bit types as they are
        layout._real = lambda tensor: (tensor, "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, on infinite values
        try:
            step = _trained(model, images, counted, options)
        finally:
            session.reader_for, layout._real = before
    return step, [one.launches for one in counted]


def _trained(
    model: nn.Module, images: Tensor, counted: tuple[_Counted, _Counted], options: dict[str, Any]
) -> LoggedStep:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = MemoryWriter()
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1, **options):
        launch.statistics_kernel, tiles_kernel.tiles_kernel = counted
        try:
            model(images).float().square().mean().backward()
            optimizer.step()
        finally:
            launch.statistics_kernel, tiles_kernel.tiles_kernel = (one.kernel for one in counted)
    (step,) = writer.steps
    return step


def compiled_for_the_cpu() -> bool:
    """``FusedReader.compile``, which checks what each kernel computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FusedReader(_fail).compile(torch.device("cpu"))


def _fail(reason: str) -> None:
    raise AssertionError(reason)
