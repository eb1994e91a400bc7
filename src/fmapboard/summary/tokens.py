"""Tokens as colours, and their norms as scalars: a file of its own for networks with tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import plain
from fmapboard.records import (
    COLOURS,
    Bytes8,
    Floats,
    LayerMeasurement,
    Picture,
    PixelMark,
    StepData,
    TaggedPictures,
)
from fmapboard.render.palettes import MARK_COLOURS

_MARGIN = 0.5
"""Room in the range at both ends, as a share of a component's range at the first step."""
_LEAST_VARIANCE = 1e-9
"""Components with less of the largest one's variance are rounding errors, and not shown."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Three principal components of a layer's tokens at one step, and the range that is drawn.

    Tokens of later steps are projected on the same axes after their own mean was subtracted, and
    divided by how much further they are spread: what all tokens of an image have in common, and
    their growth in training, would otherwise soon be out of the range.

    Attributes:
        step: The step.
        axes: f64 [3, C], by descending variance; in each the entry of largest magnitude is
            positive. Zero where there is no further component.
        variances: f64 [3], shares of the variance of all tokens.
        low: f64 [3], drawn as 0.
        high: f64 [3], drawn as 255.
        spread: Root mean square distance of the tokens from their mean.
    """

    step: int
    axes: Floats
    variances: Floats
    low: Floats
    high: Floats
    spread: float

    @classmethod
    def of(cls, step: int, tokens: Floats) -> Projection | None:
        """That of finite tokens [h, w, C]; None if they are all alike."""
        rows = tokens.reshape(-1, tokens.shape[-1]).astype(np.float64)  # [T, C]
        rows -= rows.mean(0)
        total = float(np.square(rows).sum())
        if not total > 0:
            return None
        axes, variances = _principal_axes(rows)
        values = rows @ axes.T  # [T, 3]
        low = values.min(0)
        high = values.max(0)
        margin = _MARGIN * (high - low)
        spread = math.sqrt(total / len(rows))
        return cls(step, axes, variances / total, low - margin, high + margin, spread)

    def colours(self, tokens: Floats) -> Bytes8:
        """Tokens [h, w, C] in red, green and blue, u8 [h, w, 3].

        Values beyond the range are drawn as its ends; tokens with a non-finite feature in magenta.
        """
        is_finite = np.asarray(np.isfinite(tokens).all(-1))  # [h, w]
        known = np.where(is_finite[..., None], tokens, 0.0).astype(np.float64)
        count = max(int(is_finite.sum()), 1)
        known -= known.sum((0, 1)) / count
        known[~is_finite] = 0.0
        spread = math.sqrt(float(np.square(known).sum()) / count)
        growth = spread / self.spread if spread > 0 else 1.0
        values = known @ self.axes.T / growth  # [h, w, 3]
        span = self.high - self.low
        is_shown = span > 0
        scaled = np.where(is_shown, (values - self.low) / np.where(is_shown, span, 1.0), 0.5)
        pixels = np.round(np.clip(scaled, 0, 1) * 255).astype(np.uint8)
        pixels[~is_finite] = MARK_COLOURS[PixelMark.NAN]
        return pixels


def _principal_axes(rows: Floats) -> tuple[Floats, Floats]:
    """The three principal axes of centred rows [T, C], f64 [3, C], and their sums of squares [3].

    The entry of largest magnitude of each is positive. Axes without variance are zero.
    """
    tokens, features = rows.shape
    is_wide = tokens < features  # then the products of tokens are the smaller matrix
    products = rows @ rows.T if is_wide else rows.T @ rows
    squares, vectors = np.linalg.eigh(products)  # ascending
    axes = np.zeros((COLOURS, features))
    variances = np.zeros(COLOURS)
    for place in range(min(COLOURS, len(squares))):
        square = squares[-1 - place]
        if square <= _LEAST_VARIANCE * squares[-1]:
            break
        axis = vectors[:, -1 - place]
        if is_wide:
            axis = rows.T @ axis / math.sqrt(square)
        largest = axis[np.abs(axis).argmax()]
        axes[place] = axis * np.sign(largest)
        variances[place] = square
    return axes, variances


Projections = Mapping[str, Projection]
"""By label of a layer call."""


def token_pictures(
    before: Projections, data: StepData, prefix: str
) -> tuple[Projections, list[TaggedPictures]]:
    """Draw the tokens of each layer whose tokens lie on a grid, in colours that mean the same.

    Args:
        before: The projections of earlier steps, which are kept.
        data: The step.
        prefix: Prefix of every tag.

    Returns:
        The projections with those of new layers, and the pictures.
    """
    projections = dict(before)
    pictures = []
    for part in data.measured:
        tokens = part.tokens
        if tokens is None:
            continue
        label = part.layer_call.label
        projection = projections.get(label)
        if projection is None or projection.axes.shape[1] != tokens.shape[-1]:
            projection = None
            if np.isfinite(tokens).all():
                projection = Projection.of(data.step, tokens)
            if projection is None:
                continue
            projections[label] = projection
        pictures.append(_picture(part, projection, tokens, prefix))
    return projections, pictures


def _picture(
    part: LayerMeasurement, projection: Projection, tokens: Floats, prefix: str
) -> TaggedPictures:
    call = part.layer_call
    pixels = projection.colours(tokens)
    height, width, _ = pixels.shape
    shares = ", ".join(f"{share:.0%}" for share in projection.variances)
    return TaggedPictures(
        tag=prefix + tags.image(tags.TOKENS_AS_COLOURS, call.group, call.label),
        kind="tokens_as_colours",
        samples=(Picture(pixels, tile=(height, width)),),
        description=(
            f"tokens of `{plain(call.label)}` ({call.type}), {height}×{width}; red, green and blue "
            "mean the same in all steps: the principal components of the tokens at step "
            f"{projection.step} ({shares} of the variance), from the mean of the image, relative "
            "to how far its tokens are spread; magenta = not finite"
        ),
    )


def token_scalars(measured: Iterable[LayerMeasurement]) -> dict[str, float]:
    """Tag -> largest and median norm of a layer's tokens, and the share of a branch.

    A branch is a layer inside another one, such as attention inside its block. Its share is the
    norm of all that it returns, relative to that of the layer around it. Numbers that are not
    finite are left out.
    """
    scalars: dict[str, float] = {}
    totals: dict[str, float] = {}
    for part in measured:
        if part.token_norms is None:
            continue
        label = part.layer_call.label
        largest, median, totals[label] = part.token_norms.tolist()
        own = part.layer_call.part
        if own is not None and own.unit == "branch":
            continue
        scalars[tags.of(tags.TOKEN_NORM_MAX, label)] = largest
        scalars[tags.of(tags.TOKEN_NORM_MEDIAN, label)] = median
    for label, total in totals.items():
        around = [outer for outer in totals if label.startswith(f"{outer}.")]
        stream = totals[max(around, key=len)] if around else 0.0
        if stream > 0:
            scalars[tags.of(tags.BRANCH_SHARE, label)] = total / stream
    return {tag: value for tag, value in scalars.items() if math.isfinite(value)}
