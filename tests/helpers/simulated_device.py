"""An accelerator simulated on the CPU: real values in tensors that claim to be on another device.

What a test can observe of it, as of a real device:

- a read of a value by the host (`item`, `bool`, `float()`, `tolist`), a shape that depends on
  values, and a copy that is not from or to pinned memory make the host wait; each is noted;
- a `non_blocking` copy into pinned memory arrives only when an event recorded after it on its
  stream is waited for; until then the memory holds 0xAB;
- a copy on a side stream delivers 0xAB if the stream did not wait for the work before it, or if the
  copied tensor was freed before the copy arrived and without `record_stream`;
- pinned memory is handed out again as soon as nothing refers to it, filled with 0xAB;
- tensors of different devices cannot be combined, except for scalars of the CPU;
- `mps` and `xpu` refuse float64; `mps` has no streams.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from simulated_machine import GARBAGE, Event, Machine, Stream, machine_now, on_stream, start
from torch import Tensor, nn
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from fmapboard.capture.transfer import _side_stream

aten = torch.ops.aten
WITHOUT_FLOAT64 = ("mps", "xpu")
READS_VALUES = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
}
INDEXES = (aten.index.Tensor, aten.index_put_.default)
PAGEABLE = "copy of pageable memory"


class DeviceTensor(Tensor):
    """A tensor on the simulated device. C++ sees a CPU tensor, so autograd needs no driver."""

    on: torch.device
    values: Tensor
    written: int
    recorded: list[Stream]

    @staticmethod
    def of(values: Tensor, on: torch.device) -> DeviceTensor:
        if on.type in WITHOUT_FLOAT64 and values.dtype == torch.float64:
            raise TypeError(f"{on.type} does not support float64")
        made = Tensor._make_subclass(DeviceTensor, values.detach(), False)
        made.on, made.values = on, values.detach()
        made.written, made.recorded = machine_now().launches, []
        machine_now()._alive[id(made)] = weakref.ref(made)
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
        machine_now().wait(PAGEABLE)
        return self.values.to("cpu", dtype, copy=True)

    def cpu(self, *args: Any) -> Tensor:
        return self.to("cpu")

    def tolist(self) -> Any:
        machine_now().wait("tolist")
        return self.values.tolist()

    def numpy(self, **options: Any) -> Any:
        raise TypeError(f"can't convert {self.on} device type tensor to numpy")

    def record_stream(self, stream: Any) -> None:
        self.recorded.append(stream)

    def __repr__(self, **options: Any) -> str:
        return f"DeviceTensor({tuple(self.shape)}, {self.on})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


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
        is_copied = bool(leaves) and (target is None) != (on is None)
        machine_now().uploads += is_copied and target is not None
        if is_copied and not (
            kwargs.get("non_blocking") and all(map(machine_now().is_pinned, here))
        ):
            machine_now().wait(PAGEABLE)
        on = target
    elif there and any(leaf.dim() for leaf in here):
        raise RuntimeError(f"{func}: tensors are on {on} and on the CPU")
    if there:
        machine_now().launches += 1
        indices = [leaf.dtype for leaf in there[1:]] if func in INDEXES else ()
        if func in READS_VALUES or torch.bool in indices:
            machine_now().wait(str(func))
        if func._schema.is_mutable:
            for leaf in there:
                leaf.written = machine_now().launches
    result = func(*tree_map(_values, args), **tree_map(_values, kwargs))
    if on is None:
        return result
    return tree_map(lambda o: DeviceTensor.of(o, on) if isinstance(o, Tensor) else o, result)


def _copy(target: Tensor, source: Tensor, non_blocking: Any) -> Tensor:
    if isinstance(target, DeviceTensor) != isinstance(source, DeviceTensor):
        host = source if isinstance(target, DeviceTensor) else target
        machine_now().uploads += host is source
        if not (non_blocking and machine_now().is_pinned(host)):
            machine_now().wait(PAGEABLE)
        elif isinstance(source, DeviceTensor):
            _copy_later(target, source)
            return target
    _values(target).copy_(_values(source))
    if isinstance(target, DeviceTensor):
        target.written = machine_now().launches
    return target


def _copy_later(target: Tensor, source: DeviceTensor) -> None:
    """Copy to pinned memory in the order of the stream."""
    stream = machine_now().current_stream()
    target.view(-1).view(torch.uint8).fill_(GARBAGE)
    if stream is machine_now().compute:  # later work on the memory comes after the copy
        value = source.values.clone()
        stream.launch(lambda: target.copy_(value))
        return
    values, recorded, alive = source.values, source.recorded, weakref.ref(source)
    is_too_early = source.written > stream.seen

    def arrive() -> None:
        is_freed = alive() is None and stream not in recorded
        if not is_too_early and not is_freed:
            target.copy_(values)

    stream.launch(arrive)


class DeviceModule:
    """What `torch.mps`, and with streams `torch.cuda` and `torch.xpu`, offer."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        if kind != "mps":
            self.Stream, self.stream = Stream, on_stream
            # Not every accelerator has events that block.
            self.Event = Event if kind == "cuda" else lambda: Event()
            self.current_stream = lambda device=None: machine_now().current_stream()

    def is_available(self) -> bool:
        return True

    def get_rng_state(self, device: object = 0) -> int:
        return machine_now().random_states.get((self.kind, device), 0)

    def set_rng_state(self, state: int, device: object = 0) -> None:
        machine_now().random_states[self.kind, device] = state


@contextmanager
def simulated_device() -> Iterator[Machine]:
    """Accept tensors of simulated devices inside the block."""
    machine = start()
    empty = torch.empty
    arange = torch.arange

    def with_pinned(*size: Any, pin_memory: bool = False, **options: Any) -> Tensor:
        made = empty(*size, **options)
        if not pin_memory:
            return made
        if isinstance(made, DeviceTensor):
            raise RuntimeError("Only dense CPU tensors can be pinned")
        return machine.allocate_pinned(made.nbytes).view(made.dtype).view(made.shape)

    def on_device(*bounds: Any, device: Any = "cpu", **options: Any) -> Tensor:
        made = arange(*bounds, **options)
        kind = torch.device(device).type
        return made if kind == "cpu" else moved(made, kind)

    def module(device: Any) -> Any:
        return DeviceModule(torch.device(device).type)

    _side_stream.cache_clear()  # the machine may have a real device
    _device_constructors()  # a cached list, which must hold `torch.empty` itself
    scaling_is_unavailable = "torch.cuda.amp.common.amp_definitely_not_available"
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(torch, "empty", with_pinned))
        patches.enter_context(mock.patch.object(torch, "arange", on_device))
        patches.enter_context(mock.patch.object(torch, "get_device_module", module))
        patches.enter_context(mock.patch.object(torch.cuda, "_lazy_init", return_value=None))
        patches.enter_context(mock.patch.object(torch.xpu, "_lazy_init", return_value=None))
        patches.enter_context(mock.patch(scaling_is_unavailable, return_value=False))
        patches.enter_context(_Dispatch())
        patches.callback(_side_stream.cache_clear)
        yield machine


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
