"""Evidence that backward passes run and no optimizer uses their gradients."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fmapboard.capture.isolation import aside

_PARAMETERS, _VALUES = 16, 64
"""Parameters of which values are read, spread over the model, and values read of each."""

_PLAIN = frozenset({Tensor, nn.Parameter})
"""Types of parameters whose memory can be read; wrappers such as quantized tensors have none."""


@dataclass(frozen=True, slots=True)
class PendingIdle:
    """What a logged step without an optimizer step tells, in part still on the device.

    Attributes:
        values: values of the weights; empty if a parameter has changed since the last such step.
        is_held: some optimizer holds trainable parameters of the model; None if not looked for.
        is_cleared: no parameter had a gradient when the first backward pass began.
    """

    values: tuple[Tensor, ...]
    is_held: bool | None
    is_cleared: bool

    def digest(self) -> bytes:
        """Wait for the device: a digest of the values."""
        found = hashlib.blake2b(digest_size=16)
        for one in self.values:
            found.update(one.cpu().view(torch.uint8).numpy().tobytes())
        return found.digest()


class IdleWeights:
    """Follows the backward passes of logged steps in which no optimizer steps.

    If no in-place operation has changed a parameter since the last such step, some values are
    copied, which tell whether the weights are still the same: the first 64 values in memory of at
    most 16 parameters, in one tensor per device and dtype.
    """

    def __init__(self) -> None:
        self._versions: Mapping[int, int] = {}
        self.opens()

    def opens(self) -> None:
        """Called when a logged step opens."""
        self._is_cleared: bool | None = None  # None: no backward pass has begun
        self._with_gradient: tuple[str, ...] = ()

    def backward_begins(self, trainable: Mapping[str, Tensor]) -> None:
        """Called when a backward pass begins, before it changes any gradient."""
        if self._is_cleared is None:
            self._is_cleared = all(p.grad is None for p in trainable.values())

    def backward_ends(self, trainable: Mapping[str, Tensor]) -> None:
        """Called when a backward pass has ended."""
        if self._is_cleared is not None and not self._with_gradient:
            self._with_gradient = tuple(
                name
                for name, parameter in trainable.items()
                if parameter.grad is not None and type(parameter) in _PLAIN
            )

    def closes(self, trainable: Mapping[str, Tensor], *, has_stepped: bool) -> tuple[str, ...]:
        """Called when a logged step closes.

        Returns:
            Names of the parameters whose values tell whether the weights change; empty if they are
            known to change, if an optimizer stepped, or if no parameter got a gradient.
        """
        versions = {id(p): p._version for p in trainable.values()}
        is_same, self._versions = versions == self._versions, versions
        if has_stepped or not is_same:
            return ()
        return tuple(name for name in self._with_gradient if name in trainable)

    def pending(self, parameters: Sequence[Tensor], is_held: bool | None) -> PendingIdle:
        """Copy values of some parameters."""
        stride = -(-len(parameters) // _PARAMETERS)
        groups: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
        for parameter in parameters[::stride]:
            groups.setdefault((parameter.device, parameter.dtype), []).append(parameter)
        copied = []
        for (device, _), members in groups.items():
            with aside(device.type):
                copied.append(torch.cat([_first_values(one.detach()) for one in members]))
        return PendingIdle(tuple(copied), is_held, bool(self._is_cleared))


def _first_values(parameter: Tensor) -> Tensor:
    """A view of the first values in memory, whatever the order of the axes."""
    held = parameter.untyped_storage().nbytes() // parameter.element_size()
    count = min(_VALUES, parameter.numel(), held - parameter.storage_offset())
    return parameter.as_strided((count,), (1,))
