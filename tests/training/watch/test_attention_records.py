"""What a step logs of attention: pictures, numbers of heads, scalars and arrays for the tab."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attending_networks import NETWORKS, WIDTH, AttendingNet, Block, images
from logged_step import log_pass, measurement, pictures
from torch import Tensor, nn

from fmapboard.capture import passes
from fmapboard.formats.tab_records import unpack
from fmapboard.records import HeadNumbers, LoggedStep

SOFTMAX = NETWORKS["softmax"]
ROWS, PEAK_ROWS = "blocks.0.attn.rows", "blocks.0.attn.peak_rows"
PICTURES = "feature_maps_Attention 2×4/"


@pytest.fixture(autouse=True)
def as_in_a_process_without_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once other tests have used it, attention is read in a pass of its own."""
    monkeypatch.setattr(passes, "is_compile_used", bool)


def heads(step: LoggedStep, label: str) -> HeadNumbers | None:
    return measurement(step, label).heads


def test_heads_are_channels_and_a_tile_is_the_grid_of_the_image() -> None:
    step = log_pass(SOFTMAX(), images(), samples=2)
    rows = measurement(step, ROWS)
    call = rows.layer_call
    assert (call.type, call.group, call.unit) == ("Attention", "Attention 2×4", "head")
    assert rows.shape == (6, 2, 9)
    assert rows.planes is not None
    assert rows.planes.pixels.shape == (2, 2, 3, 3)  # samples, heads, and the grid of the patches
    drawn = pictures(step, PICTURES + ROWS)
    assert len(drawn.samples) == 2
    assert (
        "the row of the first token, or of the last one in causal attention; 9 tokens drawn as 3×3 "
        "patches"
    ) in drawn.description
    peak = pictures(step, PICTURES + PEAK_ROWS)
    assert "of each head the row with the largest logit; 9 tokens drawn" in peak.description


def test_the_calls_are_ordered_as_they_ran() -> None:
    step = log_pass(SOFTMAX(), images(), layers="*attn")
    found = [part.layer_call.label for part in step.statistics]
    assert found[:3] == [ROWS, PEAK_ROWS, "blocks.0.attn"]


def test_scalars_are_the_mean_over_heads_and_the_most_extreme_head() -> None:
    step = log_pass(SOFTMAX(), images())
    found = heads(step, ROWS)
    assert found is not None
    assert heads(step, PEAK_ROWS) is None
    assert step.scalars[f"attention_entropy/{ROWS}"] == pytest.approx(found.entropy.mean())
    assert step.scalars[f"attention_entropy/{ROWS}/lowest_head"] == found.entropy.min()
    assert step.scalars[f"attention_logit/{ROWS}"] == pytest.approx(found.logit.mean())
    assert step.scalars[f"attention_logit/{ROWS}/highest_head"] == found.logit.max()
    assert step.scalars[f"attention_first/{ROWS}"] == pytest.approx(found.first.mean())
    assert step.scalars[f"attention_first/{ROWS}/highest_head"] == found.first.max()
    assert 0 < found.entropy.min() < found.entropy.max() < 1


def test_the_tabs_record_has_the_numbers_of_the_drawn_heads() -> None:
    step = log_pass(SOFTMAX(), images(), max_channels=1)
    found = heads(step, ROWS)
    (record,) = [record for record in step.records if record.tag == f"fmapboard/{ROWS}"]
    header, arrays = unpack(record.blobs)
    assert (header["shape"], header["unit"]) == ("Attention 2×4", "head")
    assert found is not None
    assert arrays["attention.entropy"].tolist() == found.entropy[:1].tolist()
    assert arrays["attention.logit"].tolist() == found.logit[:1].tolist()
    assert arrays["attention.first"].tolist() == found.first[:1].tolist()
    (other,) = [record for record in step.records if record.tag == f"fmapboard/{PEAK_ROWS}"]
    assert not [name for name in unpack(other.blobs)[1] if name.startswith("attention")]


def test_at_most_eight_images_are_read_and_all_heads_are_measured() -> None:
    rows = measurement(log_pass(SOFTMAX(), images(20), max_channels=1), ROWS)
    assert rows.shape == (8, 2, 9)
    assert rows.statistics is not None
    assert rows.statistics.maximum.shape == (2,)


def test_of_a_probe_the_rows_are_drawn_and_the_numbers_are_of_the_batch() -> None:
    torch.manual_seed(0)
    model = SOFTMAX().eval()
    probe = images(3) * 3
    of_batch = log_pass(model, images())
    of_probe = log_pass(model, probe, samples=3)
    step = log_pass(model, images(), probe=probe)
    both = measurement(step, ROWS)
    assert both.heads is not None
    batch_heads = heads(of_batch, ROWS)
    assert batch_heads is not None
    assert both.heads.entropy.tolist() == batch_heads.entropy.tolist()
    assert both.planes is not None
    expected = measurement(of_probe, ROWS).planes
    assert expected is not None
    np.testing.assert_allclose(both.planes.hi, expected.hi, rtol=1e-5)
    assert both.planes.hi.shape == (3, 2)


def test_in_eval_mode_where_torch_may_take_its_fast_path_the_same_rows_are_read() -> None:
    model = NETWORKS["MultiheadAttention"]().eval()
    with torch.no_grad():
        beside = heads(log_pass(model, images(), probe=images(2)), ROWS)
    model.train()  # which has no dropout
    expected = heads(log_pass(model, images(), probe=images(2)), ROWS)
    assert beside is not None
    assert expected is not None
    np.testing.assert_allclose(beside.logit, expected.logit, rtol=1e-5)
    np.testing.assert_allclose(beside.entropy, expected.entropy, rtol=1e-5)


class Windows(nn.Module):
    """Attention in three windows of three tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 2
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: Tensor) -> Tensor:
        windows = tokens.unflatten(1, (3, 3)).flatten(0, 1)  # [N * 3, 3, D]
        by_head = self.qkv(windows).unflatten(-1, (6, -1)).transpose(1, 2)
        attended = nn.functional.scaled_dot_product_attention(*by_head.chunk(3, 1))
        mixed = self.out(attended.transpose(1, 2).flatten(2))
        return mixed.unflatten(0, (-1, 3)).flatten(1, 2)


def test_of_windows_the_description_says_which_one_is_shown() -> None:
    step = log_pass(AttendingNet(Windows), images())
    assert measurement(step, ROWS).shape == (6, 2, 3)
    first = pictures(step, PICTURES + ROWS).description
    assert "the row of the first token of the first of 3 windows" in first
    assert (
        "the row with the largest logit in 3 windows"
        in pictures(step, PICTURES + PEAK_ROWS).description
    )


def test_gradients_and_inputs_of_rows_are_not_recorded() -> None:
    step = log_pass(SOFTMAX(), images(), inputs=True, activation_gradients=True)
    found = [part.kind for part in step.statistics if part.layer_call.label == ROWS]
    assert found == ["feature_maps"]


def test_a_block_that_is_called_twice_has_rows_of_both_calls() -> None:
    class Twice(Block):
        def forward(self, tokens: Tensor) -> Tensor:
            return super().forward(super().forward(tokens))

    model = SOFTMAX()
    for block in model.blocks:
        block.__class__ = Twice
    step = log_pass(model, images())
    found = [part.layer_call.label for part in step.statistics if part.layer_call.unit == "head"]
    assert found[:4] == [ROWS, PEAK_ROWS, f"{ROWS}.call2", f"{PEAK_ROWS}.call2"]
