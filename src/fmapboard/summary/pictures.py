"""The pictures of a step, a file of its own for how each is described in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fmapboard.formats import tags
from fmapboard.formats.training_facts import plain
from fmapboard.records import (
    HardImage,
    InputImage,
    Kernels,
    LayerMeasurement,
    Normalization,
    Picture,
    Planes,
    Scale,
    TaggedPictures,
)
from fmapboard.render.grid import arrangement, draw_input_image, draw_kernels, draw_maps
from fmapboard.render.heat import draw_hard_images
from fmapboard.render.palettes import LEGEND, Palette
from fmapboard.render.quantize import used_scale
from fmapboard.summary.tab_records import of_kernels, of_maps

_SCALE_TEXT: dict[Scale, str] = {
    "channel": "each channel scaled between its own extremes",
    "layer": "one scale for all channels of the layer",
    "locked": "scale locked to the first logged step",
}


class LayerPictures(NamedTuple):
    """Pictures of a layer's maps or kernels.

    Attributes:
        tagged: The pictures.
        header: What the tab's record says of them.
        slices: Of maps: further depth slices, which only that record has.
    """

    tagged: TaggedPictures
    header: dict[str, Any]
    slices: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Draws and describes the pictures of one run.

    Attributes:
        palette: Colours of maps.
        scale: How the planes were scaled.
        prefix: Prefix of every tag.
        max_kernels: Maximum number of outputs and inputs of a convolution that are drawn.
        class_names: Of the classes, for the pictures of images with a high loss.
        normalization: Mean and standard deviation per channel of the input, if known.
    """

    palette: Palette
    scale: Scale
    prefix: str
    max_kernels: int | None
    class_names: tuple[str, ...]
    normalization: Normalization | None

    def of_maps(self, measured: LayerMeasurement, planes: Planes) -> LayerPictures:
        """Draw the maps of a layer call, a picture per sample."""
        call = measured.layer_call
        dead = None if measured.statistics is None else measured.statistics.dead
        samples = [
            draw_maps(planes, sample, self.palette, dead) for sample in range(len(planes.pixels))
        ]
        tagged = TaggedPictures(
            tag=self.prefix + tags.image(measured.kind, call.group, call.label),
            kind=measured.kind,
            samples=tuple(samples),
            layer_call=call,
            description=self._describe(measured, planes),
            layout=planes.layout,
        )
        header = of_maps(tagged, measured, planes, self.palette.name, self.scale)
        slices: tuple[Picture, ...] = ()
        if measured.slices is not None:
            others = measured.slices.planes
            slices = tuple(
                draw_maps(others, place, self.palette, dead) for place in range(len(others.pixels))
            )
        return LayerPictures(tagged, header, slices)

    def _describe(self, measured: LayerMeasurement, planes: Planes) -> str:
        call = measured.layer_call
        _, drawn, height, width = planes.pixels.shape
        kind = measured.kind.replace("_", " ")
        maps = (
            f"{kind} of `{plain(call.label)}` ({call.type}), shape {list(planes.shape)}, "
            f"channels 0…{drawn - 1}"
        )
        is_sequence = planes.layout == "rows"
        if not is_sequence:
            per_row, _ = arrangement(planes)
            maps += f", {per_row} per row"
        parts = [maps, _SCALE_TEXT[used_scale(planes, self.scale)]]
        if drawn < planes.channels:
            parts.append(f"{planes.channels - drawn} of {planes.channels} channels not drawn")
        if planes.block > 1 and is_sequence:
            parts.append(f"downscaled: each pixel is the mean of {planes.block} positions")
        elif planes.block > 1:
            parts.append(
                f"downscaled: each pixel is the mean of {planes.block}×{planes.block} values, "
                f"tiles of {height}×{width} px"
            )
        if measured.view:
            parts.append(measured.view)
        return "; ".join([*parts, LEGEND])

    def of_kernels(self, kernels: Kernels) -> LayerPictures:
        """Draw the weight of a convolution."""
        picture, peak = draw_kernels(kernels, self.max_kernels)
        call = kernels.layer_call
        tagged = TaggedPictures(
            tag=self.prefix + tags.image("kernels", call.group, call.layer),
            kind="kernels",
            samples=(picture,),
            layer_call=call,
            description=self._describe_kernels(kernels, is_rgb=picture.palette is None),
            layout=kernels.layout,
        )
        return LayerPictures(tagged, of_kernels(tagged, kernels, self.max_kernels, peak))

    def _describe_kernels(self, kernels: Kernels, *, is_rgb: bool) -> str:
        call = kernels.layer_call
        shape: tuple[int, ...] = call.kernel_shape or (0,)
        is_matrix = len(shape) == 2
        how = "a row per input, a column per output"
        if is_rgb:
            how = "RGB, grey is 0"
        elif is_matrix:
            how = "a row per entry of the weight's first axis"
        elif kernels.layout == "rows":
            how = "a row per output, a column per input"
        parts = [f"kernels of `{plain(call.layer)}` ({call.type}): {how}; one scale for the layer"]
        most = self.max_kernels
        cut_axes = 1 if kernels.is_of_colours or is_matrix else 2
        if most is not None and max(shape[:cut_axes]) > most:
            which = "outputs" if kernels.is_of_colours else "outputs and inputs"
            parts.append(f"at most {most} {which} of {call.group}")
        if is_matrix and kernels.weight.shape[-1] < shape[1]:
            parts.append(f"the first {kernels.weight.shape[-1]} of {shape[1]} weights of each")
        if kernels.view:
            parts.append(kernels.view)
        return "; ".join(parts)

    def of_input(self, image: InputImage) -> TaggedPictures:
        """Draw an input image of the network."""
        picture, how = draw_input_image(image)
        description = f"the network's input; {how}"
        if image.block > 1:
            description += f"; each pixel is the mean of {image.block}×{image.block} values"
        tag = self.prefix + tags.network_input(image.sample)
        return TaggedPictures(tag, "network_input", (picture,), None, description)

    def of_hard_images(self, images: Sequence[HardImage]) -> TaggedPictures:
        """Draw the images of a batch with the highest loss, at least one."""
        normalization = self.normalization
        if normalization is not None and len(normalization[0]) != len(images[0].values):
            normalization = None  # of images with another number of channels
        picture = draw_hard_images(images, normalization, self.class_names)
        samples = ", ".join(str(image.sample) for image in images)
        text = f"images of the batch with the highest loss: samples {samples} of this step"
        tag = self.prefix + tags.HIGHEST_LOSS
        return TaggedPictures(tag, "network_input", (picture,), None, text)
