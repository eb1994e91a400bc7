"""``AttentionMode``: sees the attention that modules compute in a recorded pass.

It sees calls of ``scaled_dot_product_attention`` and ``multi_head_attention_forward``, and those of
a softmax over the last axis of a tensor [N, heads, T, K] or [N, windows, heads, T, K]. From the
queries and keys, or from the argument of the softmax, a few rows are computed once more, in float32
or wider, without dropout and outside of autograd (see ``measure.head_rows`` for letters of axes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

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
        logits: returns its logits.

    Attributes:
        device: of the tensors.
        nbytes: how many bytes are read.
    """

    def __init__(self, given: Tensor, logits: Callable[[], Logits]) -> None:
        self.device = given.device
        self.nbytes = given.nbytes
        self._logits = logits
        self._read: HeadRows | None = None

    def read(self) -> HeadRows:
        """What is read of it, computed once; call it inside ``isolation.aside``."""
        if self._read is None:
            self._read = read_heads(self._logits())
        return self._read


class AttentionRows(NamedTuple):
    """What a listener receives in place of an output.

    Attributes:
        call: the call.
        is_peak: which of its rows are meant.
    """

    call: AttentionCall
    is_peak: bool

    def read(self) -> ReadRows:
        """Compute them; call it inside ``isolation.aside``."""
        found = self.call.read()
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
        values: [n, H, K].
        numbers: [3, H], see ``HeadRows``; None with rows of the largest logit.
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
        groups = queries.shape[2] // keys.shape[2]
        of_heads = wide(keys[:images]).repeat_interleave(groups, 2)
        return Products(queries[:images], of_heads, factor, masks, is_causal=is_causal)

    return AttentionCall(query, logits)


def _of_projections(
    expected: Shape,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    *_: Any,
    key_padding_mask: Tensor | None = None,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    **__: Any,
) -> AttentionCall | None:
    """A call of ``multi_head_attention_forward``; None if its tensors cannot be read."""
    weights = [in_proj_weight]
    if use_separate_proj_weight:
        weights = [q_proj_weight, k_proj_weight]
    given = [query, key, *weights, in_proj_bias, attn_mask, key_padding_mask]
    readable = [tensor is None or _is_readable(tensor) for tensor in given]
    has_more_keys = bias_k is not None or static_k is not None or add_zero_attn
    if has_more_keys or not all(readable) or any(weight is None for weight in weights):
        return None
    features = embed_dim_to_check // num_heads

    def logits() -> Logits:
        queries = query if query.dim() == 3 else query.unsqueeze(1)  # [T, N, E]
        keys = key if key.dim() == 3 else key.unsqueeze(1)
        images = _images(queries[:, 0].numel() + keys[:, 0].numel())
        shape = (queries.shape[1], 1, num_heads, len(queries), len(keys))
        masks = []
        if attn_mask is not None:
            mask = attn_mask if attn_mask.dim() == 2 else attn_mask.view(shape)
            masks.append(mask.expand(shape)[:images])
        if key_padding_mask is not None:
            padding = key_padding_mask.view(-1, 1, 1, 1, len(keys))
            masks.append(padding.expand(shape)[:images])
        parts = weights if use_separate_proj_weight else _parts(in_proj_weight)
        biases = _parts(in_proj_bias)
        own = _projected(queries[:, :images], parts[0], biases[0], num_heads)
        others = _projected(keys[:, :images], parts[1], biases[1], num_heads)
        return Products(own, others, features**-0.5, tuple(masks), hides=True)

    return AttentionCall(query, logits)


def _projected(tokens: Tensor, weight: Tensor | None, bias: Tensor | None, heads: int) -> Tensor:
    """Queries or keys [n, 1, H, T, D] of tokens [T, n, E]."""
    assert weight is not None
    found = functional.linear(wide(tokens), wide(weight))
    if bias is not None:
        found = found + wide(bias)
    by_head = found.view(*found.shape[:2], heads, -1)  # [T, n, H, D]
    return by_head.permute(1, 2, 0, 3).unsqueeze(1)


def _parts(packed: Tensor | None) -> Sequence[Tensor | None]:
    """What a packed weight or bias has for queries, keys and values."""
    return (None, None, None) if packed is None else packed.chunk(3)


def _of_softmax(
    expected: Shape, input: Tensor, dim: int | None = None, *_: Any, **__: Any
) -> AttentionCall | None:
    """A softmax of an eager attention; None for any other softmax, or if it cannot be read."""
    axes = input.dim()
    if axes not in (4, 5) or dim not in (-1, axes - 1) or not _is_readable(input):
        return None
    heads, queries, keys = input.shape[-3:]
    if heads != expected.heads and (expected.heads or queries != keys):
        return None

    def logits() -> Logits:
        values = _by_image(input, expected.batch)
        return Given(values[: _images(values[0, ..., 0].numel())])

    return AttentionCall(input, logits)


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
    functional.multi_head_attention_forward: _of_projections,
    functional.softmax: _of_softmax,
    torch.softmax: _of_softmax,
    Tensor.softmax: _of_softmax,
}


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


class AttentionMode(TorchFunctionMode):
    """Sees the calls of attention inside the watched attention modules of a pass.

    It changes neither what operations receive nor what they return. While it is on, the fast path
    of ``MultiheadAttention`` is off, and torch.compile would compile again: see ``obstacle`` and
    ``attention_beside``.

    Args:
        layers: the attention modules.
        batch: how many images the network received; 0 if that is not known.
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
        runs: Callable[[str, Literal["output"], nn.Module, AttentionRows], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        super().__init__()
        self.layers = layers
        self._batch = batch
        self._runs = runs
        self._failed = failed

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run a function of torch, and tell of it if it is attention."""
        output = func(*args, **(kwargs or {}))
        try:
            reader = _READERS.get(func)
        except TypeError:  # a function of the user's that has no hash
            return output
        if reader is not None and not torch.compiler.is_compiling():
            self._look(reader, args, kwargs or {})
        return output

    def _look(self, reader: _Reader, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        name = ""
        try:
            inside = [self.layers[m] for m in running_modules() if m in self.layers]
            if not inside:
                return
            name, heads, rows = inside[0]
            call = reader(Shape(self._batch, heads), *args, **kwargs)
            if call is not None:
                self._runs(name + ROWS, "output", rows, AttentionRows(call, is_peak=False))
                self._runs(name + PEAK_ROWS, "output", rows, AttentionRows(call, is_peak=True))
        except Exception as error:
            self._failed(name, error)

    def leave(self) -> None:
        """Take the mode off this thread; does nothing if it is not on."""
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
