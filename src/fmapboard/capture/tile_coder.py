"""Quantizes what a logged step draws on its accelerator, where that is worth its launches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.capture.memory_pressure import is_out_of_memory
from fmapboard.errors import WarnOnce, first_line
from fmapboard.measure.code_tiles import NUMBERS, Codes, coded, joined, launches
from fmapboard.measure.device_stats import HALVES
from fmapboard.measure.pending import PendingMaps, PendingMeasurement

_LAUNCHES_PER_TENSOR = 2 / 3
"""Maximum number of additional launches per measured tensor."""

_SAVED_PER_LAUNCH = 2**14
"""Minimum number of bytes; the worker takes about 20 µs to quantize them, as long as one launch."""

_MOST_TOGETHER = 2**24
"""Bytes of a group as float32; temporary copies take twice as much."""

_DTYPES = (torch.float32, *HALVES)

_Group = list[int]  # indices of measurements
_Key = tuple[torch.device, torch.dtype, int, int, bool]


class TileCoder:
    """Replaces maps of a step on accelerators by their pixels, as many as are worth it.

    The tiles of a step are grouped by size. A group is quantized on the device, the largest first,
    while that takes at most two launches per three measured tensors of the step, and saves at least
    16 KiB of the transfer per launch. The worker thread quantizes all others: groups that are small
    or in a small network; float64; planes of one pixel; with a scale of the layer or a locked one.

    Args:
        warn: where an error is reported; after it, nothing is quantized on a device.
    """

    def __init__(self, warn: WarnOnce) -> None:
        self._warn = warn
        self._has_failed = False

    def __call__(self, measured: list[PendingMeasurement]) -> None:
        """Replace measurements in the list; their maps are then no longer held.

        Raises:
            RuntimeError: the device has no memory left.
        """
        if self._has_failed or all(one.drawn is None for one in measured):
            return
        try:
            by_call: defaultdict[tuple[torch.device, bool], list[_Group]] = defaultdict(list)
            for (device, _, _, _, centered), group in _groups(measured):
                by_call[device, centered].append(group)
            for (device, centered), groups in by_call.items():
                chosen = _worth_it(measured, groups, centered)
                if chosen:
                    with aside(device.type):
                        _code(measured, chosen, centered)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            self._has_failed = True
            self._warn.warn(
                "tiles",
                f"feature maps cannot be quantized on their device ({first_line(error)}); the "
                "worker thread does it",
            )


def _groups(measured: Sequence[PendingMeasurement]) -> list[tuple[_Key, _Group]]:
    """Measurements whose maps can be coded together; those with the most values first."""
    found: defaultdict[_Key, list[_Group]] = defaultdict(list)
    held: dict[_Key, int] = {}
    for number, one in enumerate(measured):
        if not isinstance(one.drawn, PendingMaps) or one.drawn.maps.is_cpu:
            continue
        maps = one.drawn.maps
        height, width = maps.shape[2:]
        if maps.dtype not in _DTYPES or height * width == 1 or not one.quantize.needs_one_plane:
            continue
        key = (maps.device, maps.dtype, height, width, one.quantize.zero_centered)
        held[key] = held.get(key, _MOST_TOGETHER) + 4 * maps.numel()
        if held[key] > _MOST_TOGETHER:
            found[key].append([])
            held[key] = 4 * maps.numel()
        found[key][-1].append(number)
    groups = [(key, group) for key, several in found.items() for group in several]
    return sorted(groups, key=lambda group: -_saved(_tiles(measured, group[1])))


def _worth_it(
    measured: Sequence[PendingMeasurement], groups: list[_Group], centered: bool
) -> list[_Group]:
    """The first groups that together keep to the limits."""
    chosen: list[list[Tensor]] = []
    saved = count = 0
    for group in groups:
        tiles = _tiles(measured, group)
        now = launches([*chosen, tiles], zero_centered=centered)
        if now > _LAUNCHES_PER_TENSOR * len(measured):
            break
        if _saved(tiles) < _SAVED_PER_LAUNCH * (now - count):
            break
        chosen.append(tiles)
        saved, count = saved + _saved(tiles), now
    return groups[: len(chosen)]


def _tiles(measured: Sequence[PendingMeasurement], group: _Group) -> list[Tensor]:
    drawn = (measured[number].drawn for number in group)
    return [one.maps for one in drawn if isinstance(one, PendingMaps)]


def _saved(tiles: Sequence[Tensor]) -> int:
    """Bytes by which the codes are smaller than the tiles."""
    planes = sum(tile.shape[0] * tile.shape[1] for tile in tiles)
    values = sum(tile.numel() for tile in tiles)
    return values * (tiles[0].element_size() - 1) - 4 * NUMBERS * planes


def _code(measured: list[PendingMeasurement], groups: list[_Group], centered: bool) -> None:
    """Code each group; if that fails, measurements have their maps still."""
    rows = [_joined(measured, group) for group in groups]

    def done(group: int, codes: Codes) -> None:
        start = 0
        for number in groups[group]:
            drawn = measured[number].drawn
            assert isinstance(drawn, PendingMaps)
            end = start + drawn.maps.shape[0] * drawn.maps.shape[1]
            own, limits = codes.codes[start:end].view(drawn.maps.shape), codes.limits[start:end]
            drawn = replace(drawn, maps=own, limits=limits)
            measured[number] = replace(measured[number], drawn=drawn)
            start = end

    coded(rows, zero_centered=centered, done=done)


def _joined(measured: list[PendingMeasurement], group: _Group) -> Tensor:
    """The tiles of a group as rows; the measurements' maps become parts of them."""
    rows, start = joined(_tiles(measured, group)), 0
    for number in group:
        drawn = measured[number].drawn
        assert isinstance(drawn, PendingMaps)
        end = start + drawn.maps.shape[0] * drawn.maps.shape[1]
        drawn = replace(drawn, maps=rows[start:end].view(drawn.maps.shape))
        measured[number] = replace(measured[number], drawn=drawn)
        start = end
    return rows
