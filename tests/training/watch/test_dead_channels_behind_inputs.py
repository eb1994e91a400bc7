"""The dead channels in a layer's record are those of its output, also if its inputs are drawn."""

from __future__ import annotations

import torch
from torch import nn

import fmapboard
from fmapboard.formats.tab_records import unpack
from fmapboard.writers.folder import MemoryWriter


def test_dead_channels_are_those_of_the_output_even_if_the_input_has_fewer_channels() -> None:
    layer = nn.Conv2d(3, 6, 3)
    with torch.no_grad():
        layer.bias.zero_()[5] = -100.0  # type: ignore[index]  # channel 5 never passes the ReLU
    model, kept = nn.Sequential(layer, nn.ReLU()), MemoryWriter()
    with fmapboard.watch(model, writer=kept, inputs=True) as board:
        board.begin_step(0, training=False)
        model.eval()(torch.rand(2, 3, 8, 8))
        board.end_step()
    (record,) = [r for r in kept.steps[0].records if r.tag == "fmapboard/0"]
    _, arrays = unpack(record.blobs)
    assert arrays["activation.dead"].tolist() == [0, 0, 0, 0, 0, 1]
