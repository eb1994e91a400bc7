"""Rows and numbers of attention, compared with whole matrices."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fmapboard.capture import attention
from fmapboard.capture.attention import AttentionCall, AttentionLayer, AttentionRows, Shape
from fmapboard.measure import head_rows
from fmapboard.measure.head_rows import HeadRows

N, H, T, D = 3, 2, 5, 4


def values(*shape: int) -> Tensor:
    return torch.randn(shape) * 2


def called(function: Any, *args: Any, batch: int = N, **kwargs: Any) -> HeadRows:
    """What is read of a call of a function of torch."""
    call = attention._READERS[function](Shape(batch, H), *args, **kwargs)
    assert isinstance(call, AttentionCall)
    return call.read()


def check(found: HeadRows, logits: Tensor, row: int) -> None:
    """Compare what was read with logits [N, H, T, K]: all queries are sampled, as there are few."""
    heads = logits.shape[1]
    whole = logits.softmax(-1)
    torch.testing.assert_close(found.rows, whole[:, :, row])
    peak = logits.amax(-1).argmax(-1)  # [N, H]
    torch.testing.assert_close(
        found.peak_rows, torch.stack([whole[n][range(heads), peak[n]] for n in range(len(whole))])
    )
    keys = logits.isfinite().sum(-1)
    relative = torch.special.entr(whole).sum(-1) / keys.log()
    expected = [relative[:, h][keys[:, h] > 1].mean() for h in range(heads)]
    torch.testing.assert_close(found.numbers[0], torch.stack(expected))
    torch.testing.assert_close(found.numbers[1], logits.amax((0, 2, 3)))
    torch.testing.assert_close(found.numbers[2], whole[..., 0].mean((0, 2)))


sdpa = functional.scaled_dot_product_attention


def test_the_row_of_the_first_token_and_the_one_with_the_largest_logit_are_read() -> None:
    q, k = values(N, H, T, D), values(N, H, 7, D)
    check(called(sdpa, q, k, k), q @ k.mT / 2, 0)
    check(called(sdpa, q, k, k, scale=0.1), q @ k.mT * 0.1, 0)


def test_only_functions_of_attention_are_looked_at_and_a_function_without_a_hash_runs() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, x: Tensor) -> Tensor:
            if torch.overrides.has_torch_function_unary(x):
                found: Tensor = torch.overrides.handle_torch_function(self, (x,), x)
                return found
            return x + 1

    looked = []
    mode = attention.AttentionMode({}, 0, attention.Texts({}), lambda *_: None, lambda *_: None)
    mode._look = lambda *given: looked.append(given)  # type: ignore[method-assign]
    x = values(N, H, T, T)
    with mode:
        assert torch.equal(Unhashable()(x), x + 1)
        x.softmax(-1).sum()
    assert [reader for reader, *_ in looked] == [attention._of_softmax]


def test_the_row_of_the_last_token_is_read_in_causal_attention() -> None:
    q, k = values(N, H, T, D), values(N, H, T, D)
    seen = torch.ones(T, T, dtype=torch.bool).tril()
    expected = (q @ k.mT / 2).masked_fill(~seen, -math.inf)
    check(called(sdpa, q, k, k, is_causal=True), expected, -1)
    check(called(sdpa, q, k, k, seen), expected, -1)
    added = torch.zeros(1, 1, T, T).masked_fill(~seen, -math.inf)
    check(called(sdpa, q, k, k, attn_mask=added), expected, -1)


def test_keys_of_padding_are_hidden_and_a_row_without_keys_is_zero() -> None:
    q, k = values(N, H, T, D), values(N, H, T, D)
    seen = torch.ones(N, 1, 1, T, dtype=torch.bool)
    seen[1, ..., 3:] = False
    check(called(sdpa, q, k, k, seen), (q @ k.mT / 2).masked_fill(~seen, -math.inf), 0)
    seen[2] = False
    assert called(sdpa, q, k, k, seen).rows[2].abs().max() == 0


def test_groups_of_heads_share_their_keys() -> None:
    q, k = values(N, 4, T, D), values(N, 2, T, D)
    check(called(sdpa, q, k, k, enable_gqa=True), q @ k[:, [0, 0, 1, 1]].mT / 2, 0)


def test_keys_that_all_images_share_are_read() -> None:
    q, k = values(N, H, T, D), values(1, H, T, D)
    check(called(sdpa, q, k, k), q @ k.mT / 2, 0)


def test_halves_are_read_in_float32() -> None:
    q, k = values(N, H, T, D).bfloat16(), values(N, H, T, D).bfloat16()
    check(called(sdpa, q, k, k), q.float() @ k.float().mT / 2, 0)


def test_a_softmax_of_logits_is_read_from_them() -> None:
    logits = values(N, H, T, T)
    check(called(functional.softmax, logits, dim=-1), logits, 0)
    check(called(torch.softmax, logits, 3), logits, 0)
    check(called(Tensor.softmax, logits, -1, dtype=torch.float64), logits, 0)


@pytest.mark.parametrize(
    ("shape", "dim"), [((N, T), -1), ((N, H, T, T), 0), ((N, H, T, T + 1), -1), ((N, H, 7, T), -2)]
)
def test_another_softmax_is_not_taken_for_attention(shape: tuple[int, ...], dim: int) -> None:
    assert attention._of_softmax(Shape(N, 0), values(*shape), dim) is None


def test_a_softmax_with_other_keys_is_attention_if_its_heads_are_those_of_the_module() -> None:
    logits = values(N, H, T, T + 2)
    check(called(functional.softmax, logits, -1), logits, 0)
    # Deformable attention: [N, queries, heads, points].
    assert attention._of_softmax(Shape(N, H), values(N, T, H, 4), -1) is None
    assert attention._of_softmax(Shape(N, 3), values(N, H, T, T), -1) is None


def test_of_windows_the_first_one_is_read_and_the_one_with_the_largest_logit() -> None:
    logits = values(2 * 3, H, T, T)
    logits[4, 1, 2, 3] = 20.0  # in the second window of the second image
    found = called(functional.softmax, logits, -1, batch=2)
    whole = logits.softmax(-1)
    torch.testing.assert_close(found.rows, whole[[0, 3], :, 0])
    torch.testing.assert_close(found.peak_rows[1, 1], whole[4, 1, 2])
    assert found.numbers[1, 1] == 20.0
    five_axes = called(functional.softmax, logits.view(2, 3, H, T, T), -1, batch=2)
    assert torch.equal(five_axes.rows, found.rows)


def test_at_most_eight_images_are_read() -> None:
    assert called(functional.softmax, values(20, H, T, T), -1, batch=20).rows.shape == (8, H, T)


@pytest.mark.parametrize("queries", [1, T])
def test_of_images_that_are_not_drawn_the_largest_logit_is_not_searched(queries: int) -> None:
    q, k = values(N, H, queries, D), values(N, H, T, D)
    call = attention._READERS[sdpa](Shape(N, H), q, k, k)
    assert call is not None
    found = call.read(drawn=1)
    whole = called(sdpa, q, k, k)
    torch.testing.assert_close(found.rows, whole.rows)
    torch.testing.assert_close(found.numbers, whole.numbers, equal_nan=True)
    torch.testing.assert_close(found.peak_rows, whole.peak_rows[:1])


def test_in_other_images_the_rows_that_are_sampled_tell_the_largest_logit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_rows, "_SAMPLED", 3)  # every second row
    logits = values(N, H, T, T)
    logits[0, 0, 1, 0] = 20.0
    logits[2, 0, 1, 0] = 40.0  # of no sampled row
    logits[2, 1, 2, 0] = 30.0
    call = attention._READERS[functional.softmax](Shape(N, H), logits, -1)
    assert call is not None
    assert call.read(drawn=2).numbers[1].tolist() == [20.0, 30.0]


def test_long_sequences_are_read_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every second row, and as many as fit at once."""
    q, k = values(N, H, T, D), values(N, H, T, D)
    monkeypatch.setattr(head_rows, "_MOST_LOGITS", N * H * T)
    monkeypatch.setattr(head_rows, "_MOST_QUERIES", 3)
    q[:, :, 1::2] *= 1e-3  # the rows that are left out
    found = called(sdpa, q, k, k)
    logits = q @ k.mT / 2
    peak = logits.amax(-1).argmax(-1)
    expected = [logits.softmax(-1)[n][range(H), peak[n]] for n in range(len(found.rows))]
    torch.testing.assert_close(found.peak_rows, torch.stack(expected))


