"""Heads, units of MLPs and experts of trained transformers: the checks that look for channels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import Finding, run_checks
from fmapboard.health.read_runs import read_runs

WIDTH = 16
STEPS = 80
EVERY = 10


class Attention(nn.Module):
    """Four heads of four features."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 4
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(*parts)  # [N, H, T, D]
        return self.proj(found.transpose(1, 2).flatten(2))


class Mixture(nn.Module):
    """Four experts, of which two are chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.top_k = 2
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(mlp(nn.ReLU) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.gate(x).softmax(-1)
        chosen = scores.topk(2, -1)
        share = torch.zeros_like(scores).scatter(-1, chosen.indices, chosen.values)
        return sum(share[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


def mlp(act: Callable[[], nn.Module]) -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), act(), nn.Linear(2 * WIDTH, WIDTH))


class Block(nn.Module):
    def __init__(self, second: nn.Module) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = second

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A ViT of two blocks; the second one's MLP is a mixture of experts."""

    def __init__(self, act: Callable[[], nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, 4, 4)
        self.blocks = nn.ModuleList([Block(mlp(act)), Block(Mixture())])
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).mT  # [N, 16, C]
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


Spoil = Callable[[Transformer], object]


def found_in(
    folder: Path, *spoilt: Spoil, act: Callable[[], nn.Module] = nn.ReLU, since: int = 0
) -> dict[str, Finding]:
    """Train with mistakes that begin at a step; kind -> what the checks find in the stored run."""
    torch.manual_seed(0)
    model = Transformer(act)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    with fmapboard.watch(model, folder, optimizer=optimizer, every=EVERY):
        for step in range(STEPS):
            if step == since:
                with torch.no_grad():
                    for spoil in spoilt:
                        spoil(model)
            labels = torch.randint(4, (32,))
            images = torch.randn(32, 3, 16, 16) + 0.5 * labels.view(-1, 1, 1, 1)
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    ((record,),) = (run.records for run in read_runs(folder))
    return {found.kind: found for found in run_checks(record).findings}


def same_queries(model: Transformer) -> None:
    """Queries of the second and third head of the first block are 0."""
    model.blocks[0].attn.qkv.weight[4:12].zero_()
    model.blocks[0].attn.qkv.bias[4:12].zero_()
    model.blocks[0].attn.qkv.weight.register_hook(lambda gradient: without_rows(gradient, 4, 12))
    model.blocks[0].attn.qkv.bias.register_hook(lambda gradient: without_rows(gradient, 4, 12))


def without_rows(gradient: Tensor, start: int, stop: int) -> Tensor:
    kept = gradient.clone()
    kept[start:stop] = 0
    return kept


def large_logits(model: Transformer) -> None:
    model.blocks[1].attn.qkv.weight[: 2 * WIDTH] *= 60


def dead_units(model: Transformer) -> None:
    model.blocks[0].mlp[0].bias.fill_(-20.0)


def left_out_experts(model: Transformer) -> None:
    model.blocks[1].mlp.gate.bias.copy_(torch.tensor([9.0, 9.0, -9.0, -9.0]))


def test_nothing_is_found_in_a_healthy_transformer(tmp_path: Path) -> None:
    assert found_in(tmp_path) == {}


def test_heads_that_attend_to_all_tokens_alike_are_named_with_their_first_step(
    tmp_path: Path,
) -> None:
    found = found_in(tmp_path, same_queries, since=20)
    assert list(found) == ["dead_heads"]
    assert found["dead_heads"].message == (
        "2 of 4 heads of `blocks.0.attn.rows` attend to all tokens alike since step 20"
    )


def test_heads_whose_logits_are_beyond_softmax_are_named(tmp_path: Path) -> None:
    found = found_in(tmp_path, large_logits)
    assert list(found) == ["dead_heads"]
    assert found["dead_heads"].message == (
        "4 of 4 heads of `blocks.1.attn.rows` attend to a single token since step 0"
    )


def test_dead_units_and_experts_beside_dead_heads_are_each_named(tmp_path: Path) -> None:
    found = found_in(tmp_path, same_queries, dead_units, left_out_experts, since=20)
    assert {kind: (one.layer, one.since_step) for kind, one in found.items()} == {
        "dead_heads": ("blocks.0.attn.rows", 20),
        "dead": ("blocks.0.mlp.1", 20),
        "dead_experts": ("blocks.1.mlp.gate", 20),
    }


def same_units(model: Transformer) -> None:
    """All units of the first MLP are copies."""
    first = model.blocks[0].mlp[0]
    first.weight.copy_(first.weight[:1].expand(2 * WIDTH, -1))
    first.bias.fill_(0.1)


def same_heads(model: Transformer) -> None:
    """All heads of the first block have the weights of its first one."""
    for parameter in model.blocks[0].attn.qkv.parameters():
        by_head = parameter.unflatten(0, (3, 4, 4))
        by_head[:, 1:] = by_head[:, :1].clone()


def infinite_units(model: Transformer) -> None:
    model.blocks[0].mlp[0].bias[3] = float("inf")


def same_values(model: Transformer) -> None:
    """Each unit of the first MLP has one value, and gets no gradient that would change it."""
    first = model.blocks[0].mlp[0]
    first.weight.zero_()
    first.bias.fill_(0.5)
    first.weight.register_hook(torch.zeros_like)


def infinite_queries(model: Transformer) -> None:
    model.blocks[1].attn.qkv.weight[0, 0] = float("inf")


def test_units_of_gelu_far_below_0_are_dead_and_called_units(tmp_path: Path) -> None:
    found = found_in(tmp_path, dead_units, act=nn.GELU)
    assert found["dead"].message == "100 % of 32 units dead in `blocks.0.mlp.1` since step 0"


def test_copied_units_and_heads_are_called_so(tmp_path: Path) -> None:
    found = found_in(tmp_path / "heads", same_heads, same_units)
    assert found["copied_channels"].message == (
        "100 % of the drawn heads in `blocks.0.attn.rows` have a copy in the layer at step 0, and "
        "in 1 further layer"
    )
    assert found["copied_channels"].advice.startswith("Check that each head receives features")
    units = found_in(tmp_path / "units", same_units, act=nn.GELU)
    assert units["copied_channels"].message == (
        "100 % of the drawn units in `blocks.0.mlp.1` have a copy in the layer at step 0"
    )
    assert units["copied_channels"].advice == (
        "Initialize the weights at random, not with a constant"
    )


def test_heads_that_are_not_finite_are_named_beside_experts(tmp_path: Path) -> None:
    found = found_in(tmp_path, infinite_queries, left_out_experts, since=20)
    first = found["nonfinite"]
    assert (first.layer, first.since_step) == ("blocks.1.attn.rows", 20)
    assert first.meaning.startswith("It is not recorded whether the layer's weights were finite")
    assert found["dead_experts"].since_step == 20


def test_units_that_are_not_finite_are_named_with_their_first_step(tmp_path: Path) -> None:
    found = found_in(tmp_path, infinite_units, same_queries, since=20)
    first = found["nonfinite"]
    assert (first.layer, first.since_step) == ("blocks.0.mlp.1", 20)
    assert first.meaning.startswith("It is not recorded whether the layer's weights were finite")


def test_units_of_one_value_are_constant_since_their_first_step(tmp_path: Path) -> None:
    found_in(tmp_path, same_values, since=20)
    ((record,),) = (run.records for run in read_runs(tmp_path))
    table = record.layers()
    row = table.index("", "blocks.0.mlp.1")
    assert row is not None
    assert table.since["constant"] == {row: 20}
