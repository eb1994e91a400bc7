"""The records of the Feature maps tab, a file of its own for their format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import (
    Floats,
    Kernels,
    LayerMeasurement,
    Planes,
    Scale,
    StepData,
    TabRecord,
    TaggedPictures,
    TensorKind,
    TransposedShape,
)
from fmapboard.render import png
from fmapboard.render.grid import KERNEL_PADDING, arrangement
from fmapboard.render.quantize import used_scale
from fmapboard.summary.change import CHANGED, Changes

_STATISTICS = (
    "minimum", "maximum", "mean", "std",
    "nan", "positive_infinity", "negative_infinity", "constant", "dead",
)  # fmt: skip


def tab_records(
    written: Mapping[str, int],
    data: StepData,
    drawn: Sequence[TaggedPictures],
    kernels: Mapping[str, Mapping[str, Any]],
    changes: Changes,
    followers: Mapping[str, LayerMeasurement],
    *,
    prefix: str,
    colormap: str,
    scale: Scale,
) -> tuple[Mapping[str, int], list[TabRecord]]:
    """Build a record per drawn layer call and, at its first step, another one with its grids.

    Args:
        written: Label of a layer -> number of its records at the steps before; not changed.
        data: The measurements.
        drawn: The pictures of layers and kernels, without those of the network's input.
        kernels: Label of a layer -> ``kernel_facts`` of its drawn kernels.
        changes: See ``change.changes_of_maps``.
        followers: Label of a layer -> the activation that follows it.
        prefix: Prefix of every tag.
        colormap: Name of the palette.
        scale: How the planes were scaled.

    Returns:
        ``written`` with this step, and the records.
    """
    of_call: defaultdict[str, list[TaggedPictures]] = defaultdict(list)
    for tagged in drawn:
        assert tagged.layer_call is not None  # `drawn` holds no network input
        of_call[tagged.layer_call.label].append(tagged)
    measured = {(m.layer_call.label, m.kind): m for m in data.measured}
    written = {**written, **{label: written.get(label, 0) + 1 for label in of_call}}
    records = []
    for label, pictures in of_call.items():
        parts = [(tagged, measured.get((label, tagged.kind))) for tagged in pictures]
        layer_call = pictures[0].layer_call
        assert layer_call is not None
        header: dict[str, Any] = {
            "layer": layer_call.layer,
            "type": layer_call.type,
            "kernel_shape": list(layer_call.kernel_shape) if layer_call.kernel_shape else None,
            "call": layer_call.call,
            "position": layer_call.position,
            "step": data.step,
            "steps_written": written[label],
            "training_thread_ms": round(data.training_thread_ms, 3),
            "pictures": [
                _of_kernels(tagged, kernels[label])
                if part is None or part.planes is None
                else _of_maps(tagged, part, part.planes, colormap, scale)
                for tagged, part in parts
            ],
        }
        arrays: dict[str, Floats] = {}
        for tagged, part in parts:
            if part is not None:
                arrays.update(_arrays(tagged.kind, part))
        changed = {name: changes[label, name] for name in CHANGED if (label, name) in changes}
        if changed:
            header["change_since"] = {name: change.since for name, change in changed.items()}
            arrays |= {f"{name}.change": change.values for name, change in changed.items()}
        follower = followers.get(label)
        if follower is not None:
            call = follower.layer_call
            header["activation"] = {"label": call.label, "type": call.type}
            arrays.update(_dead_after(follower, measured.get((label, "feature_maps"))))
        records.append(TabRecord(f"{prefix}{tags.RECORD}{label}", pack(header, arrays)))
        if written[label] == 1:
            grids = [png.encode(picture) for p in pictures for picture in p.samples]
            blobs = pack(header, arrays, grids)
            records.append(TabRecord(f"{prefix}{tags.FIRST_RECORD}{label}", blobs))
    return written, records


def _of_kernels(tagged: TaggedPictures, kernels: Mapping[str, Any]) -> dict[str, Any]:
    picture = tagged.samples[0]
    header = {
        "role": tagged.kind,
        "tag": tagged.tag,
        "palette": "rgb" if picture.palette is None else "signed",
        "padding": KERNEL_PADDING,
        "tile": list(picture.tile),
        **kernels,
    }
    return header if tagged.layout == "tiles" else {**header, "layout": "rows"}


def _of_maps(
    tagged: TaggedPictures, part: LayerMeasurement, planes: Planes, colormap: str, scale: Scale
) -> dict[str, Any]:
    samples, drawn, height, width = planes.pixels.shape
    per_row, padding = arrangement(planes)
    return {
        "role": tagged.kind,
        "tag": tagged.tag,
        "shape": list(planes.shape),
        "channels": planes.channels,
        "drawn": drawn,
        "samples": samples,
        "tile": [height, width],
        "columns": per_row,
        "padding": padding,
        "block": planes.block,
        "view": part.view,
        "palette": colormap,
        "scale": used_scale(planes, scale),
        **({} if planes.layout == "tiles" else {"layout": "rows"}),
        **({} if part.is_counted else {"counted": False}),
    }


def kernel_facts(kernels: Kernels, most: int | None, peak: float) -> dict[str, Any]:
    """What the header of a picture of kernels says of them (see ``formats.tab_records``).

    Args:
        kernels: The kernels.
        most: Maximum number of outputs and inputs that are drawn; None draws all.
        peak: Largest drawn magnitude. It is stored with the nine digits that identify a float32:
            as a float64 it would print up to twice as many.
    """
    peak = float(f"{peak:.9g}")
    shape = kernels.layer_call.kernel_shape
    if shape is None:
        return {"peak": peak}
    is_transposed = isinstance(shape, TransposedShape)
    outputs, inputs = reversed(shape[:2]) if is_transposed else shape[:2]
    if len(shape) == 2:  # one row per output
        inputs = 1
    drawn = kernels.cut(most).weight.shape
    return {
        "peak": peak,
        "outputs": [drawn[0], outputs],
        "inputs": [drawn[1], inputs],
        **({"transposed": True} if is_transposed else {}),
        **({} if kernels.groups in (None, 1) else {"groups": kernels.groups}),
    }


def _dead_after(follower: LayerMeasurement, maps: LayerMeasurement | None) -> dict[str, Floats]:
    """``activation.dead`` for the layer's drawn channels; empty if no channel is dead."""
    statistics = follower.statistics
    if maps is None or maps.planes is None or statistics is None or statistics.dead is None:
        return {}
    dead = statistics.dead[: maps.planes.pixels.shape[1]]
    return {"activation.dead": dead.astype(np.float32)} if dead.any() else {}


def _arrays(kind: TensorKind, part: LayerMeasurement) -> dict[str, Floats]:
    """The arrays of one tensor (see ``formats.tab_records``), without those that are all 0."""
    planes, statistics = part.planes, part.statistics
    assert planes is not None
    drawn = planes.pixels.shape[1]
    arrays: dict[str, Floats] = {f"{kind}.lo": planes.lo, f"{kind}.hi": planes.hi}
    if planes.flat.any():
        arrays[f"{kind}.flat"] = planes.flat.astype(np.float32)
    for name in _STATISTICS if statistics is not None else ():
        values = getattr(statistics, name)
        if values is not None and (values.dtype.kind == "f" or values.any()):
            arrays[f"{kind}.{name}"] = values[:drawn]
    return arrays
