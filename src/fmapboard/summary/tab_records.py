"""The records of the Feature maps tab, a file of its own for their format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import (
    Floats,
    Kernels,
    LayerMeasurement,
    Parameter,
    Planes,
    Scale,
    Slices,
    Statistics,
    TabRecord,
    TaggedPictures,
    TensorKind,
    TransposedShape,
)
from fmapboard.render import png
from fmapboard.render.grid import KERNEL_PADDING, arrangement
from fmapboard.render.quantize import used_scale
from fmapboard.summary.change import CHANGED, Drawn
from fmapboard.summary.heads import head_arrays
from fmapboard.summary.token_names import StoredNames

_STATISTICS = (
    "minimum", "maximum", "mean", "std",
    "nan", "positive_infinity", "negative_infinity", "constant", "dead",
)  # fmt: skip


def tab_records(
    written: Mapping[str, int], step: Drawn, headers: Mapping[str, Mapping[str, Any]]
) -> tuple[Mapping[str, int], list[TabRecord]]:
    """Build a record per drawn layer call and, at its first step, another one with its grids.

    Args:
        written: Label of a layer -> number of its records at the steps before; not changed.
        step: The step.
        headers: Tag -> what a record says of these pictures: ``of_maps`` or ``of_kernels``.

    Returns:
        ``written`` with this step, and the records.
    """
    measured = {(part.layer_call.label, part.kind): part for part in step.data.measured}
    written = dict(written)
    records = []
    estimated = _estimated_updates(step.data.parameters)
    token_names = StoredNames(step.data.texts)
    for label, pictures in step.pictures.items():
        written[label] = written.get(label, 0) + 1
        header = _header(step, pictures, written[label])
        header["pictures"] = [headers[tagged.tag] for tagged in pictures]
        arrays: dict[str, Floats] = {}
        for tagged in pictures:
            part = measured.get((label, tagged.kind))
            if part is not None and part.planes is not None:
                arrays |= _arrays(tagged.kind, part.planes, part.statistics)
                arrays |= _of_slices(part.slices)
                header |= token_names.keys(part)
                if part.heads is not None:
                    arrays |= head_arrays(part.heads, part.planes.pixels.shape[1])
        if label in step.unchanged_kernels:
            header["kernels"] = step.unchanged_kernels[label]
        if header["layer"] in estimated:
            header["estimated_updates"] = estimated[header["layer"]]
        arrays |= _changes(step, label, header)
        follower = step.followers.get(label)
        if follower is not None:
            call = follower.layer_call
            header["activation"] = {"label": call.label, "type": call.type}
            arrays |= _dead_after(follower, measured.get((label, "feature_maps")))
        tag = f"{step.prefix}{tags.RECORD}{label}"
        slices = [png.encode(picture) for picture in step.slices.get(label, ())]
        records.append(TabRecord(tag, pack(header, arrays, slices)))
        if written[label] == 1:
            grids = [png.encode(picture) for tagged in pictures for picture in tagged.samples]
            tag = f"{step.prefix}{tags.FIRST_RECORD}{label}"
            records.append(TabRecord(tag, pack(header, arrays, [*grids, *slices])))
    return written, records


def _changes(step: Drawn, label: str, header: dict[str, Any]) -> dict[str, Floats]:
    """The arrays of changes since an earlier step, which ``change_since`` of the header names."""
    names = [name for name in CHANGED if (label, name) in step.changes]
    if not names:
        return {}
    header["change_since"] = {name: step.changes[label, name].since for name in names}
    return {f"{name}.change": step.changes[label, name].values for name in names}


def _of_slices(slices: Slices | None) -> dict[str, Floats]:
    """The ranges of further depth slices."""
    if slices is None:
        return {}
    planes = slices.planes
    return {"slices.lo": planes.lo, "slices.hi": planes.hi}


def _estimated_updates(parameters: Iterable[Parameter]) -> dict[str, list[str]]:
    """Layer -> those of its own parameters whose update ratio is an estimate."""
    found: dict[str, list[str]] = {}
    for parameter in parameters:
        if parameter.update is not None and parameter.update.is_estimate:
            layer, _, name = parameter.name.rpartition(".")
            found.setdefault(layer, []).append(name)
    return found


def _header(step: Drawn, pictures: Sequence[TaggedPictures], steps_written: int) -> dict[str, Any]:
    """What a record says of its layer call and step."""
    call = pictures[0].layer_call
    assert call is not None  # the pictures are a layer's
    part = {} if call.part is None else {"shape": call.part.shape, "unit": call.part.unit}
    return {
        "layer": call.layer,
        "type": call.type,
        "kernel_shape": call.kernel_shape,
        "call": call.call,
        "position": call.position,
        "step": step.data.step,
        "steps_written": steps_written,
        "training_thread_ms": round(step.data.training_thread_ms, 3),
        **part,
    }


def of_maps(
    tagged: TaggedPictures, part: LayerMeasurement, planes: Planes, colormap: str, scale: Scale
) -> dict[str, Any]:
    """What a record says of pictures of maps (see ``formats.tab_records``).

    Args:
        tagged: The pictures.
        part: What they show.
        planes: The drawn samples and channels of it.
        colormap: Name of the palette.
        scale: How the planes were scaled.
    """
    samples, drawn, height, width = planes.pixels.shape
    per_row, padding = arrangement(planes)
    header = {
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
    }
    if part.slices is not None:
        header["view"] = replace(part, planes=part.slices.planes).view  # without the slice
        header["slices"] = list(part.slices.depths)
        header["depth"] = part.slices.drawn
    if planes.layout == "rows":
        header["layout"] = "rows"
    if not part.is_counted:
        header["counted"] = False
    return header


def of_kernels(
    tagged: TaggedPictures, kernels: Kernels, most: int | None, peak: float
) -> dict[str, Any]:
    """What a record says of a picture of kernels (see ``formats.tab_records``).

    Args:
        tagged: The picture.
        kernels: The kernels.
        most: Maximum number of outputs and inputs that are drawn; None draws all.
        peak: Largest drawn magnitude. It is stored with the nine digits that identify a float32:
            as a float64 it would print up to twice as many.
    """
    picture = tagged.samples[0]
    shape = kernels.layer_call.kernel_shape
    header: dict[str, Any] = {
        "role": tagged.kind,
        "tag": tagged.tag,
        "palette": "rgb" if picture.palette is None else "signed",
        "padding": KERNEL_PADDING,
        "tile": list(picture.tile),
        "peak": float(f"{peak:.9g}"),
    }
    if shape is not None:
        drawn = kernels.cut(most).weight.shape  # [out, in, ...]
        outputs, inputs = shape[:2]
        if isinstance(shape, TransposedShape):
            inputs, outputs = shape[:2]
            header["transposed"] = True
        if len(shape) == 2:
            inputs = 1  # one row per output
        header["outputs"] = [drawn[0], outputs]
        header["inputs"] = [drawn[1], inputs]
        if kernels.groups not in (None, 1):
            header["groups"] = kernels.groups
    if tagged.layout == "rows":
        header["layout"] = "rows"
    return header


def _dead_after(follower: LayerMeasurement, maps: LayerMeasurement | None) -> dict[str, Floats]:
    """``activation.dead`` for the layer's drawn channels; empty if no channel is dead."""
    statistics = follower.statistics
    if maps is None or maps.planes is None or statistics is None or statistics.dead is None:
        return {}
    dead = statistics.dead[: maps.planes.pixels.shape[1]]
    if not dead.any():
        return {}
    return {"activation.dead": dead.astype(np.float32)}


def _arrays(kind: TensorKind, planes: Planes, statistics: Statistics | None) -> dict[str, Floats]:
    """The arrays of one tensor (see ``formats.tab_records``), without those that are all 0."""
    drawn = planes.pixels.shape[1]
    arrays: dict[str, Floats] = {f"{kind}.lo": planes.lo, f"{kind}.hi": planes.hi}
    if planes.flat.any():
        arrays[f"{kind}.flat"] = planes.flat.astype(np.float32)
    if statistics is None:
        return arrays
    for name in _STATISTICS:
        values = getattr(statistics, name)
        if values is not None and (values.dtype.kind == "f" or values.any()):
            arrays[f"{kind}.{name}"] = values[:drawn]
    return arrays
