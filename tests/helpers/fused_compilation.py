"""What runs in a ``TritonProcess`` that compiles: all fused kernels, for a device that is absent.

Launches are counted and do nothing.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor


class _Driver:
    """Triton's driver for a device of which nothing exists but its compute capability."""

    def __init__(self, capability: int) -> None:
        self.capability, self.launched = capability, 0
        self.utils = SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": 2**17},
            load_binary=lambda *args: (1, 1, 32, 0, 1024),
            unload_module=lambda module: None,
        )

    def get_current_device(self) -> int:
        return self.capability

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        def launch(*args: Any) -> None:
            self.launched += 1

        return launch


def compiled(capability: int) -> dict[str, Any]:
    """Compile every kernel, then read tensors of many shapes, strides, dtypes and alignments.

    Returns:
        ``seconds`` for compiling; the number of ``kernels`` compiled; how many were compiled
        ``afterwards``; the ``launches`` to read a tensor and to draw it; and whether the kernels'
        assembly has ``loads`` of 128 and of 64 bits, uses ``float64`` or ``flushes_denormals``.
    """
    from triton.runtime import driver as drivers

    from fmapboard.measure.fused import warm_up
    from fmapboard.measure.fused.reader import FusedReader
    from fmapboard.measure.fused.statistics_kernel import statistics_kernel
    from fmapboard.measure.fused.tiles_kernel import tiles_kernel

    driver = _Driver(capability)
    drivers.set_active(driver)
    start = time.perf_counter()
    warm_up.launched(torch.device("cpu"))
    seconds = time.perf_counter() - start
    kernels = (statistics_kernel, tiles_kernel)

    def entries() -> list[Any]:
        return [one for kernel in kernels for one in kernel.device_caches[capability][0].values()]

    number, launches = len(entries()), set()
    reader = FusedReader(print)
    reader._devices.add(torch.device("cpu"))
    for maps in tensors():
        before = driver.launched
        planes = maps.reshape(*maps.shape[:2], 1, -1)[:2, :3]
        assert reader.read(maps, drawn=planes) is not None
        first = driver.launched - before
        assert reader.tiles(planes, 64, centered=True, channels=3, view="") is not None
        launches.add((first, driver.launched - before - first))
    text = "".join(entry.asm["ptx"] for entry in entries()[:number])
    return {
        "seconds": seconds,
        "kernels": number,
        "afterwards": len(entries()) - number,
        "launches": launches,
        "loads": ("ld.global.v4.b32" in text, "ld.global.v2.b32" in text),
        "float64": ".f64" in text,
        "flushes_denormals": ".ftz" in text,
    }


def tensors() -> list[Tensor]:
    """Tensors whose sizes, strides and addresses are 1, odd, multiples of 16, and large."""
    last, found = torch.channels_last, []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in ((1, 1, 1, 1), (1, 3, 16, 16), (16, 16, 1, 1), (2, 17, 5, 7), (3, 64, 8, 8)):
            maps = torch.zeros(shape, dtype=dtype)
            found += [maps, maps.to(memory_format=last), maps.transpose(2, 3)]
        found += [
            torch.zeros(257, dtype=dtype)[1:].view(1, 1, 16, 16),
            torch.zeros(2, 3, 6, 9, 9, dtype=dtype)[:, :, 1:4, 1:-1, 1:-1],
            torch.zeros(64, 1000, dtype=dtype),
            torch.zeros(1, dtype=dtype).expand(2**5, 2**10, 2**7, 2**8),
            torch.zeros(2, 50, 64, dtype=dtype).transpose(1, 2),
        ]
    return found
