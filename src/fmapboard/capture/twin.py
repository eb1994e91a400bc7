"""``Twin``: a copy of a model for fmapboard's own passes; its parameters may be the model's own.

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
from fmapboard.model.distributed import PLAIN
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
    """A copy of a model whose parameters are shared or copied and whose other state is copied.

    Parts that torch.compile, DataParallel or DistributedDataParallel wrap are copied without the
    wrapper, and lazy parameters are copied. Hooks are those of the model, called with modules of
    the copy: what they change outside of the model stays changed. Recording hooks are left out.

    Args:
        model: any module; wrappers are removed.
        shares_parameters: False to copy them, for a twin that is trained. Its hooks may refer to
            the model: ``OwnFunctions`` replaces them.

    Attributes:
        module: the copy.
        shares_parameters: as given.

    Raises:
        NoTwin: something cannot be copied, or a function that the model holds refers to the model,
            and would change that instead of the copy.
    """

    def __init__(self, model: nn.Module, *, shares_parameters: bool = True) -> None:
        self.shares_parameters = shares_parameters
        self._memo: dict[int, Any] = {}
        self._originals: dict[int, nn.Module] = {}
        self._clones: dict[int, Tensor] = {}
        self.module = self.add(model)

    def add(self, model: nn.Module) -> nn.Module:
        """The copy of a further module, which may share modules and parameters with the model.

        Raises:
            NoTwin: as for the model.
        """
        known = len(self._originals)
        with torch.inference_mode(False):  # copies that may be part of a graph
            own = self._empty_copy(model)
            added = list(self._originals.values())[known:]
            for module in added:
                self._share(module)
            for module in added:
                self._fill(module)
        return own

    def copied(self, value: Any, what: str) -> Any:
        """A deep copy, in which the twin's modules and parameters stand for those of the model.

        Args:
            value: what refers to the model, such as the state of an optimizer.
            what: its name, for the error.

        Raises:
            NoTwin: it cannot be copied.
        """
        with torch.inference_mode(False):
            return self._copied(value, what)

    def copy_of(self, value: Any) -> Any:
        """The copy that stands for an object; None if there is none yet."""
        return self._memo.get(id(value))

    def set_copy(self, value: Any, own: Any) -> None:
        """Let a copy stand for an object, wherever it is referred to from now on.

        Args:
            value: the object, which the caller keeps alive.
            own: the copy.
        """
        self._memo[id(value)] = own

    def layers(self, layers: Mapping[str, nn.Module]) -> dict[str, nn.Module]:
        """The copies of those modules that are part of the model, by the same names."""
        own: dict[str, nn.Module] = {}
        for name, module in layers.items():
            copied = self._memo.get(id(module))
            if copied is not None:
                own[name] = copied
        return own

    def _empty_copy(self, wrapped: nn.Module) -> nn.Module:
        """Create a module without attributes in place of each one of the tree."""
        number = id(wrapped)
        if number in self._memo:
            known: nn.Module = self._memo[number]
            return known
        module = unwrap(wrapped)
        kind = type(module)
        if module is not wrapped:
            self._memo[number] = empty = self._empty_copy(module)
            return empty
        if isinstance(module, torch.jit.ScriptModule):
            scripted: nn.Module = self._copied(module, kind.__name__)
            self._memo[number] = scripted
            return scripted
        self._originals[number] = module
        self._memo[number] = empty = nn.Module.__new__(kind)
        for child in module._modules.values():
            if child is not None:
                self._empty_copy(child)
        return empty

    def _share(self, module: nn.Module) -> None:
        """Decide on parameters and hooks before anything is copied that may refer to them."""
        kind = type(module).__name__
        for name, value in vars(module).items():
            if name in _HOOKS:
                self._memo[id(value)] = self._hooks(value, kind)
            elif name == "_parameters":
                for parameter in value.values():
                    if parameter is None or is_lazy(parameter):
                        continue
                    self._memo[id(parameter)] = self._parameter(parameter, kind)
            elif name != "_modules" and type(value) not in _CONSTANTS:
                self._share_tensors(value, kind)

    def _parameter(self, parameter: nn.Parameter, kind: str) -> Any:
        """The parameter itself, or the twin's copy of it, which has no gradient."""
        known = self._memo.get(id(parameter))
        if self.shares_parameters or known is not None:
            return parameter if known is None else known
        if type(parameter) not in PLAIN:
            return self._copied(parameter, f"a parameter of {kind}")
        data = parameter.detach()
        data = self._clone(data) if self._is_cloned(data) else data.clone()
        own = nn.Parameter(data, requires_grad=parameter.requires_grad)
        vars(own).update(vars(parameter))
        return own

    def _share_tensors(self, value: Any, kind: str) -> None:
        memo = self._memo
        for tensor in tensors(value):
            number = id(tensor)
            if isinstance(tensor, UninitializedBuffer):  # which deepcopy refuses
                memo[number] = _uninitialized(tensor)
            elif isinstance(tensor, nn.Parameter) and not is_lazy(tensor):
                memo[number] = self._parameter(tensor, kind)  # in a list
            elif number not in memo and self._is_cloned(tensor):
                memo[number] = self._clone(tensor)

    def _is_cloned(self, tensor: Tensor) -> bool:
        """False for a tensor that is better left to deepcopy: a part of memory that others use."""
        if not tensor.is_leaf or not _is_plain(tensor):
            return not (tensor.is_leaf and tensor.requires_grad)
        memory = tensor.untyped_storage()
        if memory.nbytes() == tensor.nbytes:
            return True
        return memory._cdata in self._clones

    def _clone(self, tensor: Tensor) -> Tensor:
        """A copy of a tensor; those of tensors that share their memory share theirs."""
        clone = tensor.detach().clone()
        if not _is_plain(tensor):
            return clone
        memory = tensor.untyped_storage()._cdata
        known = self._clones.get(memory)
        if known is not None:
            offset = tensor.storage_offset()
            return known.as_strided(tensor.shape, tensor.stride(), offset)
        if clone.stride() == tensor.stride():
            self._clones[memory] = clone
        return clone

    def _hooks(self, hooks: Any, kind: str) -> Any:
        """The hooks of a module, with the copies' methods in place of the modules' own."""
        kept = hooks.copy() if hooks else type(hooks)()
        for key, hook in hooks.items():
            if isinstance(hook, (LayerHook, FallbackHook)):
                del kept[key]
                continue
            is_method = isinstance(hook, types.MethodType)
            if is_method and id(hook.__self__) in self._originals:
                owner = self._memo[id(hook.__self__)]
                kept[key] = types.MethodType(hook.__func__, owner)
            elif self.shares_parameters and self._reaches_original(hook, is_shared=True):
                raise NoTwin(f"a hook on {kind} refers to the model that it was put on")
        return kept

    def _fill(self, module: nn.Module) -> None:
        """Give the copy of a module its attributes."""
        twin = self._memo[id(module)]
        kind = type(module).__name__
        own = vars(twin)
        attributes = list(vars(module).items())
        for name, value in attributes:
            known = self._memo.get(id(value))
            value_kind = type(value)
            is_constant = value_kind in _CONSTANTS or isinstance(value, torch.fx.Graph)
            if known is not None:
                own[name] = known
            elif is_constant or name in _SHARED:
                own[name] = value
            elif value_kind in _CONTAINERS and not value:
                own[name] = self._memo[id(value)] = value_kind()
            elif name == "_modules":
                children = {}
                for key, child in value.items():
                    children[key] = self._memo.get(id(child))
                own[name] = children
            elif name not in _LEFT_OUT:
                where = f"{kind}.{name}"
                eager = _uncompiled(value)
                holds_tensors = name in _OF_TENSORS
                if not holds_tensors and self._reaches_original(eager, is_shared=False):
                    raise NoTwin(f"{where} refers to the model, so a copy would change it")
                own[name] = self._copied(eager, where)
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
                held = _held_by(item)
                waiting += [(part, True) for part in held]
            elif isinstance(item, types.MethodType):
                waiting.append((item.__func__, True))
                waiting.append((item.__self__, shared))
            elif isinstance(item, partial):
                waiting.append((item.func, shared))
                waiting.append((item.args, shared))
                waiting.append((item.keywords, shared))
            elif isinstance(item, dict):
                waiting += [(part, shared) for part in item.values()]
            elif isinstance(item, (list, tuple, set)):
                waiting += [(part, shared) for part in item]
        return False


def _is_plain(tensor: Tensor) -> bool:
    """True for a tensor with memory of its own kind, which another tensor may share."""
    if type(tensor) is not Tensor or tensor.layout is not torch.strided:
        return False
    return not (tensor.requires_grad or tensor.is_meta or tensor.is_quantized)


def _uninitialized(buffer: Tensor) -> Tensor:
    create: Any = UninitializedBuffer  # torch does not say what it takes
    empty: Tensor = create(device=buffer.device, dtype=buffer.dtype)
    return empty


def _uncompiled(value: Any) -> Any:
    """What a function of ``torch.compile`` was made from; anything else as it is."""
    original = getattr(value, "_torchdynamo_orig_callable", value)
    module = getattr(original, "__module__", "")
    if module.startswith("torch."):  # wrapped by torch.compile
        return getattr(original, "__wrapped__", original)
    return original


def _held_by(function: types.FunctionType) -> list[Any]:
    """What a function refers to: the contents of its closure, its defaults and its globals."""
    held: list[Any] = list(function.__defaults__ or ())
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            held.append(cell.cell_contents)
    names = names_in(function.__code__)
    for value in map(function.__globals__.get, names):
        if isinstance(value, nn.Module):
            held.append(value)
    return held
