"""The tokens of a layer as colours, at all steps in one response."""

from __future__ import annotations

from dataclasses import dataclass

from fmapboard.formats import tags
from fmapboard.plugin.answers import Binary, Missing
from fmapboard.plugin.layer_series import Timeline, timeline
from fmapboard.plugin.picture_values import is_png
from fmapboard.plugin.routes.maps import FIRST_PICTURE
from fmapboard.plugin.tag_names import layer_of
from fmapboard.runs.provider import IMAGES, Provider


@dataclass(frozen=True, slots=True)
class Tokens(Binary):
    """``data/tokens``: the pictures of a layer's tokens in the colours of three components.

    Attributes:
        steps: those that are kept, ascending; empty if the layer has no such pictures.
        wall_times: their times, s.
        pictures: a PNG per step, with one pixel per token.
    """

    steps: list[int]
    wall_times: list[float]
    pictures: list[bytes]

    @property
    def as_of(self) -> float | None:
        """The time of the last step, s."""
        return self.wall_times[-1] if self.wall_times else None


def tokens(provider: Provider, run: str, key: str) -> Tokens:
    """The tokens of a layer as colours.

    Raises:
        Missing: ``key`` is no layer's.
    """
    layer = layer_of(key)
    if layer is None:
        raise Missing(f"no layer {key!r} in run {run!r}")
    group = f"{layer.prefix}{tags.TOKENS_AS_COLOURS}_"
    own = []
    for tag in provider.tags_of(IMAGES, run):
        if tag.startswith(group) and tag.endswith(f"/{layer.label}"):
            own.append(tag)
    if not own:
        return Tokens([], [], [])
    found = provider.points(IMAGES, run, own)
    points = [point for tag in own for point in found.get(tag, ())]
    with_picture = [point for point in points if len(point.blobs) > FIRST_PICTURE]
    blobs = provider.blobs([(point, FIRST_PICTURE) for point in with_picture], keep=False)
    kept = []
    pictures = []
    for point, png in zip(with_picture, blobs, strict=True):
        if png is not None and is_png(png):
            kept.append(point)
            pictures.append(png)
    shown: Timeline = timeline(kept)
    return Tokens(shown.steps, shown.wall_times, pictures)
