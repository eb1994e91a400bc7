"""Training steps and clocks, shared by the benchmarks in this folder.

Workloads: W1a a small CNN and W1b ResNet-18 at 32², batch size 128; W2 ResNet-18 at 224², batch
size 8; W3 AlexNet and W4 ResNet-50 on one 224² image. If torch finds a GPU, each also runs there.
"""

from __future__ import annotations

import copy
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.demo.bundled import bundled


def small_cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(inplace=True)),
        *(nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(inplace=True)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000)),
    )


@dataclass(frozen=True)
class Workload:
    """A model, the shape of its batch, and its device."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    device: str = "cpu"

    def training(self) -> Training:
        torch.manual_seed(0)
        return Training(self.make(), self.shape, self.device)


def workloads(only: str = "", devices: tuple[str, ...] | None = None) -> list[Workload]:
    """Workloads whose name contains ``only``, on the CPU and, if there is one, on a GPU."""
    if devices is None:
        devices = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
    found = [
        Workload("W1a small CNN 32² ×128", small_cnn, (128, 3, 32, 32)),
        Workload("W1b ResNet-18 32² ×128", torchvision.models.resnet18, (128, 3, 32, 32)),
        Workload("W2 ResNet-18 224² ×8", torchvision.models.resnet18, (8, 3, 224, 224)),
        Workload("W3 AlexNet 224² ×1", torchvision.models.alexnet, (1, 3, 224, 224)),
        Workload("W4 ResNet-50 224² ×1", torchvision.models.resnet50, (1, 3, 224, 224)),
    ]
    on = [
        replace(work, device=device, name=work.name + ("" if device == "cpu" else f", {device}"))
        for device in devices
        for work in found
    ]
    return [work for work in on if only in work.name]


def photographs(count: int, channels: int, height: int, width: int) -> Tensor:
    """Normalized crops of the bundled photographs, [N, C, H, W]; noise if C is not 3."""
    if channels != 3:
        return torch.randn(count, channels, height, width)
    generator = np.random.default_rng(0)
    files = sorted(bundled("photographs").glob("*.jpg"))
    cuts = []
    for number in range(count):
        with Image.open(files[number % len(files)]) as image:
            side = int(min(image.size) * generator.uniform(0.5, 1.0))
            left, top = (int(generator.integers(0, full - side + 1)) for full in image.size)
            cut = image.convert("RGB").crop((left, top, left + side, top + side))
            cuts.append(np.asarray(cut.resize((width, height), Image.Resampling.BICUBIC)))
    batch = torch.from_numpy(np.stack(cuts)).permute(0, 3, 1, 2).float() / 255
    return ((batch - 0.45) / 0.225).contiguous()


class Training:
    """A training step; each call runs forward, backward and SGD."""

    def __init__(self, model: nn.Module, shape: tuple[int, ...], device: str = "cpu") -> None:
        self.model, self.device = model.to(device), device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x = photographs(*shape).to(device)
        self.y = torch.randint(0, 10, shape[:1], device=device)

    def __call__(self) -> Tensor:
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(self.x), self.y)
        loss.backward()
        self.optimizer.step()
        return loss

    def copy(self) -> Training:
        """The same step on a copy of the model, so that one tool's hooks do not run for another."""
        twin = copy.copy(self)
        twin.model = copy.deepcopy(self.model)
        twin.optimizer = torch.optim.SGD(twin.model.parameters(), lr=1e-3)
        return twin

    def sync(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()


@dataclass(frozen=True)
class Cost:
    """Wall time and CPU time, ms; CPU time includes child processes."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def between(self, other: Cost) -> Cost:
        return Cost((self.wall + other.wall) / 2, (self.cpu + other.cpu) / 2)


def timed(act: Callable[[], object], sync: Callable[[], object] = int) -> Cost:
    """Cost of a call; ``sync`` waits for the device before and after it."""
    sync()
    wall, cpu = time.perf_counter(), cpu_seconds()
    act()
    sync()
    return Cost((time.perf_counter() - wall) * 1e3, (cpu_seconds() - cpu) * 1e3)


def cpu_seconds() -> float:
    """CPU time of this process and, on Linux, of its running child processes, s."""
    return time.process_time() + sum(map(_seconds_of, _below(os.getpid())))


def _below(pid: int) -> Iterator[int]:
    """All descendants of a process, such as wandb's or a data loader's; empty outside Linux."""
    try:
        children = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from _below(child)


def _seconds_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bytes_below(folder: Path) -> int:
    """Total size of all files below a folder, bytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def machine(*packages: str) -> str:
    """One line that describes the machine: cores, threads, versions."""
    names = ("torch", "torchvision", "tensorboard", *packages)
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    gpu = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return (
        f"{os.cpu_count()} cores ({_processor()}){gpu}, {torch.get_num_threads()} torch threads, "
        f"Python {platform.python_version()}, {versions}"
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        return "–"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    found = next((line for line in lines if line.startswith("model name")), "")
    return found.partition(":")[2].strip() or platform.machine()
