"""Tokens lie on the grid that the network's own pass tells, not on the square that would fit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fmapboard.measure.layout import Sequences
from fmapboard.measure.token_grids import TokenGrid, TokenGrids, guessed_grid, square_of
from fmapboard.records import KernelShape, LayerCall

CONVOLUTION = LayerCall("embed", "Conv2d", KernelShape((8, 3, 4, 4)))
IMAGES = torch.zeros(2, 3, 32, 48)


def grids_of(*modules: nn.Module) -> TokenGrids:
    return TokenGrids.of([*modules, nn.LayerNorm(8)])


def vit_on(*arguments: Tensor) -> TokenGrids:
    grids = grids_of(nn.Conv2d(3, 8, 16, stride=16))
    grids.begin(arguments)
    return grids


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (6, TokenGrid(0, 2, 3)),
        (7, TokenGrid(1, 2, 3)),
        (22, TokenGrid(16, 2, 3)),
        (23, None),
        (4, None),
        (9, TokenGrid(3, 2, 3)),
    ],
)
def test_the_grid_follows_from_the_image_and_the_first_convolution(
    tokens: int, expected: TokenGrid | None
) -> None:
    assert vit_on(IMAGES).grid_of(2, tokens) == expected


def test_the_grid_of_a_recorded_convolution_counts_and_the_latest_one_first() -> None:
    grids = grids_of(nn.Conv2d(3, 8, 3))
    grids.begin((IMAGES,))
    assert not grids.is_known
    grids.saw(CONVOLUTION, (2, 8, 3, 4))
    grids.saw(CONVOLUTION, (2, 8, 4, 3))
    assert grids.grid_of(2, 12) == TokenGrid(0, 4, 3)
    grids.saw(CONVOLUTION, (2, 8, 3, 4))
    assert grids.grid_of(2, 12) == TokenGrid(0, 3, 4)
    assert grids.grid_of(2, 13) == TokenGrid(1, 3, 4)
    assert grids.grid_of(3, 12) is None  # tokens of another batch, such as windows
    assert grids.grid_of(3, 13) is None


def test_what_is_no_2d_convolution_tells_no_grid() -> None:
    grids = grids_of(nn.Conv2d(3, 8, 3))
    grids.saw(LayerCall("attention", "Attention"), (2, 3, 4, 4))
    grids.saw(LayerCall("conv", "Conv1d", KernelShape((8, 3, 3))), (2, 8, 16))
    grids.saw(LayerCall("conv", "Conv3d", KernelShape((8, 3, 3, 3, 3))), (8, 4, 4, 4))
    assert not grids.is_known


def test_a_pass_forgets_the_grid_of_the_pass_before() -> None:
    grids = vit_on(IMAGES)
    grids.saw(CONVOLUTION, (2, 8, 9, 9))
    grids.begin((torch.zeros(1, 3, 64, 32),))
    assert (grids.grid_of(2, 81), grids.grid_of(1, 8)) == (None, TokenGrid(0, 4, 2))


def test_merged_tokens_have_half_the_rows_and_columns_rounded_up() -> None:
    merging = grids_of(nn.Conv2d(3, 8, 4, stride=4), nn.Linear(32, 16))
    plain = grids_of(nn.Conv2d(3, 8, 4, stride=4), nn.Linear(8, 32))
    for grids in (merging, plain):
        grids.begin((torch.zeros(2, 3, 28, 56),))  # 7×14 patches
    assert merging.grid_of(2, 28) == TokenGrid(0, 4, 7)
    assert merging.grid_of(2, 8) == TokenGrid(0, 2, 4)
    assert plain.grid_of(2, 28) is None
    assert merging.grid_of(2, 29) is None  # no prefix in front of merged tokens


def test_a_linear_layer_that_receives_patches_tells_their_side() -> None:
    grids = grids_of(nn.Linear(192, 8), nn.Linear(8, 8))  # 3 · 8²
    grids.begin((torch.zeros(1, 3, 16, 32),))
    assert grids.grid_of(1, 8) == TokenGrid(0, 2, 4)
    grids.begin((torch.zeros(1, 3, 20, 32),))  # no multiple of 8
    assert not grids.is_known


def test_a_text_is_on_no_grid_and_is_no_prefix() -> None:
    text = torch.zeros(2, 5, dtype=torch.int64)
    grids = vit_on(text, IMAGES)
    assert grids.grid_of(2, 7) == TokenGrid(1, 2, 3)
    assert grids.grid_of(2, 11) is None  # five tokens of text and six patches
    assert vit_on(text[:, :1].expand(2, 6), IMAGES).grid_of(2, 6) is None
    embedded = torch.zeros(2, 5, 8)
    assert vit_on(IMAGES, embedded).grid_of(2, 11) is None
    mask = torch.zeros(2, 6, dtype=torch.bool)  # of patches
    assert vit_on(IMAGES, mask).grid_of(2, 6) == TokenGrid(0, 2, 3)


def test_a_square_is_guessed_only_where_the_pass_has_told_no_grid() -> None:
    sequences = Sequences.of(nn.Sequential(nn.Conv2d(3, 8, 16, stride=16), nn.LayerNorm(8)))
    assert sequences.grid_of(2, 17) == TokenGrid(1, 4, 4)
    assert sequences.grids is not None
    sequences.grids.begin((IMAGES,))
    assert sequences.grid_of(2, 17) == TokenGrid(11, 2, 3)
    assert sequences.grid_of(2, 25) is None


class Window(nn.Module):
    def __init__(self, window_size: int | tuple[int, int], shift_size: int = 0) -> None:
        super().__init__()
        self.window_size, self.shift_size = window_size, shift_size


def test_windows_are_known_by_their_size_and_their_number_in_an_image() -> None:
    layers = nn.Conv2d(3, 8, 4, stride=4), nn.Linear(32, 16), Window(4)
    one, two = grids_of(*layers), grids_of(*layers, Window((2, 8)))
    for grids in (one, two):
        grids.begin((torch.zeros(2, 3, 32, 64),))  # 8×16 patches, merged 4×8
    assert one.grid_of(16, 16) == TokenGrid(0, 8, 16, (4, 4))
    assert one.grid_of(4, 16) == TokenGrid(0, 4, 8, (4, 4))
    assert one.grid_of(6, 16) is None
    assert one.grid_of(16, 9) is None
    assert two.grid_of(16, 16) is None  # eight windows of 4×4 or of 2×8


def test_without_a_number_of_samples_all_grids_count_and_a_window_is_one() -> None:
    grids = vit_on(IMAGES)  # 2×3 patches of two images
    grids.windows = frozenset({(2, 4)})
    assert grids.grid_of(7, 6) is None
    assert grids.grid_of(None, 6) == TokenGrid(0, 2, 3)
    assert grids.grid_of(None, 7) == TokenGrid(1, 2, 3)
    assert grids.grid_of(None, 8) == TokenGrid(0, 2, 4)


def test_windows_that_overlap_the_border_give_a_padded_grid() -> None:
    grids = grids_of(nn.Conv2d(3, 8, 4, stride=4), Window((3, 3), shift_size=1))
    grids.begin((torch.zeros(1, 3, 28, 40),))  # 7×10 patches
    assert grids.grid_of(12, 9) == TokenGrid(0, 9, 12, (3, 3))
    assert grids.is_shifted
    assert not grids_of(Window(3)).is_shifted


def test_without_a_window_size_a_larger_batch_is_not_taken_for_windows() -> None:
    grids = grids_of(nn.Conv2d(3, 8, 4, stride=4))
    grids.begin((torch.zeros(2, 3, 32, 32),))
    assert grids.grid_of(8, 16) is None  # as of MobileViT, whose patches are every second pixel


def test_a_network_without_attention_and_norms_over_features_has_no_grids() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.Linear(8, 2))
    assert Sequences.of(model).grids is None
    assert Sequences.of(nn.Sequential(model, nn.LayerNorm(8))).grids is not None


@pytest.mark.parametrize(
    ("image", "tokens", "expected"),
    [
        ((32, 48), 24, TokenGrid(0, 4, 6)),
        ((32, 48), 7, TokenGrid(1, 2, 3)),
        ((28, 28), 9, TokenGrid(5, 2, 2)),
        ((30, 48), 17, TokenGrid(1, 4, 4)),  # no patches are squares
        ((32, 32), 1, None),
        ((18, 8), 4, TokenGrid(0, 2, 2)),  # 6 px is no part of a side
        ((33, 47), 8, TokenGrid(4, 2, 2)),
    ],
)
def test_without_a_pass_the_size_of_the_image_tells_the_grid(
    image: tuple[int, int], tokens: int, expected: TokenGrid | None
) -> None:
    assert guessed_grid(image, tokens) == expected


def test_nine_tokens_are_guessed_to_be_a_square_of_three() -> None:
    assert square_of(9) == TokenGrid(0, 3, 3)
    assert square_of(20) == TokenGrid(4, 4, 4)
    assert square_of(8) == TokenGrid(4, 2, 2)
    assert square_of(7) is None
