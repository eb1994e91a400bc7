"""``FusedReader``: reads tensors with the fused kernels, or declines."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.measure.fused.plan import VECTOR, Plan, plan
from fmapboard.measure.fused.tiles import PendingTiles
from fmapboard.measure.subsample import PendingSample, step_between

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
"""Read directly; every other dtype is declined."""

PASSED_ON_A_DEVICE = False
"""What ``fused="auto"`` means. Set it to True once ``benchmarks/on_gpu.py`` has passed on a real
device and its table is committed; until then the kernels have only run in Triton's interpreter."""


@dataclass(frozen=True, slots=True)
class FusedReading:
    """What one launch read of a tensor; on its device.

    Attributes:
        rows: Numbers of the parts of each channel, int32 [10, parts, C]; see ``rows.combine``.
        copy: Contiguous copy of what is drawn, in the tensor's dtype; None if none was asked for.
        sample: The histogram sample of ``subsample.sample``; None if none was asked for.
    """

    rows: Tensor
    copy: Tensor | None
    sample: PendingSample | None


class FusedReader:
    """Reads tensors with kernels in Triton, on the devices for which they were compiled.

    It declines, by returning None, what the kernels cannot read: other dtypes, other devices,
    tensors of 2**31 elements or more, tensor subclasses; and everything after a failure.

    Args:
        failed: Called with a message, once, if the kernels cannot be compiled or launched, or
            compute wrong values.
    """

    def __init__(self, failed: Callable[[str], object]) -> None:
        self._failed = failed
        self._devices: set[torch.device] = set()
        self._has_failed = False

    def compile(self, device: torch.device) -> bool:
        """Compile every kernel for a device, launch each and check its results; waits for them.

        No later launch compiles. Triton stores what it compiled on disk; without that it takes
        about a second per kernel.

        Returns:
            True if ``read`` may be called.
        """
        try:
            if importlib.util.find_spec("triton") is None:
                raise ImportError("Triton is not installed")
            from fmapboard.measure.fused import warm_up

            with _current(device):
                warm_up.check(device)
        except Exception as error:
            self._fail(error)
            return False
        self._devices.add(device)
        return True

    def covers(self, maps: Tensor) -> bool:
        """True if a tensor's device and type are among those that can be read."""
        return (
            maps.device in self._devices
            and maps.dtype in DTYPES
            and type(maps) is Tensor
            and not maps.is_neg()
        )

    def read(
        self, maps: Tensor, *, drawn: Tensor | None = None, sampled: bool = True
    ) -> FusedReading | None:
        """Read a tensor in one launch.

        Args:
            maps: [N, C, *spatial] of any strides, not empty.
            drawn: View [K, M, H, W] of the same dtype to copy, if any.
            sampled: Also take the histogram sample.

        Returns:
            What was read; None if it has to be read with plain operations.
        """
        planned = self._plan(maps) if self.covers(maps) else None
        if planned is None or (drawn is not None and not self._reaches(drawn)):
            return None
        total = maps.numel()
        step = step_between(total, maps.shape) if sampled else 1
        size = -(-total // step) if sampled else 0
        try:
            from fmapboard.measure.fused.launch import reduce

            with _current(maps.device):
                rows, copy, values = reduce(maps, planned, drawn, (size, step) if sampled else None)
        except Exception as error:
            self._fail(error)
            return None
        return FusedReading(rows, copy, None if values is None else PendingSample(values, total))

    def tiles(
        self, planes: Tensor, most: int | None, *, centered: bool, channels: int, view: str
    ) -> PendingTiles | None:
        """Average and quantize planes in one launch; see ``tiles.quantized``.

        Returns:
            The tiles; None if they have to be drawn in another way.
        """
        if not (self.covers(planes) and self._reaches(planes)):
            return None
        try:
            from fmapboard.measure.fused.tiles import quantized

            with _current(planes.device):
                return quantized(planes, most, centered=centered, channels=channels, view=view)
        except Exception as error:
            self._fail(error)
            return None

    @staticmethod
    def _plan(maps: Tensor) -> Plan | None:
        aligned = maps.data_ptr() % (VECTOR * maps.element_size()) == 0
        return plan(tuple(maps.shape), maps.stride(), aligned)

    def _reaches(self, planes: Tensor) -> bool:
        """True if int32 can address the planes."""
        return self._plan(planes) is not None

    def _fail(self, error: Exception) -> None:
        self._devices.clear()
        if not self._has_failed:
            self._has_failed = True
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._failed(f"fused kernels are not used, layers are read in several steps: {reason}")


def _current(device: torch.device) -> torch.cuda.device:
    """Triton launches on the current device; does nothing for other types of devices."""
    return torch.cuda.device(device if device.type == "cuda" else -1)
