"""What ranks decide together, and what a rank does that cannot ask the others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from fmapboard.measure.norms import PendingNorms
from fmapboard.model.distributed import Agreement


@pytest.mark.parametrize("answer", [True, False])
def test_a_single_process_decides_alone(answer: bool) -> None:
    assert Agreement.among(nn.Conv2d(3, 4, 3)).all_say(answer) is answer


@pytest.mark.parametrize(("own", "other", "expected"), [(1, 1, True), (1, 0, False), (0, 1, False)])
def test_the_answer_is_yes_if_every_rank_says_yes(
    own: int, other: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_reduce(tensor: Tensor, op: Any, group: object) -> None:
        assert op is dist.ReduceOp.MIN
        tensor.clamp_(max=other)

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    assert Agreement("group").all_say(bool(own)) is expected


def test_after_a_rank_did_not_answer_nobody_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def all_reduce(tensor: Tensor, op: object, group: object) -> None:
        asked.append(group)
        raise RuntimeError("timed out")

    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    agreement = Agreement("group")
    assert agreement.why_not == "it failed on another rank"
    with pytest.raises(RuntimeError, match="timed out"):
        agreement.all_say(True)
    assert agreement.all_say(True) is False
    assert asked == ["group"]
    assert agreement.why_not.startswith("the ranks cannot ask each other")


def test_a_norm_that_another_rank_could_not_read_is_not_known() -> None:
    values = torch.tensor([1.5, -1.0, torch.nan, 0.0])
    found = PendingNorms(("a", "b", "c", "d"), values).to_host()
    assert list(found) == ["a", "c", "d"]
