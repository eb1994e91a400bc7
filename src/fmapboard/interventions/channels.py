"""What becomes of chosen channels of a layer: ``silence``, ``scale``, ``replace`` and ``add``."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from fmapboard.errors import ConfigurationError
from fmapboard.model.given import described

Channels: TypeAlias = "int | Iterable[int] | slice | None"
"""Which channels, counted from 0: one, several, a slice, or None for all."""

Value: TypeAlias = "float | Tensor"
"""A number; a tensor with one value per chosen channel; or a tensor that broadcasts to the chosen
part of the layer's tensor, in the layer's own order of axes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChannelChange:
    """One operation on chosen channels of a layer's tensor.

    Attributes:
        operation: What becomes of the channels.
        channels: Which; None for all.
        value: The factor, the replacement or what is added.
        channel_axis: The axis of the channels; None infers it from the layer and the shape.
    """

    operation: Literal["silence", "scale", "replace", "add"]
    channels: tuple[int, ...] | slice | None = None
    value: Value = 0.0
    channel_axis: int | None = None

    def __repr__(self) -> str:
        given = [] if self.operation == "silence" else [_short(self.value)]
        if self.channels is not None:
            chosen = self.channels
            given.append(str(list(chosen)) if isinstance(chosen, tuple) else repr(chosen))
        if self.channel_axis is not None:
            given.append(f"channel_axis={self.channel_axis}")
        return f"{self.operation}({', '.join(given)})"

    def apply(self, tensor: Tensor, axis: int) -> Tensor:
        """A tensor of the same shape and dtype in which the chosen channels are changed.

        Gradients flow through it: those of silenced and replaced channels are 0.

        Args:
            tensor: Any shape; it is not modified.
            axis: The axis of the channels, unless ``channel_axis`` is set.

        Raises:
            ConfigurationError: A channel or the axis is out of range, or the value does not fit.
        """
        if self.channel_axis is not None:
            axis = self.channel_axis
            if not -tensor.dim() <= axis < tensor.dim():
                raise ConfigurationError(
                    f"channel_axis={axis} is out of range for shape {list(tensor.shape)}"
                )
            axis %= tensor.dim()
        if self.channels is None:
            return self._changed(tensor, axis)
        chosen = self.within(tensor.shape[axis], f"shape {list(tensor.shape)}, axis {axis}")
        if not chosen:
            return tensor
        index = torch.tensor(chosen, dtype=torch.long, device=tensor.device)
        part = self._changed(tensor.index_select(axis, index), axis)
        return tensor.clone().index_copy_(axis, index, part)  # index_copy loses channels_last

    def within(self, count: int, what: str) -> list[int]:
        """The chosen channels of a tensor with ``count`` channels.

        Raises:
            ConfigurationError: One is out of range; the message ends with ``what``.
        """
        if self.channels is None or isinstance(self.channels, slice):
            return list(range(count)[self.channels or slice(None)])
        beyond = [channel for channel in self.channels if channel >= count]
        if beyond:
            raise ConfigurationError(
                f"no channel {', '.join(map(str, beyond))}: there are {count} channels, "
                f"0…{count - 1} ({what})"
            )
        return list(self.channels)

    def _changed(self, part: Tensor, axis: int) -> Tensor:
        value = self.value if isinstance(self.value, float) else self._fitted(part, axis)
        if self.operation == "scale":
            return (part * value).to(part.dtype)
        if self.operation == "add":
            return (part + value).to(part.dtype)
        # `part` stays in the graph, so the parameters before it get gradients of 0 instead of none.
        everywhere = torch.ones((), dtype=torch.bool, device=part.device)
        empty = part.clone().masked_fill_(everywhere, 0)  # masked_fill loses channels_last
        return empty if self.operation == "silence" else (empty + value).to(part.dtype)

    def _fitted(self, part: Tensor, axis: int) -> Tensor:
        """The value as a tensor that broadcasts to ``part``."""
        assert isinstance(self.value, Tensor)  # checked by the caller
        value = self.value.to(part.device, part.dtype)
        if value.dim() == 1 and len(value) == part.shape[axis]:
            return value.reshape([-1 if one == axis else 1 for one in range(part.dim())])
        if value.dim() != 1:
            with contextlib.suppress(RuntimeError):  # the error below says what would fit
                return value.expand_as(part)
        raise ConfigurationError(
            f"a value of shape {list(value.shape)} does not fit the chosen channels: expected a "
            f"number, one value per channel [{part.shape[axis]}], or a tensor that broadcasts to "
            f"{list(part.shape)}"
        )


def silence(channels: Channels = None, *, channel_axis: int | None = None) -> ChannelChange:
    """Set channels to 0, NaN and infinity included.

    >>> silence([3, 17])
    silence([3, 17])

    Args:
        channels: Which, counted from 0: a number, several, a slice; None for all.
        channel_axis: The axis of the channels in the layer's tensor; None infers it from the layer
            and the shape, as for pictures: [N, C, H, W], tokens [N, L, C], [N, H, W, C].

    Raises:
        ConfigurationError: ``channels`` is invalid.
    """
    return ChannelChange("silence", _channels(channels), channel_axis=_axis(channel_axis))


def scale(
    factor: Value, channels: Channels = None, *, channel_axis: int | None = None
) -> ChannelChange:
    """Multiply channels by a factor.

    >>> scale(0.5, 3)
    scale(0.5, [3])

    Args:
        factor: As in ``replace``.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("scale", factor, channels, channel_axis)


def replace(
    value: Value, channels: Channels = None, *, channel_axis: int | None = None
) -> ChannelChange:
    """Replace channels by a value.

    >>> replace(1.5, [0, 2])
    replace(1.5, [0, 2])

    Args:
        value: A number, a tensor with one value per chosen channel, or a tensor that broadcasts to
            the chosen part of the layer's tensor, such as another image's maps.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("replace", value, channels, channel_axis)


def add(
    value: Value, channels: Channels = None, *, channel_axis: int | None = None
) -> ChannelChange:
    """Add a value to channels.

    >>> add(torch.zeros(8))
    add(tensor [8])

    Args:
        value: As in ``replace``.
        channels: As in ``silence``.
        channel_axis: As in ``silence``.

    Raises:
        ConfigurationError: An argument is invalid.
    """
    return _with_value("add", value, channels, channel_axis)


def _with_value(
    operation: Literal["scale", "replace", "add"], value: Any, channels: Any, axis: Any
) -> ChannelChange:
    if not isinstance(value, Tensor):
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise ConfigurationError(
                f"{operation}({described(value)}): expected a number or a tensor"
            )
        value = float(value)
    return ChannelChange(operation, _channels(channels), value, _axis(axis))


def _channels(given: Any) -> tuple[int, ...] | slice | None:
    if given is None or isinstance(given, slice):
        return given
    if isinstance(given, Tensor) and given.dtype != torch.bool:
        given = given.tolist()
    try:
        chosen = tuple(map(operator.index, given if isinstance(given, Iterable) else [given]))
    except TypeError:
        chosen = (-1,)
    if isinstance(given, (bool, str, Tensor)) or any(channel < 0 for channel in chosen):
        raise ConfigurationError(
            f"channels={given!r}: expected numbers of channels, counted from 0, such as [3, 17]"
        )
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError(f"channels={given!r}: a channel is listed twice")
    return chosen


def _axis(given: Any) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise ConfigurationError(f"channel_axis={given!r}: expected the number of an axis, or None")
    return given


def _short(value: Value) -> str:
    return f"tensor {list(value.shape)}" if isinstance(value, Tensor) else f"{value:g}"
