"""What is written for a search of patches, a file of its own: no step of a training has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import pack
from fmapboard.records import Crop, Floats, LayerPatches, LoggedStep, TabRecord, TaggedPictures
from fmapboard.render.patch_rows import CHANNELS, RowLayout, draw_patches, is_excited


def patches_step(
    layers: Iterable[LayerPatches], step: int, wall_time: float, *, one_per_image: bool
) -> LoggedStep:
    """The pictures and records of all layers.

    Args:
        layers: In call order.
        step: Number of the step: how far the network was trained.
        wall_time: Time in seconds since the epoch.
        one_per_image: A channel has at most one crop of an image.
    """
    found = [one for one in layers if one.crops]
    return LoggedStep(
        step,
        wall_time,
        pictures=tuple(_pictures(one, one_per_image=one_per_image) for one in found),
        records=tuple(_record(one, step, one_per_image=one_per_image) for one in found),
    )


def patches_tag(patches: LayerPatches) -> str:
    """The tag of a layer's pictures of patches."""
    return tags.image("patches", patches.layer_call.group, patches.layer_call.label)


def _pictures(patches: LayerPatches, *, one_per_image: bool) -> TaggedPictures:
    call = patches.layer_call
    drawn = draw_patches(patches)
    return TaggedPictures(
        patches_tag(patches), "patches", drawn, call, _description(patches, one_per_image)
    )


def _description(patches: LayerPatches, one_per_image: bool) -> str:
    height, width = patches.cell
    per_image = ", at most one per image" if one_per_image else ""
    lines = [
        f"The parts of {patches.images} images that excite each channel of "
        f"`{patches.layer_call.label}` most, best first{per_image}; below each, the value.",
        f"Each is the receptive field of one position, up to {height}×{width} px. Stripes: "
        "outside of the image. A square marks the position where the field is most of the image.",
    ]
    pale = sum(not is_excited(row) for row in patches.crops)
    if pale:
        lines.append(
            f"{pale} of {len(patches.crops)} channels have no value above 0 and are excited by "
            "none of these images: their numbers are pale."
        )
    if patches.lost_at:
        lines.append(f"The field counts as the whole image because of {patches.lost_at}.")
    if len(patches.crops) < patches.channels:
        lines.append(f"The first {len(patches.crops)} of {patches.channels} channels.")
    if len(patches.crops) > CHANNELS:
        lines.append(f"Each picture shows {CHANNELS} channels.")
    return "\n\n".join(lines)


def _record(patches: LayerPatches, step: int, *, one_per_image: bool) -> TabRecord:
    call = patches.layer_call
    layout = RowLayout.of(patches)
    crops = [crop for row in patches.crops for crop in row]
    names = {crop.image: crop.name for crop in crops}
    numbers = {image: number for number, image in enumerate(sorted(names))}
    header = {
        "layer": call.layer,
        "type": call.type,
        "call": call.call,
        "position": call.position,
        "step": step,
        "channels": patches.channels,
        "searched": len(patches.crops),
        "k": patches.k,
        "one_per_image": one_per_image,
        "images": patches.images,
        "names": [names[image] for image in sorted(names)],
        "lost_at": patches.lost_at,
        "picture": {
            "tag": patches_tag(patches),
            "rows": CHANNELS,
            "cell": list(layout.cell),
            "left": layout.left,
            "top": layout.top,
            "across": layout.across,
            "down": layout.down,
        },
    }
    arrays: dict[str, Floats] = {
        "value": _table(patches, 1, lambda crop: [crop.value]),
        "image": _table(patches, 1, lambda crop: [numbers[crop.image]]),
        "field": _table(patches, 4, lambda crop: crop.field),
        "size": _table(patches, 2, lambda crop: crop.size),
    }
    axes = max((len(crop.position) for crop in crops), default=0)
    if axes:
        arrays["place"] = _table(patches, axes, lambda crop: crop.position)
    if any(patches.nan):
        arrays["nan"] = np.array(patches.nan, np.float32)
    return TabRecord(f"{tags.PATCHES}{call.label}", pack(header, arrays))


def _table(patches: LayerPatches, width: int, of: Callable[[Crop], Sequence[float]]) -> Floats:
    """Numbers of each crop, f32 [searched, k, width] or for 1 [searched, k]; NaN for no crop."""
    found = np.full((len(patches.crops), patches.k, width), np.nan, np.float32)
    for row, crops in zip(found, patches.crops, strict=True):
        for cell, crop in zip(row, crops, strict=False):  # there may be fewer than k
            cell[:] = of(crop)
    return found[..., 0] if width == 1 else found
