"""Rows of attention of each image that a transformer is run on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from fmapboard.image_passes import ImagePasses
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerMeasurement


class Small(nn.Module):
    """Patches of 8×8 px and a block."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 16, 8, stride=8)
        block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.blocks = nn.TransformerEncoder(block, 2)

    def tokens(self, x: Tensor) -> Tensor:
        return self.embed(x).flatten(2).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(self.tokens(x))  # type: ignore[no-any-return]


ROWS = "blocks.layers.0.self_attn.rows"


def test_each_image_has_the_attention_of_its_first_token_however_many_are_run_together() -> None:
    torch.manual_seed(0)
    model = Small().eval()
    images = torch.rand(10, 3, 24, 24)  # more than are read in one pass
    with torch.no_grad():
        x = model.tokens(images)
        attention = model.blocks.layers[0].self_attn  # type: ignore[union-attr]
        weights = attention(x, x, x, average_attn_weights=False)[1]  # type: ignore[operator]
    reasons: list[str] = []
    passes = ImagePasses(model, Reducer(sequences=Sequences.of(model)), refused=reasons.append)
    found: list[LayerMeasurement] = []
    for step in passes(images):
        measured = {part.layer_call.label: part for part in step.to_host().measured}
        found.append(measured[ROWS])
    assert reasons == []
    for number, rows in enumerate(found):
        first = weights[number, :, 0]  # [heads, tokens]
        assert rows.planes is not None
        assert rows.planes.pixels.shape == (1, 2, 3, 3)
        assert np.allclose(rows.planes.lo[0], first.amin(-1), atol=1e-6)
        assert np.allclose(rows.planes.hi[0], first.amax(-1), atol=1e-6)
        assert rows.planes.view.startswith("the row of the first token")
