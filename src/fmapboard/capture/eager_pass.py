"""``EagerPass``: an uncompiled forward pass beside a compiled one, which leaves nothing behind.

It runs right before the compiled pass, on copies of what the model is called with: each module in
its own mode, under the caller's autocast, without gradients. Random states, buffers and the
attributes of all modules are then as before, so training is bitwise the same.
"""

from __future__ import annotations

import collections
import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.compiled import hold_eager, release_eager
from fmapboard.capture.isolation import block_begins, block_ended
from fmapboard.capture.side_pass import random_states
from fmapboard.errors import WarnOnce
from fmapboard.model.distributed import is_sharded
from fmapboard.model.layers import clean_name, unwrap
from fmapboard.model.tensors import map_tensors, tensors

NOT_NEUTRAL = "logged steps then run uncompiled, and training is not bitwise the same"
"""What to say of the option ``compiled="eager"``."""

_TORCHS = frozenset({"_parameters", "_buffers", "_modules", "_compiled_call_impl", "forward"})
"""Attributes of a module that are restored in another way, or not at all."""

_CONTAINERS = (list, dict, set, collections.OrderedDict, collections.deque)


class EagerPass:
    """Runs an uncompiled pass of a compiled model, if that does not change the training.

    Around the first pass, a copy of the parameters is kept and put back.

    Args:
        model: the unwrapped model.
        warn: where the reason is reported, once, if there are no such passes.

    Attributes:
        was_left_out: True if the last pass was not possible.
    """

    def __init__(self, model: nn.Module, warn: WarnOnce) -> None:
        self._model, self._warn = model, warn
        self._obstacle, self._is_checked, self.was_left_out = "", False, False

    def can_run(self) -> bool:
        """True if a pass is possible now."""
        if not self._obstacle:
            self._obstacle = _obstacle(self._model)
        if self._obstacle:
            self._refuse()
        # The user's own pass gives lazy parameters their values.
        is_lazy_now = any(map(is_lazy, self._model.parameters()))
        self.was_left_out = bool(self._obstacle) or is_lazy_now
        return not self.was_left_out

    def run(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """Run the pass.

        Args:
            module: what is called: the model, a part of it, or what torch.compile made of it.
            args: what it is called with.
            kwargs: likewise.
        """
        inner = unwrap(module)
        parameters = [(name, p) for name, p in inner.named_parameters() if not p.is_inference()]
        versions = [p._version for _, p in parameters]
        kept = [] if self._is_checked else [(p, p.detach().clone()) for _, p in parameters]
        self._is_checked = True
        try:
            with _Kept(inner, kept), torch.no_grad():
                call: Any = inner._call_impl  # not what `inner.compile()` has made
                call(*_copied(args), **_copied(kwargs))
        finally:
            both = zip(parameters, versions, strict=True)
            moved = [clean_name(name) for (name, p), before in both if p._version != before]
            if moved:
                self._obstacle = f"forward() changes parameters ({', '.join(moved[:3])})"
                self._refuse()

    def _refuse(self) -> None:
        self._warn.warn(
            "no eager pass",
            f"the model is compiled, and {self._obstacle}, so it is not run a second time: feature "
            f'maps are not logged; with compiled="eager" they are, but {NOT_NEUTRAL}',
        )


def _obstacle(model: nn.Module) -> str:
    """Why a pass of this process alone is impossible; "" if it is possible."""
    if is_sharded(model) or any(_is_fsdp1(module) for module in model.modules()):
        return "its parameters are sharded over ranks, which would wait for each other"
    if any(isinstance(module, nn.SyncBatchNorm) for module in model.modules()):
        return "it has SyncBatchNorm layers, in which ranks would wait for each other"
    return ""


def _is_fsdp1(module: nn.Module) -> bool:
    return type(module).__name__ == "FullyShardedDataParallel"


def _copied(values: Any) -> Any:
    """A deep copy of arguments, which the model may change; tensors without their graph."""
    try:
        return copy.deepcopy(values, {id(t): t.detach().clone() for t in tensors(values)})
    except Exception:  # something that cannot be copied
        return map_tensors(values, lambda tensor: tensor.detach().clone())


class _Kept:
    """Run compiled code uncompiled in a ``with`` block; restore all that modules hold after it.

    Random states are restored too. Buffers and other tensors are exchanged for copies inside the
    block: a change of their versions would make the user's backward pass raise.

    Args:
        model: the module that runs in the block.
        parameters: parameters and what to put back into them, also what was changed through
            ``.data``.
    """

    def __init__(self, model: nn.Module, parameters: list[tuple[nn.Parameter, Tensor]]) -> None:
        self._model, self._parameters = model, parameters
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        states = [_State(module) for module in self._model.modules()]
        self._restore = [
            *(state.restore for state in states),
            *(partial(p.data.copy_, before) for p, before in self._parameters),
            *random_states(self._model),
            partial(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled()),
            partial(release_eager, self),
        ]
        block_begins(self)
        hold_eager(self)
        torch.set_autocast_cache_enabled(False)
        copies: dict[int, Tensor] = {}
        for state in states:
            state.exchange(copies)

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Restore everything; a second call does nothing."""
        for restore in self._restore:
            restore()
        self._restore = []
        block_ended(self)


class _State:
    """What a module holds but its parameters and hooks."""

    __slots__ = ("_buffers", "_contents", "_values", "module")

    def __init__(self, module: nn.Module) -> None:
        own = vars(module)
        self.module, self._buffers = module, dict(module._buffers)
        self._values = {k: v for k, v in own.items() if k not in _TORCHS and "_hooks" not in k}
        self._contents = [
            (value, copy.copy(value))
            for value in self._values.values()
            if type(value) in _CONTAINERS
        ]

    def exchange(self, copies: dict[int, Tensor]) -> None:
        """Put copies in place of tensors; one that occurs twice has one copy."""

        def copied(tensor: Tensor) -> Tensor:
            if id(tensor) not in copies:
                copies[id(tensor)] = tensor.detach().clone()
            return copies[id(tensor)]

        for name, buffer in self._buffers.items():
            if buffer is not None and not is_lazy(buffer):
                self.module._buffers[name] = copied(buffer)
        for name, value in self._values.items():
            if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
                vars(self.module)[name] = copied(value)

    def restore(self) -> None:
        """Put everything back."""
        own, buffers = vars(self.module), self.module._buffers
        buffers.clear()
        buffers.update(self._buffers)
        for name in [k for k in own if k not in _TORCHS and "_hooks" not in k]:
            if name not in self._values:
                del own[name]
        own.update(self._values)
        for container, before in self._contents:
            container.clear()
            put = container.extend if hasattr(container, "extend") else container.update
            put(before)
