"""``Twin``: a copy of a model for fmapboard's own passes; its parameters are the model's own.

All else that the modules hold is copied: buffers, random generators, counters, queues, nested
containers. So a pass of the copy leaves the model as it was, and nothing has to be restored.
"""

from __future__ import annotations

import contextlib
import copy
import types
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, is_lazy

from fmapboard.capture.layer_hook import LayerHook, record_alike
from fmapboard.capture.module_calls import ORIGINAL, FallbackHook
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.kernel_shapes import names_in
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import tensors

_HOOKS = frozenset(name for name in vars(nn.Module()) if "_hooks" in name)
"""Where torch keeps a module's hooks."""

_LEFT_OUT = frozenset({"_compiled_call_impl"})
"""What ``module.compile()`` has made."""

_SHARED = frozenset({"_trainer", "_fabric"})
"""Where Lightning keeps what trains the model, which is no part of it."""

_CONSTANTS = frozenset({bool, int, float, str, type(None)})

_CONTAINERS = frozenset({dict, list, set, OrderedDict})

_OF_TENSORS = frozenset({"_parameters", "_buffers"})


class NoTwin(ConfigurationError):
    """Why fmapboard cannot run a pass of its own."""


class Twin:
    """A copy of a model whose parameters are shared and whose other state is copied.

    Parts that torch.compile, DataParallel or DistributedDataParallel wrap are copied without the
    wrapper, and lazy parameters are copied. Hooks are those of the model, called with modules of
    the copy: what they change outside of the model stays changed. Recording hooks are left out.

    Args:
        model: any module; wrappers are removed.

    Attributes:
        module: the copy.

    Raises:
        NoTwin: something cannot be copied, or a function that the model holds refers to the model,
            and would change that instead of the copy.
    """

    def __init__(self, model: nn.Module) -> None:
        self._memo: dict[int, Any] = {}
        self._originals: dict[int, nn.Module] = {}
        self._clones: dict[int, Tensor] = {}
        with torch.inference_mode(False):  # copies that may be part of a graph
            self.module = self._empty_copy(model)
            for module in self._originals.values():
                self._share(module)
            for module in self._originals.values():
                self._fill(module)

    def layers(self, layers: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
        """The copies of those modules that are part of the model, by the same names."""
        own = {name: module for name, module in layers.items() if id(module) in self._memo}
        return {name: self._memo[id(module)] for name, module in own.items()}

    def _empty_copy(self, wrapped: nn.Module) -> nn.Module:
        """Create a module without attributes in place of each one of the tree."""
        if id(wrapped) in self._memo:
            known: nn.Module = self._memo[id(wrapped)]
            return known
        module = unwrap(wrapped)
        if module is not wrapped:
            empty = self._empty_copy(module)
        elif isinstance(module, torch.jit.ScriptModule):
            empty = self._copied(module, type(module).__name__)
        else:
            empty = nn.Module.__new__(type(module))
            self._originals[id(module)] = module
        self._memo[id(wrapped)] = empty
        if id(module) in self._originals and module is wrapped:
            for child in module._modules.values():
                if child is not None:
                    self._empty_copy(child)
        return empty

    def _share(self, module: nn.Module) -> None:
        """Decide on parameters and hooks before anything is copied that may refer to them."""
        for name, value in vars(module).items():
            if name in _HOOKS:
                self._memo[id(value)] = self._hooks(value, type(module).__name__)
            elif name == "_parameters":
                for parameter in value.values():
                    if parameter is not None and not is_lazy(parameter):
                        self._memo[id(parameter)] = parameter
            elif name != "_modules" and type(value) not in _CONSTANTS:
                self._share_tensors(value)

    def _share_tensors(self, value: Any) -> None:
        for tensor in tensors(value):
            if isinstance(tensor, UninitializedBuffer):  # which deepcopy refuses
                self._memo[id(tensor)] = _uninitialized(tensor)
            elif isinstance(tensor, nn.Parameter) and not is_lazy(tensor):
                self._memo[id(tensor)] = tensor  # in a list
            elif id(tensor) not in self._memo and self._is_cloned(tensor):
                self._memo[id(tensor)] = self._clone(tensor)

    def _is_cloned(self, tensor: Tensor) -> bool:
        """False for a tensor that is better left to deepcopy: a part of memory that others use."""
        if not tensor.is_leaf or not _is_plain(tensor):
            return not (tensor.is_leaf and tensor.requires_grad)
        memory = tensor.untyped_storage()
        return memory.nbytes() == tensor.nbytes or memory._cdata in self._clones

    def _clone(self, tensor: Tensor) -> Tensor:
        """A copy of a tensor; those of tensors that share their memory share theirs."""
        clone = tensor.detach().clone()
        if not _is_plain(tensor):
            return clone
        memory = tensor.untyped_storage()._cdata
        known = self._clones.get(memory)
        if known is not None:
            return known.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        if clone.stride() == tensor.stride():
            self._clones[memory] = clone
        return clone

    def _hooks(self, hooks: Any, kind: str) -> Any:
        """The hooks of a module, with the copies' methods in place of the modules' own."""
        kept = type(hooks)() if not hooks else hooks.copy()
        for key, hook in hooks.items():
            if isinstance(hook, (LayerHook, FallbackHook)):
                del kept[key]
            elif isinstance(hook, types.MethodType) and id(hook.__self__) in self._originals:
                kept[key] = types.MethodType(hook.__func__, self._memo[id(hook.__self__)])
            elif self._reaches_original(hook, is_shared=True):
                raise NoTwin(f"a hook on {kind} refers to the model that it was put on")
        return kept

    def _fill(self, module: nn.Module) -> None:
        """Give the copy of a module its attributes."""
        twin = self._memo[id(module)]
        kind = type(module).__name__
        own = vars(twin)
        for name, value in list(vars(module).items()):
            known = self._memo.get(id(value))
            if known is not None:
                own[name] = known
            elif type(value) in _CONSTANTS or name in _SHARED or isinstance(value, torch.fx.Graph):
                own[name] = value
            elif type(value) in _CONTAINERS and not value:
                own[name] = self._memo[id(value)] = type(value)()
            elif name == "_modules":
                children = value.items()
                own[name] = {key: self._memo.get(id(child)) for key, child in children}
            elif name not in _LEFT_OUT:
                eager = _uncompiled(value)
                if name not in _OF_TENSORS and self._reaches_original(eager, is_shared=False):
                    raise NoTwin(f"{kind}.{name} refers to the model, so a copy would change it")
                own[name] = self._copied(eager, f"{kind}.{name}")
        own[ORIGINAL] = weakref.ref(module)
        record_alike(module, twin)

    def _copied(self, value: Any, what: str) -> Any:
        try:
            return copy.deepcopy(value, self._memo)
        except Exception as error:
            raise_interrupt(error)
            raise NoTwin(f"{what} cannot be copied ({first_line(error)})") from error

    def _reaches_original(self, value: Any, *, is_shared: bool) -> bool:
        """True if a function refers to a module of the model.

        Args:
            value: an attribute or a hook; containers are searched.
            is_shared: it is not copied, so it must not hold such a module either.
        """
        waiting = [(value, is_shared)]
        seen = set[int]()
        while waiting:
            item, shared = waiting.pop()
            if type(item) in _CONSTANTS or id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, weakref.ref):
                waiting.append((item(), True))
            elif isinstance(item, nn.Module):
                if shared and id(item) in self._originals:
                    return True
            elif isinstance(item, types.FunctionType):
                waiting += [(held, True) for held in _held_by(item)]
            elif isinstance(item, types.MethodType):
                waiting += [(item.__func__, True), (item.__self__, shared)]
            elif isinstance(item, partial):
                waiting += [(part, shared) for part in (item.func, item.args, item.keywords)]
            elif isinstance(item, (list, tuple, set, dict)):
                parts = item.values() if isinstance(item, dict) else item
                waiting += [(part, shared) for part in parts]
        return False


def _is_plain(tensor: Tensor) -> bool:
    """True for a tensor with memory of its own kind, which another tensor may share."""
    is_strided = type(tensor) is Tensor and tensor.layout is torch.strided
    return is_strided and not (tensor.requires_grad or tensor.is_meta or tensor.is_quantized)


def _uninitialized(buffer: Tensor) -> Tensor:
    create: Any = UninitializedBuffer  # torch does not say what it takes
    empty: Tensor = create(device=buffer.device, dtype=buffer.dtype)
    return empty


def _uncompiled(value: Any) -> Any:
    """What a function of ``torch.compile`` was made from; anything else as it is."""
    original = getattr(value, "_torchdynamo_orig_callable", value)
    if getattr(original, "__module__", "").startswith("torch."):  # wrapped by torch.compile
        return getattr(original, "__wrapped__", original)
    return original


def _held_by(function: types.FunctionType) -> list[Any]:
    """What a function refers to: the contents of its closure, its defaults and its globals."""
    held: list[Any] = list(function.__defaults__ or ())
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            held.append(cell.cell_contents)
    found = map(function.__globals__.get, names_in(function.__code__))
    held += [value for value in found if isinstance(value, nn.Module)]
    return held
