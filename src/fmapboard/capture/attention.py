"""``AttentionMode``: sees the attention that modules compute in a recorded pass.

It sees calls of ``scaled_dot_product_attention``, those of a softmax over the last axis of a tensor
[N, heads, T, K] or [N, windows, heads, T, K], and both inside ``multi_head_attention_forward``. A
softmax over another axis is attention if a product with the values then sums over the last one.
From the queries and keys, or from the argument of the softmax, a few rows are computed once more,
in float32 or wider, without dropout and outside of autograd (see ``measure.head_rows`` for letters
of axes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext

from fmapboard.capture.taps import running_modules
from fmapboard.measure.head_rows import (
    MOST_HELD,
    Given,
    HeadRows,
    Logits,
    Products,
    read_heads,
    wide,
)
from fmapboard.measure.seen_keys import TextKeys, padding_of
from fmapboard.model.distributed import is_dtensor
from fmapboard.model.tensors import is_observable, tensors
from fmapboard.records import LayerPart

_FAST_PATH = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""Modules that compute something else in eval mode, unless a function mode is on."""
ROWS = ".rows"
"""Behind the name of an attention module: the row of the first token, or of the last one."""
PEAK_ROWS = ".peak_rows"
"""Likewise: per head, the row with the largest logit."""

MOST_IMAGES = 8
"""How many images of a batch are read."""


class Attention(nn.Module):
    """Stands for the module of the rows: it is what listeners receive with them.

    Args:
        shape: that of the attention module.

    Attributes:
        part: says that the units of the rows are heads.
    """

    def __init__(self, shape: str) -> None:
        super().__init__()
        self.part = LayerPart(shape, "head", 0)


@lru_cache(maxsize=256)
def stand_in(shape: str) -> Attention:
    """The module of the rows of attention modules of a shape."""
    return Attention(shape)


class AttentionLayer(NamedTuple):
    """A watched attention module.

    Attributes:
        name: of the module.
        heads: number of its heads; 0 if it is not known.
        rows: stands for the module of its rows.
    """

    name: str
    heads: int
    rows: Attention


class AttentionCall:
    """A call of attention that has just returned; its tensors are live.

    Args:
        given: one of its tensors.
        shape: of its logits.
        logits: returns its logits.
        over_keys: False if they are logarithms of weights that a softmax over another axis made.

    Attributes:
        device: of the tensors.
        nbytes: how many bytes are read.
        shape: as passed.
        over_keys: as passed.
        texts: of the network.
        samples: how many samples the batch has if the attention is between them, 0 otherwise.
    """

    def __init__(
        self,
        given: Tensor,
        shape: tuple[int, ...],
        logits: Callable[[], Logits],
        *,
        over_keys: bool = True,
    ) -> None:
        self.device = given.device
        self.nbytes = given.nbytes
        self.shape = shape
        self.over_keys = over_keys
        self.texts: Texts | None = None
        self.samples = 0
        self._logits = logits
        self._read: HeadRows | None = None

    def read(self, drawn: int | None = None) -> HeadRows:
        """What is read of it, computed once; call it inside ``isolation.aside``.

        Args:
            drawn: number of images whose rows are drawn; None for all.
        """
        if self._read is None:
            logits = self._logits()
            text = None if self.texts is None else self.texts.keys(logits.shape)
            self._read = read_heads(
                logits, text, over_keys=self.over_keys, samples=self.samples, drawn=drawn
            )
        return self._read


class Texts:
    """The texts that the network receives.

    Args:
        ids: number of tokens -> whole numbers [N, T]; see ``texts.ids_by_length``.
    """

    def __init__(self, ids: Mapping[int, Tensor]) -> None:
        self._ids = ids
        self._keys: dict[int, TextKeys] = {}

    def keys(self, shape: tuple[int, ...]) -> TextKeys | None:
        """The keys of logits [n, W, H, T, K] of self-attention over a text; None for any others.

        Call it inside ``isolation.aside``.
        """
        images, _, _, queries, keys = shape
        ids = self._ids.get(keys)
        if ids is None or queries != keys or len(ids) < images:
            return None
        if keys not in self._keys:
            self._keys[keys] = TextKeys(ids, padding_of(ids))
        return self._keys[keys]


