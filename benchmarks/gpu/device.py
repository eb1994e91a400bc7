"""The device under test, and the settings that all sections share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gpu.report import Skip


class Device:
    """A device by name: ``"cuda"``, ``"cuda:1"``, ``"cpu"``, ``"mps"``.

    Raises:
        RuntimeError: There is no such device; torch built without CUDA raises AssertionError.
    """

    def __init__(self, name: str) -> None:
        self.name, self.type = name, torch.device(name).type
        self.is_cuda = self.type == "cuda"
        found = torch.empty(1, device=name).device
        if self.is_cuda:
            torch.cuda.set_device(found)

    def sync(self) -> None:
        """Wait until the device has done everything."""
        if self.type != "cpu":
            torch.accelerator.synchronize()

    def random_state(self) -> Tensor:
        """State of the device's random generator."""
        if self.type == "cpu":
            return torch.get_rng_state()
        return torch.get_device_module(self.type).get_rng_state().clone()

    def require_cuda(self) -> None:
        """Skip the check on any other device.

        Raises:
            Skip: The device is not a CUDA device.
        """
        if not self.is_cuda:
            raise Skip("needs a CUDA device")

    def hold(self, seconds: float) -> torch.cuda.Event:
        """Keep the current stream busy; the event is reached once it is free again."""
        torch.cuda._sleep(int(seconds * self._cycles_per_second))
        event = torch.cuda.Event()
        event.record()
        return event

    @cached_property
    def _cycles_per_second(self) -> float:
        cycles = 50_000_000
        torch.cuda._sleep(cycles)  # the first launch loads the kernel
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
        return cycles / begin.elapsed_time(end) * 1e3

    @cached_property
    def bandwidth(self) -> float:
        """Bytes per second that a copy on the device reads and writes."""
        source = torch.empty(2**28, device=self.name)
        target = torch.empty_like(source)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(3):
            begin.record()
            target.copy_(source)
            end.record()
            end.synchronize()
        return 2 * source.nbytes / begin.elapsed_time(end) * 1e3


@dataclass(frozen=True)
class Settings:
    """What the command line chose.

    Attributes:
        device: The device under test.
        modes: Names of the training modes; None for the defaults of each section.
        tiny: Use sizes for a dry run.
        rounds: How often costs are measured.
        works: Measure the costs of the workloads whose name contains this.
    """

    device: Device
    modes: tuple[str, ...] | None = None
    tiny: bool = False
    rounds: int = 5
    works: str = ""
