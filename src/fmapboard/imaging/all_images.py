"""What was found in all images together: the last line that ``visualize`` and ``patches`` print."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.imaging.messages import few
from fmapboard.model.layers import Layers
from fmapboard.records import LoggedStep


@dataclass(slots=True)
class AllImages:
    """Collects findings over images; ``line`` says them.

    Attributes:
        count: Number of images.
        nan: Names of those with NaN in a layer's output.
        infinite: Names of those with infinity in a layer's output.
        dead: Label of a layer call -> bool [C], the channels that are dead in all images so far.
        ran: Names of the layers that returned a tensor for an image.
        replaced: Number of PNG files from before that were overwritten.
        projector: What was written for the Projector, in one line; empty for nothing.
    """

    count: int = 0
    nan: list[str] = field(default_factory=list)
    infinite: list[str] = field(default_factory=list)
    dead: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    replaced: int = 0
    projector: str = ""

    def add(self, name: str, step: LoggedStep, replaced: int = 0) -> None:
        """Add an image, given by its name and its recorded step."""
        self.count += 1
        self.replaced += replaced
        found = [(one.layer_call, one.statistics) for one in step.statistics if one.statistics]
        if any(statistics.nan.any() for _, statistics in found):
            self.nan.append(name)
        if any((s.positive_infinity + s.negative_infinity).any() for _, s in found):
            self.infinite.append(name)
        for call, statistics in found:
            self.ran.add(call.layer)
            if statistics.dead is not None:
                before = self.dead.get(call.label, statistics.dead)
                is_same = before.shape == statistics.dead.shape
                self.dead[call.label] = before & statistics.dead if is_same else before & False

    def line(self, given: int, *, noun: str = "image", chosen: Collection[str] = ()) -> str:
        """The findings in one line.

        Args:
            given: Number of files that were given.
            noun: What is counted.
            chosen: Names of the layers that were selected.

        Example:
            >>> AllImages(7, nan=["a4.png"]).line(8)
            '7 of 8 images; NaN in 1: a4.png; no infinity'
        """
        of = f" of {given:,}" if given != self.count else ""
        parts = [f"{self.count:,}{of} {noun}{'s' * (given != 1)}"]
        for kind, names in (("NaN", self.nan), ("infinity", self.infinite)):
            parts.append(f"{kind} in {len(names):,}: {few(names)}" if names else f"no {kind}")
        dead = {label: (int(flags.sum()), flags.size) for label, flags in self.dead.items()}
        layers = [f"{label} {count} of {size}" for label, (count, size) in dead.items() if count]
        if layers:
            everywhere = " in all of them" if self.count > 1 else ""
            parts.append(f"dead channels{everywhere}: {few(layers)}")
        never = [name for name in chosen if name not in self.ran]
        if never:
            parts.append(f"no output of {few(never)}")
        return "; ".join(parts)

    def say_overwritten(self, folder: Path | None, say: Callable[[str], object]) -> None:
        """Say that PNG files from before were overwritten, if there were any."""
        files = "1 PNG file" if self.replaced == 1 else f"{self.replaced:,} PNG files"
        if self.replaced:
            say(f"overwrote {files} in {folder}; give each run another folder")


def selected_layers(model: nn.Module, layers: Layers) -> list[str]:
    """Names of the selected layers that have a ``forward`` of their own.

    Raises:
        ConfigurationError: The selection is invalid, or selects nothing.
    """
    never = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
    found = HookRegistry(model, layers).layers
    return [name for name, module in found.items() if not isinstance(module, never)]
