"""Two gloo processes that train transformers, whose blocks, attention and experts are watched."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from two_ranks import run_ranks

PARTS = {
    "torchvision ViT": "encoder.layers.encoder_layer_1.self_attention.rows",
    "transformers GPT-2": "transformer.h.1",
    "transformers Mixtral": "model.layers.1.mlp.gate",
}
"""A layer of each network that only transformers have."""

IN_CI = "torchvision ViT"
NETWORKS = [pytest.param(name, marks=() if name == IN_CI else pytest.mark.sweep) for name in PARTS]
Ranks = list[dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ranks]:
    """Returns what both ranks recorded of the trainings of a network."""
    if not torch.distributed.is_available() or torch.__version__ < "2.7":
        pytest.skip("fully_shard of torch 2.6 cannot run on a CPU at all")

    @cache
    def run(name: str) -> Ranks:
        folder = tmp_path_factory.mktemp("ranks")
        kinds = [f"{kind} {name}" for kind in ("ddp", "fsdp")]
        run_ranks("transformer_ranks.py", folder, *kinds, FMAPBOARD_ON_ERROR="raise")
        return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]

    return run


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", NETWORKS)
def test_ranks_train_a_transformer_as_if_unwatched_though_one_catches_an_exception(
    ranks: Callable[[str], Ranks], name: str, kind: str
) -> None:
    found = ranks(name)
    training = f"{kind} {name}"
    ways = ("seen", "merged") if kind == "ddp" else ("seen",)
    for rank in found:
        for way in ways:
            for left in ("state", "random"):
                assert rank[f"{way} {training}"][left] == rank[f"bare {training}"][left]
            assert rank[f"{way} {training}"]["messages"] == []
    assert found[0][f"seen {training}"]["state"] == found[1][f"seen {training}"]["state"]
    for step in ("0", "1", "2"):
        assert PARTS[name] in found[0][f"seen {training}"]["means"][step]


@pytest.mark.parametrize("name", NETWORKS)
def test_numbers_of_heads_and_experts_are_merged_in_all_steps_but_the_one_with_the_exception(
    ranks: Callable[[str], Ranks], name: str
) -> None:
    alone, merged = (ranks(name)[0][f"{how} ddp {name}"]["means"] for how in ("seen", "merged"))
    assert [step.keys() for step in alone.values()] == [step.keys() for step in merged.values()]
    part = PARTS[name]
    assert [step for step in alone if alone[step][part] != merged[step][part]] == ["0", "2"]
