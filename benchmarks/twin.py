"""CPU time and memory of the copy on which fmapboard runs passes of its own.

    python benchmarks/twin.py

The copy shares the parameters. Python memory is what ``tracemalloc`` finds once the copy is made;
buffers are the tensors that it does not share.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable

import torchvision
from torch import nn

from fmapboard.capture.twin import Twin

ROUNDS = 7


def blocks(count: int = 1000) -> nn.Module:
    """Networks of 3 * ``count`` modules and the container."""
    layers: list[nn.Module] = []
    for _ in range(count):
        layers += [nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]
    return nn.Sequential(*layers)


def report(name: str, make: Callable[[], nn.Module]) -> None:
    model = make()
    milliseconds = []
    for _ in range(ROUNDS + 1):
        begin = time.thread_time()
        twin = Twin(model)
        milliseconds.append(1e3 * (time.thread_time() - begin))
    tracemalloc.start()
    twin = Twin(model)
    python, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    own = {buffer.untyped_storage().data_ptr(): buffer for buffer in twin.module.buffers()}
    shared = {buffer.untyped_storage().data_ptr() for buffer in model.buffers()}
    copied = sum(buffer.nbytes for place, buffer in own.items() if place not in shared)
    weights = sum(parameter.nbytes for parameter in model.parameters())
    print(
        f"{name}: {len(list(model.modules()))} modules, {statistics.median(milliseconds[1:]):.0f} "
        f"ms, Python {python / 1e6:.2f} MB, buffers {copied / 1e6:.2f} MB; parameters of "
        f"{weights / 1e6:.1f} MB are shared"
    )


if __name__ == "__main__":
    report("3,000 modules", blocks)
    report("ResNet-50", torchvision.models.resnet50)
