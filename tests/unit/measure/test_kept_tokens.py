"""All features of one image's tokens, and norms of tokens, as they are copied from the device."""

from __future__ import annotations

import pytest
import torch

from fmapboard.measure.kept_tokens import image_of_tokens, token_norms
from fmapboard.measure.layout import MapsView, Sequences, as_maps, axes_of
from fmapboard.measure.packing import pack
from fmapboard.measure.reducer import PendingMeasurement, Reducer
from fmapboard.measure.token_grids import TokenGrid
from fmapboard.records import LayerCall, LayerPart
from fmapboard.render.quantize import Quantizer

BLOCK = LayerCall("block", "Block", part=LayerPart("Block 5", "feature", 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_norm_of_a_token_is_over_its_features(dtype: torch.dtype) -> None:
    maps = torch.zeros(2, 5, 3, dtype=dtype)
    maps[0, :2, 1] = torch.tensor([30.0, 40.0])
    maps[1, 4] = torch.tensor([1.0, 2.0, 2.0])
    found = token_norms(maps)  # of 0, 50, 0, 1, 2 and 2
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx([50.0, 1.0, (2500 + 1 + 4 + 4) ** 0.5])


def test_the_first_image_is_kept_with_all_features_and_without_prefix_tokens() -> None:
    tokens = torch.rand(2, 7, 5)
    axes = axes_of(torch.nn.LayerNorm(5), tokens.shape)._replace(grid=TokenGrid(1, 2, 3))
    kept = image_of_tokens(as_maps(tokens, axes))
    assert kept is not None
    assert torch.equal(kept, tokens[0, 1:].view(2, 3, 5))
    assert kept.data_ptr() != tokens[0, 1:].data_ptr()
    assert image_of_tokens(as_maps(tokens, axes._replace(grid=None))) is None


def test_of_large_grids_every_second_row_and_column_is_kept() -> None:
    maps = torch.rand(1, 3, 33, 40)
    kept = image_of_tokens(MapsView(maps))
    assert kept is not None
    assert torch.equal(kept, maps[0, :, ::2, ::2].movedim(0, -1))
    whole = image_of_tokens(MapsView(maps[..., :32, :32]))
    assert whole is not None
    assert whole.shape == (32, 32, 3)


def test_only_blocks_and_their_attention_are_kept_as_tokens() -> None:
    maps = torch.rand(2, 4, 3, 5)  # [N, H, W, C]
    reduce, module = Reducer(), torch.nn.Linear(5, 5)
    found = reduce(BLOCK, "feature_maps", maps, module).to_host()
    assert found.tokens is not None
    assert found.token_norms is not None
    assert found.tokens.tolist() == maps[0].tolist()
    assert found.token_norms[0] == pytest.approx(maps.norm(dim=-1).max().item())
    hidden = LayerCall("mlp", "Linear", part=LayerPart("MLP 5→5", "unit", 5))
    for call, kind in ((BLOCK, "gradients_of_maps"), (hidden, "feature_maps")):
        other = reduce(call, kind, maps, module)
        assert (other.tokens, other.token_norms) == (None, None)
    assert reduce(BLOCK, "feature_maps", maps, module, pictures=False).tokens is None
    assert reduce(BLOCK, "feature_maps", maps, module, numbers=False).token_norms is None


def test_tokens_survive_packing() -> None:
    tokens, norms = torch.rand(2, 3, 5), torch.rand(3)
    part = PendingMeasurement(BLOCK, "feature_maps", (), Quantizer(), tokens=tokens)
    packed = pack([part, part._replace(tokens=None, token_norms=norms)])
    left = packed.outlines.measurements
    assert left[0].tokens is not tokens
    assert left[1].token_norms is not norms
    first, second = packed.unpack()
    assert first.tokens is not None
    assert second.token_norms is not None
    assert torch.equal(first.tokens, tokens)
    assert torch.equal(second.token_norms, norms)
    assert (first.token_norms, second.tokens) == (None, None)


def test_a_text_has_norms_and_no_image() -> None:
    tokens = torch.rand(2, 9, 5)
    reduce = Reducer(sequences=Sequences(tokens_are_rows=True))
    found = reduce(BLOCK, "feature_maps", tokens, torch.nn.Linear(5, 5))
    assert found.tokens is None
    assert found.token_norms is not None
