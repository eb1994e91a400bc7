"""The channels that the values of ``--silence`` name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torch import nn

from fmapboard.errors import ConfigurationError
from fmapboard.interventions.channels import ChannelChange, silence
from fmapboard.interventions.context import Intervention, intervene


def silenced(model: nn.Module, given: Sequence[str]) -> Intervention:
    """A context manager that silences channels of a network.

    Args:
        model: Any module.
        given: The values of ``--silence``, ``LAYER:CHANNELS`` or ``LAYER`` each.

    Raises:
        ConfigurationError: A value is invalid, or there is no such layer or channel.
    """
    changes: dict[str | re.Pattern[str] | type[nn.Module], list[ChannelChange]] = {}
    for value in given:
        layer, change = parsed(value)
        changes.setdefault(layer, []).append(change)
    return intervene(model, changes)


def parsed(value: str) -> tuple[str, ChannelChange]:
    """The layer, or glob, and the channels of a value of ``--silence``.

    >>> parsed("layer1.0.conv1:3,17")
    ('layer1.0.conv1', silence([3, 17]))

    Raises:
        ConfigurationError: The value is invalid.
    """
    layer, colon, numbers = value.partition(":")
    channels = [int(n) for n in numbers.split(",") if n.strip().isdecimal()] if colon else None
    if not layer or (channels is not None and len(channels) < len(numbers.split(","))):
        raise ConfigurationError(
            f"--silence {value!r}: expected LAYER:CHANNELS, such as layer1.0.conv1:3,17, or LAYER"
        )
    return layer, silence(channels)
