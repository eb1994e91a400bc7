"""The measured layers of a step, as the run's overview lists them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard import tags
from fmapboard.overview_format import Flags, LayerFacts, pack_layers
from fmapboard.records import Floats, LayerMeasurement
from fmapboard.summary.layer_numbers import Segments


class OverviewLayers(NamedTuple):
    """The measured layers of a step, which seldom differ from those of the step before.

    Attributes:
        key: what all other fields follow from.
        facts: see ``LayerFacts``.
        packed: blob 2.
        channels: channels of each layer.
        sources: index of each layer whose statistics have dead channels: the activations.
        dead_channels: channels of these.
        dead_of: index in ``sources`` of each layer's own activation or the one that follows, or -1.
        labels: label of each layer.
        has_moments: True for layers whose means are known.
    """

    key: tuple[object, ...]
    facts: tuple[LayerFacts, ...]
    packed: bytes
    channels: Segments
    sources: tuple[int, ...]
    dead_channels: Segments
    dead_of: npt.NDArray[np.intp]
    labels: list[str]
    has_moments: Flags


def layers_of(
    last: OverviewLayers | None,
    roles: Mapping[str, tuple[str, ...]],
    measured: Sequence[LayerMeasurement],
    followers: Mapping[str, LayerMeasurement],
) -> OverviewLayers:
    """The layers of a step; those of the step before if they are the same.

    Args:
        last: Those of the step before; None at the first.
        roles: Label -> kinds of pictures drawn so far.
        measured: The layers' feature maps.
        followers: Label of a layer -> the activation that follows it.
    """
    calls = [part.layer_call for part in measured]
    sizes = [part.statistics.minimum.size for part in measured if part.statistics is not None]
    pixels = [None if part.planes is None else part.planes.pixels.shape[:2] for part in measured]
    key = (calls, sizes, pixels, roles)
    if last is not None and last.key == key:
        return last
    facts = tuple(_facts(part, roles, followers.get(part.layer_call.label)) for part in measured)
    sources = tuple(
        index
        for index, part in enumerate(measured)
        if part.statistics is not None and part.statistics.dead is not None
    )
    at = {facts[index].label: place for place, index in enumerate(sources)}
    return OverviewLayers(
        key=key,
        facts=facts,
        packed=pack_layers(facts),
        channels=Segments.of(sizes),
        sources=sources,
        dead_channels=Segments.of([sizes[index] for index in sources]),
        dead_of=np.array([at.get(each.activation or each.label, -1) for each in facts], np.intp),
        labels=[each.label for each in facts],
        has_moments=np.array([call.pictures for call in calls], bool),
    )


def _facts(
    part: LayerMeasurement,
    roles: Mapping[str, tuple[str, ...]],
    follower: LayerMeasurement | None,
) -> LayerFacts:
    """What is known about a layer with statistics; ``follower`` is the activation behind it."""
    call, statistics = part.layer_call, part.statistics
    assert statistics is not None
    channels = statistics.minimum.size
    drawn = None if part.planes is None else part.planes.pixels.shape
    return LayerFacts(
        label=call.label,
        layer=call.layer,
        type=call.type,
        kernel_shape=None if call.kernel_shape is None else tuple(call.kernel_shape),
        call=call.call,
        position=call.position,
        channels=channels,
        values=math.prod(part.shape) // channels,
        drawn=drawn[1] if drawn else 0,
        samples=drawn[0] if drawn else 1,
        roles=roles.get(call.label, ()),
        activation=None if follower is None else follower.layer_call.label,
        transposed_stride=call.transposed_stride,
    )


def channel_fractions(layers: OverviewLayers, numbers: Mapping[str, Floats]) -> dict[str, float]:
    """Tag -> fraction of a layer's channels; of dead ones only for activations."""
    columns = (numbers[name].tolist() for name in ("constant", "nonfinite"))
    dead = dict.fromkeys(layers.sources, 0.0)
    if dead:
        dead = dict(zip(dead, numbers["dead"][list(dead)].tolist(), strict=True))
    fractions: dict[str, float] = {}
    for index, (label, constant, nonfinite) in enumerate(zip(layers.labels, *columns, strict=True)):
        fractions[tags.of(tags.CONSTANT_CHANNELS, label)] = constant
        fractions[tags.of(tags.NONFINITE, label)] = nonfinite
        if index in dead:
            fractions[tags.of(tags.DEAD_CHANNELS, label)] = dead[index]
    return fractions


def has_numbers(part: LayerMeasurement) -> bool:
    """True for feature maps with statistics."""
    statistics = part.statistics
    return part.kind == "feature_maps" and statistics is not None and statistics.minimum.size > 0
