"""Which experts a router has chosen."""

import torch

from fmapboard.measure.experts import chosen_experts
from fmapboard.records import LayerPart


def router(experts, chosen):
    return LayerPart("", "expert", experts, chosen)


def test_the_largest_scores_of_each_token_are_chosen():
    scores = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])

    assert torch.equal(
        chosen_experts(scores, router(3, 2)), torch.tensor([[[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]])
    )


def test_the_numbers_that_a_router_returns_count_more_than_its_scores():
    scores = torch.tensor([[0.1, 0.7, 0.2]])
    indices = torch.tensor([[0]])

    assert chosen_experts((scores, scores, indices), router(3, 1)).tolist() == [[[1.0, 0.0, 0.0]]]


def test_a_batch_of_sequences_keeps_its_axes():
    assert chosen_experts(torch.rand(2, 5, 4), router(4, 1)).shape == (2, 5, 4)


def test_what_is_neither_scores_nor_numbers_is_not_read():
    assert chosen_experts(torch.rand(2, 5), router(4, 1)) is None
    assert chosen_experts(torch.rand(4), router(4, 1)) is None
