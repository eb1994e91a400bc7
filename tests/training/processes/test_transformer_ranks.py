"""Two gloo processes that train transformers, whose blocks, attention and experts are watched."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from two_ranks import run_ranks

NETWORKS = ("torchvision ViT",)
KINDS = [f"{kind} {name}" for kind in ("ddp", "fsdp") for name in NETWORKS]
PARTS = {
    "torchvision ViT": "encoder.layers.encoder_layer_1.self_attention.rows",
}
"""A layer of each network that only transformers have."""

Ranks = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """What both ranks recorded of all trainings."""
    if not torch.distributed.is_available() or torch.__version__ < "2.7":
        pytest.skip("fully_shard of torch 2.6 cannot run on a CPU at all")
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks("transformer_ranks.py", folder, *KINDS, FMAPBOARD_ON_ERROR="raise")
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_train_a_transformer_as_if_unwatched_though_one_catches_an_exception(
    ranks: Ranks, kind: str
) -> None:
    ways = ("seen", "merged") if "ddp" in kind else ("seen",)
    for rank in ranks:
        for way in ways:
            for left in ("state", "random"):
                assert rank[f"{way} {kind}"][left] == rank[f"bare {kind}"][left]
            assert rank[f"{way} {kind}"]["messages"] == []
    assert ranks[0][f"seen {kind}"]["state"] == ranks[1][f"seen {kind}"]["state"]
    for step in ("0", "1", "2"):
        assert PARTS[kind.partition(" ")[2]] in ranks[0][f"seen {kind}"]["means"][step]


@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_of_heads_and_experts_are_merged_in_all_steps_but_the_one_with_the_exception(
    ranks: Ranks, name: str
) -> None:
    alone, merged = (ranks[0][f"{how} ddp {name}"]["means"] for how in ("seen", "merged"))
    assert [step.keys() for step in alone.values()] == [step.keys() for step in merged.values()]
    part = PARTS[name]
    assert [step for step in alone if alone[step][part] != merged[step][part]] == ["0", "2"]
