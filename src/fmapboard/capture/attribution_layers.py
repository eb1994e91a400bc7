"""Which layers are shown as attribution, and what earlier passes told about their outputs."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from fmapboard.measure.layout import Axes
from fmapboard.model.activations import activations
from fmapboard.model.attribution_roles import Role, roles
from fmapboard.model.layers import named_layers
from fmapboard.records import LayerCall

_MOST_SEEN = 4096
"""How many outputs are remembered; images of many sizes have many."""

Size = tuple[int, int]
Key = tuple[str, torch.Size, tuple[torch.Size, Axes] | None]
"""A layer call, the shape of its output, and shape and axes of the output before it."""


@dataclass(slots=True)
class Seen:
    """What is known of an output.

    Attributes:
        axes: its axes.
        is_read: True once its maps were read.
        size: height and width of its maps; None before, and for outputs that are no maps.
    """

    axes: Axes
    is_read: bool = False
    size: Size | None = None


class AttributionLayers:
    """Which layers of a model are shown as attribution.

    Args:
        chosen: the option ``attribution`` of ``watch``.
        samples: how many samples are drawn.

    Attributes:
        chosen: as passed.
        samples: as passed.
        roles: clean name -> role of the layers that may be shown; empty if ``chosen`` is False.
        selects: True if the last activation of each resolution is selected among them.
        overtaken: the calls and sizes of maps after which, in the last pass, another one came.
        seen: what is known of outputs that were seen before.
    """

    def __init__(self, chosen: bool | str, samples: int) -> None:
        self.chosen, self.samples = chosen, samples
        self.selects = not isinstance(chosen, str)
        self.roles: dict[str, Role] = {}
        self._measured: frozenset[str] = frozenset()
        self.overtaken: set[tuple[str, Size]] = set()
        self.seen: dict[Key, Seen] = {}

    def also(self, model: nn.Module) -> dict[str, nn.Module]:
        """The layers to hook besides those that are drawn, by name.

        Raises:
            LayerNotFound: the glob matches no layer.
        """
        measured = activations(model)
        self._measured = frozenset(measured)
        if self.chosen is False:
            return measured
        self.roles = roles(model, self.chosen)
        named = named_layers(model)
        return {**measured, **{name: named[name] for name in self.roles}}

    def measures(self, layer_call: LayerCall) -> bool:
        """True for a layer that would be hooked without attribution too."""
        return layer_call.pictures or layer_call.layer in self._measured

    def remember(self, key: Key, axes: Axes) -> Seen:
        """Note the axes of an output."""
        if len(self.seen) >= _MOST_SEEN:
            self.seen.clear()
        self.seen[key] = Seen(axes)
        return self.seen[key]
