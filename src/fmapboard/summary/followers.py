"""Which activation follows a layer, so that its dead channels are those of the layer."""

from __future__ import annotations

from collections.abc import Iterable

from fmapboard.records import LayerMeasurement


def followers(measured: Iterable[LayerMeasurement]) -> dict[str, LayerMeasurement]:
    """Label of a layer -> the activation with an off value that directly follows it in call order.

    The activation must have as many channels as the layer, so that they can be matched by index. An
    activation that is drawn itself is not a follower.
    """
    found: dict[str, LayerMeasurement] = {}
    before: LayerMeasurement | None = None
    for part in measured:
        if part.kind != "feature_maps" or part.statistics is None:
            continue
        is_activation, is_drawn = part.statistics.dead is not None, part.layer_call.pictures
        if is_activation and not is_drawn and _channels(before) == _channels(part):
            assert before is not None  # else it has no channels
            found[before.layer_call.label] = part
        before = part if is_drawn or not is_activation else None
    return found


def _channels(part: LayerMeasurement | None) -> int | None:
    return None if part is None or part.statistics is None else part.statistics.minimum.size
