"""An accelerator simulated on the CPU: real values in tensors that claim to be on another device.

What a test can observe of it, as of a real device:

- a read of a value by the host (`item`, `tolist`, `bool`), a shape that depends on values, and a
  copy that is not from or to pinned memory make the host wait; each is noted with its thread;
- a `non_blocking` copy into pinned memory arrives only when an event recorded after it is waited
  for; until then the memory holds 0xAB;
- tensors of different devices cannot be combined, except for scalars of the CPU;
- `mps` and `xpu` refuse float64.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

aten = torch.ops.aten
WITHOUT_FLOAT64 = ("mps", "xpu")
READS_VALUES = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
}
GARBAGE = 0xAB


@dataclass
class Machine:
    """What happened on the simulated device.

    Attributes:
        waits: (what the host waited for, name of the thread).
        launches: operations on the device.
    """

    waits: list[tuple[str, str]] = field(default_factory=list)
    launches: int = 0
    _arriving: list[Callable[[], object]] = field(default_factory=list)
    _pinned: set[int] = field(default_factory=set)
    _lock: Any = field(default_factory=threading.RLock)

    def wait(self, reason: str) -> None:
        """The host waits for everything that was launched."""
        self.waits.append((reason, threading.current_thread().name))
        self.finish(len(self._arriving))

    def finish(self, count: int) -> None:
        """The first copies under way arrive."""
        with self._lock:
            for arrive in self._arriving[:count]:
                arrive()
            del self._arriving[:count]

    def waits_on(self, thread: str) -> list[str]:
        """What the host waited for on one thread."""
        return [reason for reason, name in self.waits if name == thread]


class DeviceTensor(Tensor):
    """A tensor on the simulated device. C++ sees a CPU tensor, so autograd needs no driver."""

    on: torch.device
    values: Tensor

    @staticmethod
    def of(values: Tensor, on: torch.device) -> DeviceTensor:
        if on.type in WITHOUT_FLOAT64 and values.dtype == torch.float64:
            raise TypeError(f"{on.type} does not support float64")
        made = Tensor._make_subclass(DeviceTensor, values.detach(), False)
        made.on, made.values = on, values.detach()
        return made

    device = property(lambda self: self.on)
    is_cpu = property(lambda self: False)
    is_cuda = property(lambda self: self.on.type == "cuda")
    __torch_function__ = torch._C._disabled_torch_function_impl

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        # C++ would return the tensor itself: for it, the values are on the CPU already.
        copy = kwargs.pop("copy", False)
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is None or device.type == self.on.type:
            if dtype not in (None, self.dtype):
                return super().to(dtype)
            return self.clone() if copy else self
        _machine.wait("copy of pageable memory")
        return self.values.to("cpu", dtype, copy=True)

    def cpu(self, *args: Any) -> Tensor:
        return self.to("cpu")

    def __repr__(self, **options: Any) -> str:
        return f"DeviceTensor({tuple(self.shape)}, {self.on})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


_machine = Machine()


def _values(leaf: Any) -> Any:
    return leaf.values if isinstance(leaf, DeviceTensor) else leaf


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    there = [leaf for leaf in leaves if isinstance(leaf, DeviceTensor)]
    here = [leaf for leaf in leaves if not isinstance(leaf, DeviceTensor)]
    on = there[0].on if there else None
    if func is aten.copy_.default:
        return _copy(
            *args[:2], non_blocking=bool(args[2:] and args[2]) or kwargs.get("non_blocking")
        )
    if kwargs.get("device") is not None:
        wanted = torch.device(kwargs["device"])
        kwargs = {**kwargs, "device": torch.device("cpu")}
        target = None if wanted.type == "cpu" else torch.device(wanted.type, wanted.index or 0)
        if leaves and (target is None) != (on is None):
            _machine.wait("copy of pageable memory")
        on = target
    elif there and any(leaf.dim() for leaf in here):
        raise RuntimeError(f"{func}: tensors are on {on} and on the CPU")
    if there:
        _machine.launches += 1
        if func in READS_VALUES:
            _machine.wait(str(func))
    result = func(*tree_map(_values, args), **tree_map(_values, kwargs))
    if on is None:
        return result
    return tree_map(lambda o: DeviceTensor.of(o, on) if isinstance(o, Tensor) else o, result)


def _copy(target: Tensor, source: Tensor, non_blocking: Any) -> Tensor:
    if isinstance(target, DeviceTensor) == isinstance(source, DeviceTensor):
        _values(target).copy_(_values(source))
        return target
    host = source if isinstance(target, DeviceTensor) else target
    if not (non_blocking and host.untyped_storage().data_ptr() in _machine._pinned):
        _machine.wait("copy of pageable memory")
    elif host is target:
        value = _values(source).clone()
        target.view(-1).view(torch.uint8).fill_(GARBAGE)
        _machine._arriving.append(lambda: target.copy_(value))
        return target
    _values(target).copy_(_values(source))
    return target


class _Event:
    """An event of the device; waiting for it lets the copies before it arrive."""

    def __init__(self, **options: Any) -> None:
        self._after = 0

    def record(self, stream: object = None) -> None:
        self._after = len(_machine._arriving)

    def synchronize(self) -> None:
        if threading.current_thread() is threading.main_thread():
            _machine.wait("event")
        _machine.finish(self._after)


class _DeviceModule:
    """What `torch.cuda` and `torch.xpu` offer to a copy in stream order."""

    Event = _Event

    @staticmethod
    def current_stream(device: object = None) -> None:
        return None

    @staticmethod
    def get_rng_state(device: object = 0) -> None:
        return None

    @staticmethod
    def set_rng_state(state: None, device: object = 0) -> None:
        return None


@contextmanager
def simulated_device() -> Iterator[Machine]:
    """Accept tensors of simulated devices inside the block."""
    global _machine
    _machine = Machine()
    empty = torch.empty

    def with_pinned(*size: Any, pin_memory: bool = False, **options: Any) -> Tensor:
        made = empty(*size, **options)
        if pin_memory:
            _machine._pinned.add(made.untyped_storage().data_ptr())
        return made

    with (
        mock.patch.object(torch, "empty", with_pinned),
        mock.patch.object(torch, "get_device_module", return_value=_DeviceModule),
        mock.patch.object(torch.cuda, "_lazy_init", return_value=None),
        mock.patch.object(torch.xpu, "_lazy_init", return_value=None),
        _Dispatch(),
    ):
        yield _machine


def moved(tensor: Tensor, kind: str) -> DeviceTensor:
    """A copy of the tensor on a simulated device."""
    return DeviceTensor.of(tensor.detach().clone(), torch.device(kind, 0))


def move(model: nn.Module, kind: str) -> None:
    """Move parameters and buffers to a simulated device."""
    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is not None:
                placed = moved(parameter, kind)
                module._parameters[name] = placed.requires_grad_(parameter.requires_grad)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = moved(buffer, kind)
