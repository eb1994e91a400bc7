"""Operations whose output depends on NaN without being NaN.

The fields are measured with NaN, which spreads through arithmetic: an output that is not NaN does
not depend on the pixels that were. That does not hold for comparisons, sorting, indices, and other
operations that are found here.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from fmapboard.model.tensors import tensors

_NAMESPACES = frozenset({"aten", "prim", "prims"})
"""Operations of other libraries may treat NaN in any way."""

_IGNORING_NAN = frozenset({"fmax", "fmin", "nansum", "nanmedian", "nanquantile", "nan_to_num"})
_ORDERING = frozenset({"sort", "topk", "kthvalue", "mode"})
_POOLING = frozenset({"fractional_max_pool2d", "fractional_max_pool3d"})
_SAMPLING = frozenset({"grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler"})
_QUANTIZING = frozenset(
    {"quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic"}
)

_UNSOUND = _IGNORING_NAN | _ORDERING | _POOLING | _SAMPLING | _QUANTIZING | {"renorm"}
"""Operations that return a number although one of the numbers that they compare or use as a
coordinate is NaN. Those in place have the same name and an underscore."""

_OVERWRITING = frozenset({"zero_", "fill_", "copy_"})
"""Operations whose result does not depend on the values of their first argument."""

_INDEXING = frozenset(
    {"index", "index_select", "gather", "take", "take_along_dim", "masked_select"}
)
_COPYING = frozenset({"embedding", "narrow_copy", "slice_copy", "select_copy", "unbind_copy"})
_PADDING = frozenset({"constant_pad_nd", "pad"})
_SPLITTING = frozenset(
    {
        "split_copy",
        "split_with_sizes_copy",
        "unsafe_split",
        "unsafe_split_with_sizes",
        "unsafe_chunk",
    }
)
_REPLACING = frozenset({"index_put", "slice_scatter", "select_scatter"})
_CREATING = frozenset({"new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"})

_SELECTING = _INDEXING | _COPYING | _PADDING | _SPLITTING | _REPLACING | _CREATING
"""Operations that may leave out the values that are NaN, or read no values; likewise in place."""

_NEW = "_like"
"""End of the names of operations that take only the shape of a tensor."""

_LEAVING = ("numpy", "tolist", "__array__", "__dlpack__")
"""Methods of tensors that read values without an operation of torch."""


class NanFlow(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch
    """While active, notes the first operation that may lose NaN.

    Such an operation is one that

    - turns NaN into a Python number, on which the model's control flow may depend, or gives it to
      another library;
    - uses an integer or bool tensor that was computed from NaN, such as ``mask`` in ``x * mask``;
    - receives NaN and returns numbers without any, unless it only selects some of the values;
    - is in ``_UNSOUND``, or belongs to another library than torch.

    Attributes:
        lost_at: Name of that operation; None as long as there is none.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.lost_at: str | None = None
        # Kept alive: a new tensor could otherwise get the identity of one that was freed.
        self._from_nan: dict[int, Tensor] = {}
        self._patched = ExitStack()

    def __enter__(self) -> NanFlow:
        super().__enter__()  # type: ignore[no-untyped-call]  # torch
        for name in _LEAVING:
            self._watch(name)
        return self

    def __exit__(self, *error: Any) -> None:
        self._patched.close()
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch

    def _watch(self, name: str) -> None:
        """Replace a method of all tensors by one that notes NaN before it is read.

        A ``TorchFunctionMode`` would see these calls, too, but attention takes another path in it.
        """
        original = getattr(Tensor, name)

        @functools.wraps(original)
        def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if self.lost_at is None:
                with _disable_current_modes():
                    if id(tensor) in self._from_nan or _has_nan(tensor):
                        self.lost_at = name
            return original(tensor, *args, **kwargs)

        self._patched.enter_context(patch.object(Tensor, name, method))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.lost_at is not None:
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        given = tensors((args, kwargs))
        read = given[1:] if name in _OVERWRITING else given
        has_nan = any(map(_has_nan, read))  # before: the operation may be in place
        is_derived = any(id(tensor) in self._from_nan for tensor in given)
        returned = func(*args, **kwargs)
        if is_derived or (has_nan and self._loses(func, returned)):
            self.lost_at = name
        return returned

    def _loses(self, func: Any, returned: Any) -> bool:
        name = func.overloadpacket.__name__.removesuffix("_")
        if func.namespace not in _NAMESPACES or name in _UNSOUND:
            return True
        found = tensors(returned)
        if not found:
            return returned is not None
        real = [tensor for tensor in found if _is_real(tensor)]
        for tensor in found:
            if not _is_real(tensor):
                self._from_nan[id(tensor)] = tensor
        if any(map(_has_nan, real)):
            return False
        has_values = any(tensor.numel() for tensor in real)
        if not has_values or name in _SELECTING or name.endswith(_NEW):
            return False
        return not _is_view(func)


def _is_view(func: Any) -> bool:
    """Whether an operation returns a part of its argument, and does not write to it."""
    for returned in func._schema.returns:
        alias = returned.alias_info
        if alias is not None and not alias.is_write:
            return True
    return False


def _is_real(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _has_nan(tensor: Tensor) -> bool:
    return _is_real(tensor) and bool(torch.isnan(tensor).any())
