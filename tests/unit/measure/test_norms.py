"""Norms of gradients on their way to the host."""

from __future__ import annotations

import torch

from fmapboard.measure.norms import PendingNorms


def test_a_norm_that_another_rank_could_not_read_is_not_known() -> None:
    values = torch.tensor([1.5, -1.0, torch.nan, 0.0])
    found = PendingNorms(("a", "b", "c", "d"), values).to_host()
    assert list(found) == ["a", "c", "d"]