class AttentionRows(NamedTuple):
    """What a listener receives in place of an output.

    Attributes:
        call: the call.
        is_peak: which of its rows are meant.
    """

    call: AttentionCall
    is_peak: bool

    def read(self, drawn: int | None = None) -> ReadRows:
        """Compute them, as ``AttentionCall.read``; call it inside ``isolation.aside``."""
        found = self.call.read(drawn)
        windows = found.windows
        if self.is_peak:
            among = f" in {windows} windows" if windows > 1 else ""
            note = f"of each head the row with the largest logit{among}"
            return ReadRows(found.peak_rows, None, note)
        window = f" of the first of {windows} windows" if windows > 1 else ""
        note = f"the row of the first token{window}, or of the last one in causal attention"
        return ReadRows(found.rows, found.numbers, note)


class ReadRows(NamedTuple):
    """Rows of attention.

    Attributes:
        values: [n, H, K]; with the largest logit, of the images that are drawn.
        numbers: [8, H], see ``HeadRows``; None with rows of the largest logit.
        note: which rows they are, for the description.
    """

    values: Tensor
    numbers: Tensor | None
    note: str


class Shape(NamedTuple):
    """What is known of attention before it is computed.

    Attributes:
        batch: how many images the network received; 0 if that is not known.
        heads: number of heads of the module; 0 if it is not known.
    """

    batch: int
    heads: int


def _of_products(
    expected: Shape,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    **_: Any,
) -> AttentionCall | None:
    """A call of ``scaled_dot_product_attention``; None if its tensors cannot be read."""
    given = [query, key] if attn_mask is None else [query, key, attn_mask]
    if not all(map(_is_readable, given)) or query.dim() not in _AXES:
        return None
    features = query.shape[-1]
    factor = features**-0.5 if scale is None else scale

    def logits() -> Logits:
        queries = _by_image(query, expected.batch)
        keys = _by_image(key.expand(*query.shape[:-3], *key.shape[-3:]), expected.batch)
        images = _images(queries[0].numel() + keys[0].numel())
        masks: tuple[Tensor, ...] = ()
        if attn_mask is not None:
            mask = attn_mask.expand(*query.shape[:-1], key.shape[-2])
            masks = (_by_image(mask, expected.batch)[:images],)
        return Products(queries[:images], keys[:images], factor, masks, is_causal=is_causal)

    shape = (*query.shape[:-1], key.shape[-2])
    return AttentionCall(query, shape, logits)


def _of_softmax(
    expected: Shape, input: Tensor, dim: int | None = None, *_: Any, **__: Any
) -> AttentionCall | None:
    """A softmax of an eager attention; None for any other softmax, or if it cannot be read.

    Over the queries or the heads it may be one too, with as many queries as keys; what is done with
    the result tells, see `_sums_over_last_axis`.
    """
    axes = input.dim()
    if axes not in (4, 5) or dim is None or not _is_readable(input):
        return None
    axis = dim if dim < 0 else dim - axes
    heads, queries, keys = input.shape[-3:]
    if heads != expected.heads and (expected.heads or queries != keys):
        return None
    over_keys = axis == -1
    if not over_keys and (queries != keys or axis not in (-2, -3)):
        return None

    def logits() -> Logits:
        values = _by_image(input, expected.batch)
        values = values[: _images(values[0, ..., 0].numel())]
        return Given(values if over_keys else wide(values).log_softmax(axis))

    return AttentionCall(input, tuple(input.shape), logits, over_keys=over_keys)


def _of_flat_softmax(expected: Shape, input: Tensor, *_: Any, **__: Any) -> AttentionCall | None:
    """A softmax of a tensor [N * heads, T, K]."""
    by_head: Tensor = input.unflatten(0, (-1, expected.heads))  # type: ignore[no-untyped-call]  # torch has no types here
    return _of_softmax(expected, by_head, -1)


def _version(tensor: Tensor) -> int:
    """How often a tensor has been changed in place; 0 if that is not counted."""
    return 0 if tensor.is_inference() else tensor._version


def _is_view(tensor: Any, original: Tensor) -> bool:
    """True for a tensor with the values of another one whose last two axes are the same."""
    if not isinstance(tensor, Tensor) or tensor.shape[-2:] != original.shape[-2:]:
        return False
    is_same_place = tensor.data_ptr() == original.data_ptr()
    return is_same_place and tensor.stride()[-2:] == original.stride()[-2:]


def _sums_over_last_axis(func: Any, args: tuple[Any, ...], weights: Tensor) -> bool:
    """True for a product of weights and values that sums over the last axis of the weights."""
    if func in _PRODUCTS:
        return len(args) > 1 and _is_view(args[0], weights)
    if func is not torch.einsum or not args or not isinstance(args[0], str):
        return False
    letters, _, result = args[0].replace(" ", "").partition("->")
    for operand, tensor in zip(letters.split(","), args[1:], strict=False):
        if _is_view(tensor, weights):
            return bool(result) and operand[-1] not in result
    return False


