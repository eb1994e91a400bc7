"""The table of an image's layers that ``visualize`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fmapboard.printing import Table, add_row, new_table
from fmapboard.records import LayerMeasurement, LoggedStep


def layer_table(
    step: LoggedStep, files: Mapping[str, list[Path]], unloaded: Mapping[str, str]
) -> Table:
    """One row per layer call: kernel shape, map size, range, counts of bad channels, file.

    Args:
        step: the recorded step of one image.
        files: label of a layer call -> the files its maps were written to.
        unloaded: name of a layer -> which of its weights are not from the checkpoint, such as
            ``"random"``; there is a column for them if any.
    """
    table = new_table()
    table.add_column("layer", no_wrap=True)
    table.add_column("kernel shape", no_wrap=True)
    if unloaded:
        table.add_column("weights", no_wrap=True)
    table.add_column("map size", no_wrap=True)
    table.add_column("range", no_wrap=True, justify="right")
    for heading in ("constant", "dead channels", "non-finite"):
        table.add_column(heading, justify="right")
    table.add_column("file", overflow="fold")
    rows = sorted(step.statistics, key=lambda measured: measured.layer_call.position)
    for measured in rows:
        cells = _cells(measured, files, unloaded)
        add_row(table, *cells)
    return table


def _cells(
    measured: LayerMeasurement, files: Mapping[str, list[Path]], unloaded: Mapping[str, str]
) -> list[object]:
    """What the row of a layer call says."""
    call = measured.layer_call
    statistics = measured.statistics
    assert statistics is not None  # image passes always measure statistics
    cells: list[object] = [call.label, call.group]
    if unloaded:
        cells.append(unloaded.get(call.layer, ""))
    map_size = measured.shape[1:] or measured.shape  # without the batch axis
    cells.append("×".join(str(side) for side in map_size))
    minimum = statistics.minimum
    finite = minimum[np.isfinite(minimum)]
    if finite.size:
        lowest = finite.min()
        highest = np.nanmax(statistics.maximum)
        cells.append(f"{lowest:.3g} … {highest:.3g}")
    else:
        cells.append("no finite value")
    cells.append(_count(statistics.constant))
    if statistics.dead is None:
        cells.append("–")
    else:
        cells.append(_count(statistics.dead))
    cells.append(_count(statistics.nonfinite))
    written = files.get(call.label)
    cells.append(written[0] if written else "–")
    return cells


def _count(flags: npt.NDArray[np.bool_]) -> str:
    count = int(flags.sum())
    return f"{count} of {flags.size}" if count else "0"
