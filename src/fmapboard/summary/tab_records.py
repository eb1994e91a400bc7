"""Build the records of the Feature maps tab, in the format of ``tab_format``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import (
    Floats,
    Kernels,
    LayerMeasurement,
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
from fmapboard.summary.change import Changes

_STATISTICS = (
    "minimum", "maximum", "mean", "std",
    "nan", "positive_infinity", "negative_infinity", "constant", "dead",
)  # fmt: skip


class TabRecords:
    """Builds the records of one run, step by step.

    Args:
        prefix: Prefix of every tag.
        colormap: Name of the palette.
        scale: How the planes were scaled.
    """

    def __init__(self, prefix: str, colormap: str, scale: Scale) -> None:
        self._prefix, self._colormap, self._scale = prefix, colormap, scale
        self._written: defaultdict[str, int] = defaultdict(int)
        self._last: list[str] = []

    def __call__(
        self,
        data: StepData,
        drawn: list[TaggedPictures],
        kernels: Mapping[str, Mapping[str, Any]],
        changes: Mapping[str, Changes],
        followers: Mapping[str, LayerMeasurement],
    ) -> Iterator[TabRecord]:
        """Build a record per drawn layer call and, at its first step, another one with its grids.

        Args:
            data: The measurements.
            drawn: The pictures of layers and kernels, without those of the network's input.
            kernels: Label of a layer -> ``kernel_facts`` of its drawn kernels.
            changes: Label of a layer -> its changes.
            followers: Label of a layer -> the activation that follows it.
        """
        self._last = []
        of_call: defaultdict[str, list[TaggedPictures]] = defaultdict(list)
        for tagged in drawn:
            assert tagged.layer_call is not None  # `drawn` holds no network input
            of_call[tagged.layer_call.label].append(tagged)
        measured = {(m.layer_call.label, m.kind): m for m in data.measured}
        for label, pictures in of_call.items():
            parts = [(tagged, measured.get((label, tagged.kind))) for tagged in pictures]
            arrays: dict[str, Floats] = {}
            for tagged, part in parts:
                if part is not None:
                    arrays.update(_arrays(tagged.kind, part))
            header = self._header(data, parts, kernels.get(label, {"peak": None}))
            changed = changes.get(label)
            if changed is not None and changed.since:
                header["change_since"] = changed.since
                arrays.update({f"{name}.change": a for name, a in changed.arrays.items()})
            follower = followers.get(label)
            if follower is not None:
                header["activation"] = {
                    "label": follower.layer_call.label,
                    "type": follower.layer_call.type,
                }
                arrays.update(_dead_after(follower, parts))
            yield TabRecord(f"{self._prefix}{tags.RECORD}{label}", pack(header, arrays))
            if self._written[label] == 1:
                grids = [png.encode(picture) for p in pictures for picture in p.samples]
                tag = f"{self._prefix}{tags.FIRST_RECORD}{label}"
                yield TabRecord(tag, pack(header, arrays, grids))

    def _header(
        self,
        data: StepData,
        parts: list[tuple[TaggedPictures, LayerMeasurement | None]],
        kernels: Mapping[str, Any],
    ) -> dict[str, Any]:
        layer_call = parts[0][0].layer_call
        assert layer_call is not None
        self._written[layer_call.label] += 1
        self._last.append(layer_call.label)
        return {
            "layer": layer_call.layer,
            "type": layer_call.type,
            "kernel_shape": list(layer_call.kernel_shape) if layer_call.kernel_shape else None,
            "call": layer_call.call,
            "position": layer_call.position,
            "step": data.step,
            "steps_written": self._written[layer_call.label],
            "training_thread_ms": round(data.training_thread_ms, 3),
            "pictures": [self._picture_header(tagged, part, kernels) for tagged, part in parts],
        }

    def _picture_header(
        self, tagged: TaggedPictures, part: LayerMeasurement | None, kernels: Mapping[str, Any]
    ) -> dict[str, Any]:
        header: dict[str, Any] = {"role": tagged.kind, "tag": tagged.tag}
        if part is None or part.planes is None:
            picture = tagged.samples[0]
            colours = "rgb" if picture.palette is None else "signed"
            header |= {"palette": colours, "padding": KERNEL_PADDING, "tile": list(picture.tile)}
            header |= kernels
            return header if tagged.layout == "tiles" else {**header, "layout": "rows"}
        planes = part.planes
        samples, drawn, height, width = planes.pixels.shape
        per_row, padding = arrangement(planes)
        return {
            **header,
            "shape": list(planes.shape),
            "channels": planes.channels,
            "drawn": drawn,
            "samples": samples,
            "tile": [height, width],
            "columns": per_row,
            "padding": padding,
            "block": planes.block,
            "view": part.view,
            "palette": self._colormap,
            "scale": used_scale(planes, self._scale),
            **({} if planes.layout == "tiles" else {"layout": "rows"}),
            **({} if _is_counted(part) else {"counted": False}),
        }

    def undo(self) -> None:
        """Discard the last step, which could not be stored."""
        for label in self._last:
            self._written[label] -= 1
        self._last = []


def kernel_facts(kernels: Kernels, most: int | None, peak: float) -> dict[str, Any]:
    """What the header of a picture of kernels says of them (see ``tab_format``).

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


def _dead_after(
    follower: LayerMeasurement, parts: list[tuple[TaggedPictures, LayerMeasurement | None]]
) -> dict[str, Floats]:
    """``activation.dead`` for the layer's drawn channels; empty if no channel is dead."""
    planes = next((p.planes for q, p in parts if p is not None and q.kind == "feature_maps"), None)
    statistics = follower.statistics
    if planes is None or statistics is None or statistics.dead is None:
        return {}
    dead = statistics.dead[: planes.pixels.shape[1]]
    return {"activation.dead": dead.astype(np.float32)} if dead.any() else {}


def _is_counted(part: LayerMeasurement) -> bool:
    return part.statistics is None or part.statistics.counted


def _arrays(kind: TensorKind, part: LayerMeasurement) -> dict[str, Floats]:
    """The arrays of one tensor (see ``tab_format``), without counts and flags that are all 0."""
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