def _samples_between(shape: tuple[int, ...], batch: int) -> int:
    """How many samples the batch has if attention is between them; 0 if it is not, or may not be.

    The samples are the tokens then, and the tokens of each sample are in front of the heads, where
    the samples should be, in no multiple of their number as windows would be.

    Args:
        shape: of the logits, [..., H, T, K].
        batch: number of samples; 0 if that is not known.
    """
    *outer, _, queries, keys = shape
    count = math.prod(outer)
    is_between = batch > 0 and queries == keys == batch and count > 1 and count % batch > 0
    return batch if is_between else 0


_PRODUCTS = frozenset({torch.matmul, torch.bmm, Tensor.matmul, Tensor.bmm, Tensor.__matmul__})
"""Functions whose first operand is summed over its last axis."""
_KEEPING = frozenset({functional.dropout, torch.dropout, Tensor.to, Tensor.type_as, Tensor.float})
"""Functions that return the weights of attention, but for some values."""

_AXES = range(2, 6)
"""How many axes queries may have: [T, D] … [N, W, H, T, D]."""


def _is_readable(tensor: Tensor) -> bool:
    """True for a tensor whose values are all in this process."""
    return is_observable(tensor) and not is_dtensor(tensor)


def _images(values: int) -> int:
    """How many images are read at once if each has so many values."""
    return min(MOST_IMAGES, max(1, MOST_HELD // values))


def _by_image(tensor: Tensor, batch: int) -> Tensor:
    """A view [N, W, H, ...] of a tensor [..., H, T, D]: windows are apart from the images.

    Args:
        tensor: with two to five axes.
        batch: how many images the network received, each of which may have been cut into several
            windows that follow one another; 0 if that is not known.
    """
    while tensor.dim() < 4:
        tensor = tensor.unsqueeze(-3 if tensor.dim() < 3 else 1)
    if tensor.dim() == 5:
        return tensor
    samples = len(tensor)
    images = batch if batch and samples % batch == 0 else samples
    found: Tensor = tensor.unflatten(0, (images, samples // images))  # type: ignore[no-untyped-call]  # torch has no types here
    return found


_Reader = Callable[..., "AttentionCall | None"]

_READERS: Mapping[Any, _Reader] = {
    functional.scaled_dot_product_attention: _of_products,
    functional.softmax: _of_softmax,
    torch.softmax: _of_softmax,
    Tensor.softmax: _of_softmax,
}
_OF_TORCH = functional.multi_head_attention_forward
"""What ``MultiheadAttention`` calls."""
_INERT = (Tensor.__torch_function__, torch._C._disabled_torch_function_impl)
"""What a class of tensors has that changes no function."""
_INSIDE: Mapping[str, _Reader] = {
    "scaled_dot_product_attention": _of_products,
    "softmax": _of_flat_softmax,
}
"""The functions that it calls, by the names of its module."""


def obstacle(module: nn.Module) -> str:
    """Why no ``AttentionMode`` may be on while a module of the user's runs; "" if one may be."""
    fast = [part for part in module.modules() if isinstance(part, _FAST_PATH) and not part.training]
    if fast and torch.backends.mha.get_fastpath_enabled():
        return "in eval mode, torch may use its fast path for attention"
    return ""


def batch_size(received: Any) -> int:
    """How many images a network received, or texts; 0 if it received no tensor."""
    first = next(iter(tensors(received)), None)
    return 0 if first is None or not first.dim() else len(first)


class _Undecided(NamedTuple):
    """A softmax over another axis than the last one, which may be attention.

    Attributes:
        weights: what it returned, or what was made of that.
        version: of the weights, which changes if they are normalized in place.
        layer: inside which it was called.
        call: of attention, if it is one.
    """

    weights: Tensor
    version: int
    layer: AttentionLayer
    call: AttentionCall


class AttentionMode(TorchFunctionMode):
    """Sees the calls of attention inside the watched attention modules of a pass.

    It changes neither what operations receive nor what they return. While it is on, the fast path
    of ``MultiheadAttention`` is off, and torch.compile would compile again: see ``obstacle`` and
    ``attention_beside``.

    Args:
        layers: the attention modules.
        batch: how many images the network received; 0 if that is not known.
        texts: that it received.
        runs: called as if the rows were outputs of layers: with a name, ``"output"``, what stands
            for the module, and ``AttentionRows``.
        failed: called with a name and an error, which does not reach the pass.

    Attributes:
        layers: as passed.
    """

    def __init__(
        self,
        layers: Mapping[nn.Module, AttentionLayer],
        batch: int,
        texts: Texts,
        runs: Callable[[str, Literal["output"], nn.Module, AttentionRows], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        super().__init__()
        self.layers = layers
        self._batch = batch
        self._texts = texts
        self._runs = runs
        self._failed = failed
        self._undecided: _Undecided | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a function of torch, and tell of it if it is attention."""
        more = kwargs or {}
        inside = self._inside(args, more) if func is _OF_TORCH else None
        if inside is not None:
            with torch._C.DisableTorchFunction():
                return inside(*args, **more)
        output = func(*args, **more)
        try:
            reader = _READERS.get(func)
        except TypeError:  # a function of the user's that has no hash
            return output
        if torch.compiler.is_compiling():
            return output
        if reader is not None:
            self._look(reader, args, more, output)
        elif self._undecided is not None:
            self._decide(self._undecided, func, args, output)
        return output

    def _inside(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Callable[..., Any] | None:
        """The code of ``multi_head_attention_forward``, which tells of the attention inside.

        While a mode runs a function, it does not see what the function calls. Where modes or
        classes of tensors of others would see the function, None.
        """
        try:
            given = tensors((args, kwargs))
            is_seen = any(type(tensor).__torch_function__ not in _INERT for tensor in given)
            if is_seen or not all(isinstance(mode, DeviceContext) for mode in _modes()):
                return None
            shape = Shape(0, heads=args[4])
            names = dict(_OF_TORCH.__globals__)
            for name, reader in _INSIDE.items():
                names[name] = self._telling(names[name], reader, shape)
            inside = FunctionType(_OF_TORCH.__code__, names, argdefs=_OF_TORCH.__defaults__)
            inside.__kwdefaults__ = _OF_TORCH.__kwdefaults__
        except Exception as error:
            self._failed("", error)
            return None
        return inside

    def _telling(
        self, function: Callable[..., Any], reader: _Reader, shape: Shape
    ) -> Callable[..., Any]:
        """A function that runs another one and tells of it."""

        def run(*args: Any, **kwargs: Any) -> Any:
            output = function(*args, **kwargs)
            self._look(reader, args, kwargs, output, shape)
            return output

        return run

    def _look(
        self,
        reader: _Reader,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,
        shape: Shape | None = None,
    ) -> None:
        name = ""
        try:
            inside = [self.layers[m] for m in running_modules() if m in self.layers]
            if not inside:
                return
            layer = inside[0]
            name = layer.name
            call = reader(shape or Shape(self._batch, layer.heads), *args, **kwargs)
            if call is None:
                return
            if call.over_keys:
                self._found(layer, call)
            else:
                self._undecided = _Undecided(output, _version(output), layer, call)
        except Exception as error:
            self._failed(name, error)

    def _decide(self, undecided: _Undecided, func: Any, args: tuple[Any, ...], output: Any) -> None:
        """See whether the result of a softmax over another axis serves as attention.

        It is kept no longer than its module runs.
        """
        try:
            with torch._C.DisableTorchFunction():
                running = [self.layers[m] for m in running_modules() if m in self.layers]
                is_changed = _version(undecided.weights) != undecided.version
                if is_changed or undecided.layer not in running:
                    self._undecided = None
                elif _sums_over_last_axis(func, args, undecided.weights):
                    self._undecided = None
                    self._found(undecided.layer, undecided.call)
                elif func in _KEEPING and _is_view(args[0], undecided.weights):
                    self._undecided = undecided._replace(weights=output, version=_version(output))
        except Exception as error:
            self._undecided = None
            self._failed(undecided.layer.name, error)

    def _found(self, layer: AttentionLayer, call: AttentionCall) -> None:
        """Tell of a call of attention."""
        call.texts = self._texts
        call.samples = _samples_between(call.shape, self._batch)
        rows = layer.rows
        self._runs(layer.name + ROWS, "output", rows, AttentionRows(call, is_peak=False))
        self._runs(layer.name + PEAK_ROWS, "output", rows, AttentionRows(call, is_peak=True))

    def leave(self) -> None:
        """Take the mode off this thread; does nothing if it is not on."""
        self._undecided = None
        above: list[TorchFunctionMode] = []
        while self in _modes():
            mode = torch._C._pop_torch_function_stack()
            if mode is self:
                break
            above.append(mode)
        for mode in reversed(above):
            torch._C._push_on_torch_function_stack(mode)


def _modes() -> list[Any]:
    """The function modes of this thread, the innermost last."""
    count = torch._C._len_torch_function_stack()
    return [torch._C._get_function_stack_at(place) for place in range(count)]