class Products(TorchDispatchMode):
    """Counts products of matrices; those of attention have three axes."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return func(*args, **(kwargs or {}))


class Seen(NamedTuple):
    """What a module returns, and what is read of it."""

    output: Tensor
    weights: Tensor
    rows: list[Tensor]


def torchs_own(mha: nn.MultiheadAttention, *given: Tensor, **options: Any) -> Seen:
    """Call torch's own module."""
    found: list[Any] = []

    def seen(name: str, side: str, module: nn.Module, rows: AttentionRows) -> None:
        found.append(rows.read())

    def failed(name: str, error: Exception) -> None:
        raise error

    layer = AttentionLayer("mha", H, attention.stand_in("Attention 2×4"))
    mode = attention.AttentionMode({mha: layer}, 0, attention.Texts({}), seen, failed)
    with torch.no_grad(), mode:
        output, weights = mha(*given, average_attn_weights=False, **options)
    return Seen(output, weights, [rows.values for rows in found])


@pytest.mark.parametrize("batch", [(N,), ()])
def test_attention_of_torchs_own_module_is_read_from_what_it_projects(
    batch: tuple[int, ...],
) -> None:
    torch.manual_seed(0)
    mha = nn.MultiheadAttention(H * D, H, kdim=3, vdim=3, add_bias_kv=True)
    query, key = values(T, *batch, H * D), values(4, *batch, 3)
    padding = torch.tensor([[False] * 4, [False] * 3 + [True], [False] * 4])[: len(batch) * N or 1]
    options = {"key_padding_mask": padding if batch else padding[0]}
    with torch.no_grad(), Products() as products:
        bare = mha(query, key, key, average_attn_weights=False, **options)
        first = products.count
        asked = torchs_own(mha, query, key, key, **options)
        assert products.count == 2 * first
    assert torch.equal(asked.output, bare[0])
    assert torch.equal(asked.weights, bare[1])
    whole = bare[1].view(-1, H, T, 5)
    torch.testing.assert_close(asked.rows[0], whole[:, :, 0])
    with torch.device("cpu"):  # a mode too
        fused = torchs_own(mha, query, key, key, need_weights=False, **options)
    torch.testing.assert_close(fused.rows[0], whole[:, :, 0])
    torch.testing.assert_close(fused.rows[1], asked.rows[1])


