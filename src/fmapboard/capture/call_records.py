"""``CallRecords``: what is known of a layer call, built once and used at every logged step."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from fmapboard.capture.hook_order import is_recorded_last
from fmapboard.capture.passes import Side
from fmapboard.capture.taps import Tap
from fmapboard.model.activations import floor_of
from fmapboard.model.kernel_shapes import TRANSPOSED, kernel_shape
from fmapboard.records import LayerCall


class CallRecords:
    """Builds the ``LayerCall`` of each call of a registry's layers.

    Args:
        layers: the watched layers by name.
        numbers_only: further layers by name, of which no pictures are drawn.
        effective: as in ``HookRegistry``.
    """

    def __init__(
        self,
        layers: Mapping[str, nn.Module],
        numbers_only: Mapping[str, nn.Module],
        *,
        effective: bool,
    ) -> None:
        self._layers, self._numbers_only = layers, numbers_only
        self._effective = effective
        self._known: dict[tuple[str, int, Side], LayerCall] = {}

    def of(self, name: str, call: int, position: int, side: Side, module: nn.Module) -> LayerCall:
        """The record of a call.

        Args:
            name: of the layer.
            call: 1 for the layer's first call in the pass.
            position: in the order of calls.
            side: which of the layer's tensors is recorded.
            module: the layer, or a replica of it.
        """
        known = self._known.get((name, call, side))
        own = self._layers.get(name, self._numbers_only.get(name, module))  # not a replica
        received = side == "output" and (self._effective or is_recorded_last(own))
        if known is None or (known.position, known.received) != (position, received):
            known = self._known[name, call, side] = LayerCall(
                layer=name,
                type=type(module).__name__.removeprefix("FSDP"),
                kernel_shape=kernel_shape(own),
                call=call,
                position=position,
                pictures=name in self._layers or isinstance(module, Tap),
                floor=floor_of(module) if side == "output" else None,
                transposed_stride=tuple(module.stride) if isinstance(module, TRANSPOSED) else None,
                received=received,
            )
        return known
