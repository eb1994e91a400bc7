"""Padding of texts, and the weights of keys that attention should hide."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fmapboard.measure.seen_keys import next_weight, padding_of, padding_weight, same_token_gap

T, F = True, False


def padding(*texts: list[int]) -> list[list[bool]]:
    found: list[list[bool]] = padding_of(torch.tensor(texts)).tolist()
    return found


def test_runs_of_different_length_at_the_end_of_texts_are_padding() -> None:
    assert padding([5, 6, 0, 0], [7, 5, 6, 0]) == [[F, F, T, T], [F, F, F, T]]
    assert padding([5, 6, 0, 0], [7, 5, 6, 8]) == [[F, F, T, T], [F, F, F, F]]


def test_so_are_those_at_their_beginning() -> None:
    assert padding([9, 9, 5, 6], [9, 7, 5, 6]) == [[T, T, F, F], [T, F, F, F]]


@pytest.mark.parametrize(
    "texts",
    [
        ([5, 6, 7, 2], [7, 5, 6, 2]),  # each ends in the token for an end
        ([5, 0, 7, 0, 0], [7, 5, 6, 8, 0]),  # the token also stands inside a text
        ([5, 6, 0, 0], [7, 5, 0, 0]),  # of one length
        ([5, 6, 7, 0], [7, 5, 6, 8]),  # a single one
        ([5, 6, 7, 8],),
    ],
)
def test_other_ends_of_texts_are_no_padding(texts: tuple[list[int], ...]) -> None:
    assert not any(map(any, padding(*texts)))


NONE = torch.zeros(1, 4, dtype=torch.bool)


def test_the_weight_of_the_next_key_is_the_smallest_of_the_rows() -> None:
    attention = torch.full((1, 2, 4, 4), 0.25)
    assert next_weight(attention, 1, NONE).tolist() == [0.25, 0.25]
    attention[0, 1, 2, 3] = 0.125
    assert next_weight(attention, 1, NONE).tolist() == [0.25, 0.125]
    assert next_weight(torch.full((1, 1, 4, 4), 0.25).tril(), 1, NONE).tolist() == [0.0]


def test_of_every_third_query_the_next_key_is_found() -> None:
    attention = torch.zeros(1, 1, 3, 8)
    for row, query in enumerate((0, 3, 6)):
        attention[0, 0, row, query + 1] = 0.5
    assert next_weight(attention, 3, torch.zeros(1, 8, dtype=torch.bool)).tolist() == [0.5]


def test_a_next_key_that_is_padding_may_be_hidden() -> None:
    attention: Tensor = torch.full((1, 1, 4, 4), 1 / 3)
    attention[..., 3] = 0
    hidden = torch.tensor([[F, F, F, T]])
    assert next_weight(attention, 1, NONE).tolist() == [0.0]
    assert next_weight(attention, 1, hidden).tolist() == pytest.approx([1 / 3])


def test_the_weight_of_padding_is_that_for_queries_that_are_none_of_padded_texts() -> None:
    attention = torch.full((2, 1, 4, 4), 0.25)
    attention[0, 0, 3] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # of the padding itself
    attention[1] = 1.0  # without padding
    hidden = torch.tensor([[F, F, T, T], [F, F, F, F]])
    assert padding_weight(attention, 1, hidden).tolist() == [0.5]
    assert padding_weight(attention[:, :, ::2], 2, hidden).tolist() == [0.5]
    assert padding_weight(attention, 1, torch.zeros_like(hidden)).isnan().all()


def test_the_gap_is_the_largest_of_equal_tokens_over_the_range_of_the_logits() -> None:
    ids = torch.tensor([[3, 4, 3, 4, 3, 4], [3, 3, 3, 4, 4, 4]])
    alike = torch.tensor([[[0.0, 2, 0, 2, 0, 2]], [[1.0, 1, 1, 8, 8, 8]]])
    other = alike.clone()
    other[1, 0, 2] = 2.0
    hidden = alike.clone()
    hidden[1, 0, 3:] = -1e4  # all tokens 4 of the text
    hidden[1, 0, 2] = 1.5
    partly = alike.clone()
    partly[1, 0, 3] = -torch.inf
    logits = torch.cat([alike, other, hidden, partly], 1)
    assert same_token_gap(logits, ids).tolist() == [0.0, 0.125, 0.25, torch.inf]


def test_few_pairs_of_equal_tokens_and_equal_logits_tell_nothing() -> None:
    ids = torch.tensor([[3] * 8 + [4]])
    logits = torch.arange(9.0).expand(1, 1, 9)
    assert same_token_gap(logits, ids).isnan().all()  # seven pairs
    assert same_token_gap(torch.ones(1, 1, 9), torch.full((1, 9), 3)).isnan().all()