def test_a_mode_of_the_users_sees_torchs_own_attention_as_without_us() -> None:
    class Mode(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            called.append(func)
            return func(*args, **(kwargs or {}))

    called: list[Any] = []
    mha = nn.MultiheadAttention(H * D, H)
    query = values(T, N, H * D)
    with Mode():
        assert torchs_own(mha, query, query, query).rows == []
    assert functional.multi_head_attention_forward in called


def test_tensors_that_cannot_be_read_are_left_alone() -> None:
    meta = torch.empty(N, H, T, D, device="meta")
    assert attention._of_products(Shape(N, H), meta, meta, meta) is None
    nested = torch.nested.nested_tensor([values(H, T, D)], layout=torch.jagged)
    assert attention._of_products(Shape(N, H), nested, nested, nested) is None


@pytest.mark.parametrize("axis", [-2, -3])
def test_a_softmax_over_another_axis_is_read_as_the_weights_that_it_makes(axis: int) -> None:
    logits = values(N, H, T, T)
    weights = logits.softmax(axis)
    call = attention._of_softmax(Shape(N, H), logits, axis + 4)
    assert call is not None
    found = call.read()
    torch.testing.assert_close(found.rows, weights[:, :, 0])
    torch.testing.assert_close(found.numbers[2], weights[..., 0].mean((0, 2)))
    off = (weights.sum(-1) - 1).abs().amax((0, 2))
    torch.testing.assert_close(found.numbers[5], off)
    assert found.numbers[1].isnan().all()
    assert called(functional.softmax, logits, -1).numbers[5].isnan().all()


class Own(nn.Module):
    """Computes something of logits and values."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, logits: Tensor, v: Tensor) -> Tensor:
        found: Tensor = self.function(logits, v)
        return found


def rows_of(function: Any, logits: Tensor, v: Tensor) -> list[HeadRows]:
    """What is read of an attention module that does not say how many heads it has."""
    found: list[HeadRows] = []

    def seen(name: str, side: str, module: nn.Module, rows: AttentionRows) -> None:
        found.append(rows.call.read())

    def failed(name: str, error: Exception) -> None:
        raise error

    own = Own(function)
    layer = AttentionLayer("own", 0, attention.stand_in("Attention 8"))
    mode = attention.AttentionMode({own: layer}, N, attention.Texts({}), seen, failed)
    with mode:
        own(logits, v)
        assert mode._undecided is None or mode._undecided.layer is layer
        torch.add(v, 1)
        assert mode._undecided is None  # which holds the weights
    return found


def normalized_in_place(logits: Tensor, v: Tensor) -> Tensor:
    weights = logits.softmax(-2)
    weights /= weights.sum(-1, keepdim=True)
    return weights @ v


@pytest.mark.parametrize("axis", [-2, 1])
@pytest.mark.parametrize(
    "product",
    [
        lambda weights, v: weights @ v,
        lambda weights, v: torch.matmul(weights.to(torch.float32), v),
        lambda weights, v: torch.bmm(weights.flatten(0, 1), v.flatten(0, 1)),
        lambda weights, v: functional.dropout(weights, 0.5) @ v,
        lambda weights, v: torch.einsum("nhij,nhjd->nhid", weights, v),
        lambda weights, v: torch.einsum("nhjd, nhij -> nihd", v, weights),
    ],
)
def test_a_softmax_over_another_axis_is_attention_if_the_last_one_is_summed_over(
    axis: int, product: Any
) -> None:
    logits = values(N, H, T, T)
    first, _ = rows_of(lambda x, v: product(x.softmax(axis), v), logits, values(N, H, T, D))
    weights = logits.softmax(axis)
    torch.testing.assert_close(first.rows, weights[:, :, 0])
    assert first.numbers[5].isfinite().all()


@pytest.mark.parametrize(
    "product",
    [
        lambda logits, v: logits.softmax(-2).mT @ v,
        lambda logits, v: torch.einsum("nhji,nhjd->nhid", logits.softmax(-2), v),
        lambda logits, v: torch.einsum("nhij,nhjd", logits.softmax(-2), v),
        lambda logits, v: (logits.softmax(-2) / logits.sum(-1, keepdim=True)) @ v,
        lambda logits, v: logits.softmax(-2).sum(-1),
        normalized_in_place,
    ],
)
def test_a_softmax_over_the_axis_that_is_summed_over_or_without_a_sum_is_not(
    product: Any,
) -> None:
    assert rows_of(product, values(N, H, T, T), values(N, H, T, D)) == []


@pytest.mark.parametrize(
    ("shape", "batch", "samples"),
    [
        ((T, H, N, N), N, N),
        ((T, 2, H, N, N), N, N),
        ((N, H, T, T), N, 0),
        ((T, H, N, N), 0, 0),
        ((1, H, N, N), N, 0),
        ((H, N, N), N, 0),
        ((2 * N, H, N, N), N, 0),  # windows of as many tokens as there are samples
        ((T, H, N, N + 1), N, 0),
    ],
)
def test_attention_is_between_the_samples_if_they_are_the_tokens(
    shape: tuple[int, ...], batch: int, samples: int
) -> None:
    assert attention._samples_between(shape, batch) == samples


def test_padding_is_looked_for_in_texts_as_long_as_the_keys() -> None:
    ids = torch.tensor([[5, 6, 7, 8, 0], [5, 6, 7, 0, 0]])[:, :T]
    texts = attention.Texts({T: ids})
    keys = texts.keys((2, 1, H, T, T))
    assert keys is not None
    assert keys.padding.sum(1).tolist() == [1, 2]
    assert texts.keys((2, 1, H, T, T)) is keys
    for other in ((2, 1, H, T - 1, T), (2, 1, H, T + 1, T + 1), (3, 1, H, T, T)):
        assert texts.keys(other) is None
