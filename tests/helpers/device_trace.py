"""Records fmapboard's own operations on fake CUDA tensors: launches, bytes, memory and waits.

Fake tensors have shapes and strides but no values, so a step of any size runs without a device. An
operation is fmapboard's own if the innermost Python frame outside torch is in the package.
"""

from __future__ import annotations

import functools
import math
import sys
import sysconfig
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import fmapboard

aten = torch.ops.aten
SECTOR = 32
"""Bytes that a device reads at least."""
BLOCK = 512
"""Bytes to which CUDA's caching allocator rounds up."""
_READS_VALUES = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2"}
_ALLOCATIONS = ("empty", "new_empty")
_ONLY_WRITES = {"copy_", "fill_", "zero_", "new_zeros", "new_ones", "new_full"}

# The multi-tensor kernels of CUDA, aten/src/ATen/native/cuda/{Shape.cu,ForeachReduceOp.cu}.
_CAT_CONTIGUOUS, _CAT_STRIDED, _CAT_AXES = 128, 16, 4
_CHUNK, _CHUNKS_PER_LAUNCH, _TENSORS_PER_LAUNCH = 65536, 320, 110
_NORMS_PER_CLEANUP = 400

_PACKAGE = str(Path(fmapboard.__file__).parent)
_TORCH = str(Path(torch.__file__).parent)
_TRANSPARENT = (_TORCH, sysconfig.get_path("stdlib"), __file__)
_CALLS_USERS = {f"{_TORCH}/nn/modules/module.py", f"{_TORCH}/optim/optimizer.py"}


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of fmapboard's with a tensor of the device.

    Attributes:
        module: the module of fmapboard that called it, as ``measure.norms``.
        name: the operation, without its namespace.
        launches: kernels and copies; 0 for views and allocations.
        nbytes: bytes of device memory read and written.
        to_host: bytes copied to the host.
        waits: True if the host waits for the device.
        shapes: shapes of the first two tensors that it takes.
    """

    module: str
    name: str
    launches: int
    nbytes: int
    to_host: int
    waits: bool
    shapes: tuple[tuple[int, ...], ...]


@dataclass(slots=True)
class Trace:
    """What fmapboard did on the device in one logged step.

    Attributes:
        ops: its operations.
        watched: bytes of each watched tensor.
        peak: the most bytes that it allocated and that were alive at one time.
    """

    ops: list[Op] = field(default_factory=list)
    watched: list[int] = field(default_factory=list)
    peak: int = 0

    @property
    def launches(self) -> int:
        return sum(op.launches for op in self.ops)

    @property
    def nbytes(self) -> int:
        return sum(op.nbytes for op in self.ops)

    @property
    def to_host(self) -> int:
        return sum(op.to_host for op in self.ops)

    @property
    def waits(self) -> list[Op]:
        return [op for op in self.ops if op.waits]

    @property
    def launches_per_tensor(self) -> float:
        return self.launches / len(self.watched)

    @property
    def reads(self) -> float:
        """Bytes read and written, as a multiple of the bytes that are watched."""
        return self.nbytes / sum(self.watched)

    def by_module(self) -> dict[str, tuple[int, int]]:
        """Module -> launches and bytes, most launches first."""
        return self._by(lambda op: op.module)

    def by_op(self) -> dict[str, tuple[int, int]]:
        """Module and operation -> launches and bytes, most launches first."""
        return self._by(lambda op: f"{op.module} {op.name}")

    def _by(self, key: Any) -> dict[str, tuple[int, int]]:
        launches, nbytes = Counter[str](), Counter[str]()
        for op in self.ops:
            launches[key(op)] += op.launches
            nbytes[key(op)] += op.nbytes
        return {name: (count, nbytes[name]) for name, count in launches.most_common() if count}


class Tracer(TorchDispatchMode):
    """Records the operations of fmapboard; enter it inside a ``FakeTensorMode``.

    Reading a value gives 0, as fake tensors have none.

    Args:
        everything: record every operation, under the module "".

    Attributes:
        trace: what was recorded.
    """

    def __init__(self, *, everything: bool = False) -> None:
        super().__init__()
        self.trace = Trace()
        self._everything = everything
        self._alive: list[tuple[StorageWeakRef, int]] = []
        self._most = 0
        self._pinned: list[Tensor] = []

    def pin(self, tensor: Tensor) -> None:
        """Regard a tensor of the CPU as pinned memory, with which copies need not wait."""
        self._pinned.append(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = 0 if func is aten._local_scalar_dense.default else func(*args, **kwargs)
        if func.namespace == "prim":  # such as `prim.device`
            return result
        module = "" if self._everything else _caller(sys._getframe(1))
        if module is None:
            return result
        name = func._schema.name.split("::")[1]
        ins = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        outs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if any(tensor.is_cuda for tensor in (*ins, *outs)):
            self._record(module, func, name, ins, outs, args, kwargs)
        return result

    def _record(
        self,
        module: str,
        func: Any,
        name: str,
        ins: list[Tensor],
        outs: list[Tensor],
        args: Any,
        kwargs: Any,
    ) -> None:
        fresh = [out for out in outs if not _shares(out, ins)]
        self._allocated([out for out in fresh if out.is_cuda])
        shapes = tuple(tuple(tensor.shape) for tensor in ins[:2])
        reads = name in _READS_VALUES
        is_copy = name in ("copy_", "_to_copy")
        works = reads or func._schema.is_mutable or (fresh and not name.startswith(_ALLOCATIONS))
        if not works:
            self.trace.ops.append(Op(module, name, 0, 0, 0, False, shapes))
            return
        sources = ins[1:] if name in _ONLY_WRITES or name.endswith("_like") else ins
        crosses = is_copy and sources[0].is_cuda != outs[0].is_cuda
        waits = crosses and not (
            (kwargs.get("non_blocking") or True in args[2:])
            and any(_shares(tensor, self._pinned) for tensor in (*ins, *outs))
        )
        read = {id(tensor): touched(tensor) for tensor in sources if tensor.is_cuda}
        moved = sum(read.values()) + sum(touched(tensor) for tensor in outs if tensor.is_cuda)
        to_host = moved if crosses and not outs[0].is_cuda else 0
        waits = waits or reads or (name.startswith("index") and any(_is_mask(t) for t in ins[1:]))
        count = launches(name, ins)
        self.trace.ops.append(Op(module, name, count, moved, to_host, waits, shapes))

    def _allocated(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            storage = tensor.untyped_storage()
            size = -(-storage.nbytes() // BLOCK) * BLOCK
            self._alive.append((StorageWeakRef(storage), size))
            self._most += size
        if self._most > self.trace.peak:  # what was freed in the meantime is still included
            self._alive = [(held, size) for held, size in self._alive if not held.expired()]
            self._most = sum(size for _, size in self._alive)
            self.trace.peak = max(self.trace.peak, self._most)


def launches(name: str, ins: list[Tensor]) -> int:
    """How many kernels CUDA launches for an operation that is neither a view nor an allocation."""
    if name in ("cat", "stack"):
        if len({tensor.dtype for tensor in ins}) > 1 or ins[0].dim() > _CAT_AXES:
            return len(ins)
        is_contiguous = all(tensor.is_contiguous() for tensor in ins)
        return -(-len(ins) // (_CAT_CONTIGUOUS if is_contiguous else _CAT_STRIDED))
    if name == "_foreach_norm":
        fills = 2  # of the partial norms
        return fills + _multi_tensor_launches(ins) + -(-len(ins) // _NORMS_PER_CLEANUP)
    if name.startswith("_foreach"):
        raise NotImplementedError(f"count the launches of {name}")
    return 1


def _multi_tensor_launches(tensors: list[Tensor]) -> int:
    count = chunks = held = 0
    for tensor in tensors:
        held += 1
        for _ in range(-(-tensor.numel() // _CHUNK)):
            if chunks == _CHUNKS_PER_LAUNCH:
                count, chunks, held = count + 1, 0, 1
            chunks += 1
        if held == _TENSORS_PER_LAUNCH:
            count, chunks, held = count + 1, 0, 0
    return count + (chunks > 0)


def touched(tensor: Tensor) -> int:
    """Bytes of memory that reading a tensor touches: repeated values once, strided ones by sector.

    >>> touched(torch.zeros(4, 1).expand(4, 100)), touched(torch.zeros(64)[::16])
    (16, 128)
    """
    axes = [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1 and s]
    step = min((stride for _, stride in axes), default=1) * tensor.element_size()
    return math.prod(size for size, _ in axes) * min(max(step, tensor.element_size()), SECTOR)


def _is_mask(tensor: Tensor) -> bool:
    return tensor.dtype in (torch.bool, torch.uint8)


def _shares(tensor: Tensor, others: list[Tensor]) -> bool:
    return tensor.untyped_storage()._cdata in {o.untyped_storage()._cdata for o in others}


def _caller(frame: FrameType | None) -> str | None:
    """The module of fmapboard that called the operation; None if another one did."""
    while frame is not None:
        file = frame.f_code.co_filename
        is_of_mode = frame.f_code.co_name == "__torch_dispatch__"
        if file.startswith(_PACKAGE) and is_of_mode:  # around the user's operations
            frame = frame.f_back
            continue
        if file.startswith(_PACKAGE):
            return _module_of(file)
        if file in _CALLS_USERS or not file.startswith(_TRANSPARENT):
            return None
        frame = frame.f_back
    return None


@functools.cache
def _module_of(file: str) -> str:
    return ".".join(Path(file).relative_to(_PACKAGE).with_suffix("").parts)
