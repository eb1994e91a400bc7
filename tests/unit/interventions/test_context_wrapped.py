"""`intervene` acts on models in DistributedDataParallel and on DataParallel's replicas."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import distributed, nn

from fmapboard import extract, intervene, scale, silence

X = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


@pytest.mark.parametrize("name", ["stem", "module.stem"])
def test_a_distributed_model_is_changed_and_all_parameters_get_gradients(
    name: str, tmp_path: Path
) -> None:
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = NestedNet()
        wrapped = nn.parallel.DistributedDataParallel(model)
        with intervene(wrapped, {name: silence()}, gradients={"head": scale(2.0)}):
            for _ in range(2):  # the second pass fails if a parameter got no gradient in the first
                wrapped(X).sum().backward()
            assert not extract(wrapped, X, "stem")["stem"].any()
        assert all(parameter.grad is not None for parameter in model.parameters())
        assert not model.stem.weight.grad.any()
        assert model.head.bias.grad.tolist() == [8.0, 8.0, 8.0, 8.0]
        assert hook_count(model) == 0
    finally:
        distributed.destroy_process_group()


def test_a_replica_of_data_parallel_is_changed_inside_the_block_only() -> None:
    layer = nn.Conv2d(3, 4, 3)
    replica = layer._replicate_for_data_parallel()
    replica.weight, replica.bias = layer.weight.detach(), layer.bias.detach()
    before = replica(X)
    with intervene(nn.Sequential(layer), {"0": silence([1])}):
        inside = replica(X)
    assert not inside[:, 1].any()
    assert torch.equal(inside[:, 2:], before[:, 2:])
    assert torch.equal(replica(X), before)
