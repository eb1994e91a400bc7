"""Values of feature maps as the event files store them, read without the tab."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image
from read_grid import read_maps
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from fmapboard.formats.tab_records import unpack
from fmapboard.render.palettes import palette


def stored_maps(run: Path, layer: str, sample: int = 0) -> dict[int, np.ndarray]:
    """By step: the drawn maps of a layer, f64 [C, h, w]; NaN where a value is not finite."""
    (events,) = run.glob("events*.fmapboard")
    read = EventAccumulator(str(events), size_guidance={"tensors": 0}).Reload()
    found = {}
    for event in read.Tensors(f"fmapboard/{layer}"):
        header, arrays = unpack(event.tensor_proto.string_val)
        picture = next(each for each in header["pictures"] if each["role"] == "feature_maps")
        drawn = next(each for each in read.Tensors(picture["tag"]) if each.step == event.step)
        # Blobs 0 and 1 of a stored image are its width and height.
        png = Image.open(io.BytesIO(drawn.tensor_proto.string_val[2 + sample]))
        lo, hi = (arrays[f"feature_maps.{end}"][sample] for end in ("lo", "hi"))
        if "layout" in picture:  # sequences, one row of grey pixels per channel
            grey = np.asarray(png, np.float64)  # [C, L]
            found[event.step] = (lo[:, None] + (hi - lo)[:, None] * grey / 255)[:, None]
            continue
        tile, colours = tuple(picture["tile"]), palette(picture["palette"])
        found[event.step], _ = read_maps(np.asarray(png.convert("RGB")), lo, hi, tile, colours)
    return found
