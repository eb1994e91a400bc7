"""The hooks of an intervention: each changes one tensor of a layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from torch import Tensor, nn

from fmapboard.capture.layer_hook import InertInCopies
from fmapboard.capture.taps import Tap
from fmapboard.errors import ConfigurationError
from fmapboard.interventions.channels import ChannelChange
from fmapboard.measure.layout import axes_of
from fmapboard.model.tensors import first_tensor, replace_tensor, tensors

Change = ChannelChange | Callable[[Tensor], Tensor]
"""Says what becomes of a tensor; a function returns a tensor of the same shape."""

Where = Literal["outputs", "inputs", "gradients"]


class ChangeHook(InertInCopies):
    """A forward hook that changes a layer's output or, as a pre-hook, its input.

    Errors are raised in the user's forward pass or, for gradients, in the backward pass.

    Args:
        name: The layer's name, for messages.
        where: What is changed.
        change: What becomes of it.
        channels_last_sequences: As in ``layout.axes_of``.

    Attributes:
        was_called: True once the layer has run.
    """

    __slots__ = ("_change", "_channels_last", "_name", "_where", "was_called")

    def __init__(
        self, name: str, where: Where, change: Change, *, channels_last_sequences: bool
    ) -> None:
        self._name, self._where, self._change = name, where, change
        self._channels_last, self.was_called = channels_last_sequences, False

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> Any:
        """What takes the place of the output, or of ``(args, kwargs)``."""
        self.was_called = True
        value = (args, kwargs) if self._where == "inputs" else output
        return self._with_first(value, partial(self._changed, module))

    def _with_first(self, value: Any, change: Callable[[Tensor], Tensor]) -> Any:
        """The value with a change to its first floating-point tensor, or its first tensor."""
        chosen = first_tensor(value)
        if chosen is None:
            chosen = next(iter(tensors(value)), None)
        if chosen is None:
            verb = "receives" if self._where == "inputs" else "returned"
            raise ConfigurationError(f"{self._name!r} {verb} no tensor that could be changed")
        changed = change(chosen)
        return value if changed is chosen else replace_tensor(value, chosen, changed)

    def _changed(self, module: nn.Module, tensor: Tensor) -> Tensor:
        change = self._change
        if not isinstance(change, ChannelChange):
            return self._checked(change(tensor), tensor)
        axes = axes_of(module, tensor.shape, channels_last_sequences=self._channels_last)
        try:
            return change.apply(tensor, axes.channels)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"{change!r} of {self._where} of {self._name!r}: {error}"
            ) from None

    def _checked(self, found: Any, tensor: Tensor) -> Tensor:
        if isinstance(found, Tensor) and found.shape == tensor.shape:
            return found
        what = f"shape {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise ConfigurationError(
            f"the function for {self._where} of {self._name!r} returned {what}: expected a tensor "
            f"of shape {list(tensor.shape)}, as it received"
        )


class GradientHook(ChangeHook):
    """A forward hook that changes the gradient of a layer's output before it reaches the layer."""

    __slots__ = ()
    follows_recording = True

    def __call__(self, module: nn.Module, args: Any, kwargs: Any, output: Any = None) -> Any:
        """A copy of the output that changes its gradient in the backward pass."""
        self.was_called = True
        return self._with_first(output, partial(self._with_gradient, module))

    def _with_gradient(self, module: nn.Module, tensor: Tensor) -> Tensor:
        if not tensor.requires_grad:
            return tensor
        is_tapped = isinstance(module, Tap) and not tensor.is_leaf  # what tap returns may be unused
        # A layer may have returned its input, which others use too.
        own = tensor if is_tapped else tensor.clone()
        own.register_hook(partial(self._changed, module))  # type: ignore[no-untyped-call]  # torch
        return own
