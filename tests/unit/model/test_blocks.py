"""The blocks of a network and their parts are found by structure."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from fmapboard.model import blocks, layers
from fmapboard.model.blocks import find_blocks
from fmapboard.model.layers import WatchedLayers, select
from fmapboard.records import LayerPart


class CausalSelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.n_head = heads

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, -1)
        return self.c_proj(functional.scaled_dot_product_attention(q, k, v))


class Head(nn.Module):
    """One head, which is attention because of what it computes, not of its name."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.key = nn.Linear(width, size)
        self.query = nn.Linear(width, size)
        self.value = nn.Linear(width, size)

    def forward(self, x):
        return torch.softmax(self.query(x) @ self.key(x).mT, -1) @ self.value(x)


class Heads(nn.Module):
    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(width, size) for _ in range(width // size))
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], -1))


class Swiglu(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.w12 = nn.Linear(width, 2 * hidden)
        self.w3 = nn.Linear(hidden, width)

    def forward(self, x):
        a, b = self.w12(x).chunk(2, -1)
        return self.w3(functional.silu(a) * b)


class Router(nn.Module):
    """A softmax over experts, which is no attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.top_k = 2
        self.gate = nn.Linear(width, 4)
        self.experts = nn.ModuleList(mlp(width, 2 * width) for _ in range(4))

    def forward(self, x):
        weights = torch.softmax(self.gate(x), -1)
        return sum(weights[..., k : k + 1] * expert(x) for k, expert in enumerate(self.experts))


class ChannelGate(nn.Module):
    """Squeeze and excitation, whose class calls itself attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, width // 4)
        self.up = nn.Linear(width // 4, width)

    def forward(self, x):
        gate = self.up(self.down(x.mean((2, 3))).relu()).sigmoid()
        return x * gate[..., None, None]


class ChannelAttention(ChannelGate):
    pass


class Block(nn.Module):
    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        for name, part in zip(("mixer", "rest"), parts, strict=False):
            self.add_module(name, part)

    def forward(self, x):
        for part in self.children():
            x = x + part(x)
        return x


def mlp(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def shapes(model: nn.Module) -> dict[str, str]:
    return {
        name: part.shape for name, part in find_blocks(dict(model.named_modules())).parts.items()
    }


def test_of_a_block_its_output_its_attention_and_its_hidden_activation_are_parts():
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), mlp(32, 64)))

    assert shapes(nn.ModuleList([model])) == {
        "0.0": "Block 32",
        "0.0.mixer": "Attention 4×8",
        "0.0.rest.1": "MLP 32→64",
    }


def test_single_heads_are_one_attention_with_the_projection_of_their_output():
    model = nn.Sequential(Block(Heads(32, 8), mlp(32, 64)), Block(Heads(32, 8), mlp(32, 64)))

    assert list(shapes(model)) == ["0", "0.mixer", "0.rest.1", "1", "1.mixer", "1.rest.1"]


def test_the_hidden_activation_of_a_function_is_what_the_first_layer_returns():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    parts = find_blocks(dict(nn.TransformerEncoder(layer, 1).named_modules())).parts

    assert parts["layers.0.linear1"] == LayerPart("MLP 32→64", "unit", 64, 0, None)


def test_a_gated_first_layer_returns_twice_as_many_features():
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), Swiglu(32, 48)))

    assert find_blocks(dict(model.named_modules())).parts["0.rest.w12"] == LayerPart(
        "MLP 32→48", "unit", 96
    )


def test_lists_in_a_list_that_are_never_called_are_no_layers():
    blocks = nn.ModuleList(nn.ModuleList([Heads(32, 8), mlp(32, 64)]) for _ in range(2))

    assert list(shapes(nn.ModuleDict({"layers": blocks}))) == [
        "layers.0.0", "layers.0.1.1", "layers.1.0", "layers.1.1.1",
    ]  # fmt: skip


def test_the_innermost_lists_hold_the_blocks():
    stage = nn.Sequential(Block(Heads(32, 8), mlp(32, 64)), Block(Heads(32, 8), mlp(32, 64)))
    model = nn.Sequential(Block(stage), Block(stage))

    assert "0" not in shapes(model)
    assert "0.mixer.0" in shapes(model)


def test_experts_are_no_parts_but_their_router_is():
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), Router(32)))

    assert shapes(model) == {
        "0": "Block 32",
        "0.mixer": "Attention 4×8",
        "0.rest.gate": "Experts 4, top 2",
    }


def test_a_router_that_sends_tokens_to_all_experts_chooses_none():
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), Router(32)))
    model[0].rest.top_k = 4

    assert list(shapes(model)) == ["0", "0.mixer"]


def test_experts_whose_weights_are_side_by_side_have_a_router_too():
    router = Router(32)
    router.experts = nn.Module()
    router.experts.up = nn.Parameter(torch.zeros(4, 64, 32))
    router.experts.down = nn.Parameter(torch.zeros(4, 32, 64))
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), router))

    assert find_blocks(dict(model.named_modules())).parts["0.rest.gate"] == LayerPart(
        "Experts 4, top 2", "expert", 4, 2
    )


def test_blocks_of_a_mixer_count_beside_a_convolution_only():
    blocks = nn.Sequential(Block(mlp(32, 64), mlp(32, 48)), Block(mlp(32, 64), mlp(32, 48)))

    assert shapes(blocks) == {}
    assert list(shapes(nn.Sequential(nn.Conv2d(3, 32, 4, 4), blocks))) == [
        "1.0", "1.0.mixer.1", "1.0.rest.1", "1.1", "1.1.mixer.1", "1.1.rest.1",
    ]  # fmt: skip


@pytest.mark.parametrize("gate", [ChannelGate, ChannelAttention])
def test_gates_of_a_convolutional_network_are_no_attention(gate):
    block = nn.Sequential(nn.Conv2d(8, 8, 3), gate(8))

    assert shapes(nn.Sequential(block, block)) == {}


def test_by_default_convolutions_and_parts_are_watched_in_definition_order():
    model = nn.Sequential(
        nn.Conv2d(3, 32, 4, 4), nn.Sequential(Block(Heads(32, 8), mlp(32, 64))), nn.Linear(32, 2)
    )

    assert list(select(model)) == ["0", "1.0", "1.0.mixer", "1.0.rest.1"]


def test_without_a_convolution_the_layers_around_the_blocks_are_watched_too():
    model = nn.Sequential(
        nn.Embedding(9, 32), nn.Sequential(Block(Heads(32, 8), mlp(32, 64))), nn.Linear(32, 9)
    )

    assert list(select(model)) == ["0", "1.0", "1.0.mixer", "1.0.rest.1", "2"]


def test_watched_layers_know_what_their_parts_are():
    model = nn.Sequential(Block(CausalSelfAttention(32, 4), mlp(32, 64)))
    watched = WatchedLayers(nn.Sequential(nn.Conv2d(3, 32, 4, 4), model))

    assert watched.parts["1.0.mixer"] == LayerPart("Attention 4×8", "feature", 32, 0, 4)


def test_blocks_are_found_once_per_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def counted(named: dict[str, nn.Module]) -> blocks.Blocks:
        found.append(named)
        return find_blocks(named)

    monkeypatch.setattr(layers, "find_blocks", counted)
    layer = nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True)
    watched = WatchedLayers(nn.TransformerEncoder(layer, 2))
    assert len(found) == 1
    assert watched.parts["layers.0"].shape == "Block 32"
    watched.select_again()
    assert len(found) == 2
