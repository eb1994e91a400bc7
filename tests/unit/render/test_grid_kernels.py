"""Pictures of kernels: RGB tiles of a first layer, an input-by-output matrix of any other."""

from __future__ import annotations

import numpy as np
import pytest
import torchvision
from decoded_pictures import rgb_pixels
from map_grids import INF, NAN, network

from fmapboard.records import Kernels, KernelShape, LayerCall, PixelMark
from fmapboard.render.grid import draw_kernels


def kernels_of(weight: np.ndarray) -> Kernels:
    shape = KernelShape(weight.shape)
    return Kernels(LayerCall("conv", "Conv2d", shape), weight.astype(np.float32))


def test_first_layer_kernels_are_rgb_tiles_with_zero_in_mid_grey() -> None:
    weight = np.zeros((4, 3, 2, 2))
    weight[0, 0] = 2.0  # red, at full
    weight[1, 2] = -1.0  # blue, half way down
    raster, peak = draw_kernels(kernels_of(weight))
    assert peak == 2.0
    assert raster.palette is None
    assert raster.pixels.shape == (7, 7, 3)
    assert raster.pixels[1, 1].tolist() == [255, 127, 127]
    assert raster.pixels[1, 4].tolist() == [127, 127, 63]
    assert raster.pixels[4, 4].tolist() == [127, 127, 127]
    assert raster.pixels[0, 0].tolist() == [0, 0, 0], "padding"


def test_deeper_kernels_are_a_matrix_of_inputs_by_outputs() -> None:
    weight = np.zeros((2, 4, 1, 1))
    weight[1, 3] = 1.0
    raster, _ = draw_kernels(kernels_of(weight))
    picture = rgb_pixels(raster)
    assert raster.pixels.shape == (4 * 2 + 1, 2 * 2 + 1)
    assert picture[1, 1].tolist() == [246, 247, 247], "zero is neutral"
    assert picture[7, 3].tolist() == [110, 0, 30], "input 3 is row 3, output 1 is column 1"
    assert picture[0, 0].tolist() == [0, 0, 32]


def test_the_scale_of_kernels_is_centred_on_zero_and_shared_by_the_layer() -> None:
    weight = np.array([[1.0, -1.0], [0.5, 0.0]])[:, :, None, None]
    raster, peak = draw_kernels(kernels_of(weight))
    assert peak == 1.0
    level = {value: int(raster.pixels[1 + 2 * i, 1 + 2 * o])
             for (o, i), value in np.ndenumerate(weight[..., 0, 0])}  # fmt: skip
    assert level == {1.0: 249, -1.0: 0, 0.5: 186, 0.0: 124}


@pytest.mark.parametrize("inputs", [1, 3, 5])
def test_non_finite_weights_are_marked_and_change_no_others(inputs: int) -> None:
    weight = np.full((2, inputs, 1, 2), 0.5)
    weight[0, 0, 0] = [NAN, INF]
    weight[1, 0, 0, 0] = -INF
    raster, peak = draw_kernels(kernels_of(weight))
    assert peak == 0.5
    assert raster.palette is not None
    assert raster.pixels[1, 1:3].tolist() == [PixelMark.NAN, PixelMark.POSITIVE_INFINITY]
    assert raster.pixels[1, 4:6].tolist() == [PixelMark.NEGATIVE_INFINITY, 249]


def test_all_zero_kernels_are_neutral() -> None:
    assert set(draw_kernels(kernels_of(np.zeros((2, 3, 2, 2))))[0].pixels.flat) == {0, 127}
    assert set(draw_kernels(kernels_of(np.zeros((2, 2, 2, 2))))[0].pixels.flat) == {124, 250}


def test_no_more_kernels_than_the_limit_are_drawn() -> None:
    raster, _ = draw_kernels(kernels_of(np.ones((10, 8, 1, 1))), 4)
    assert raster.pixels.shape == (9, 9)


@pytest.mark.parametrize("limit", [2, 3, 64])
def test_kernels_are_rgb_only_if_the_whole_weight_has_three_inputs(limit: int) -> None:
    matrix, _ = draw_kernels(kernels_of(np.ones((8, 16, 1, 1))).cut(limit), limit)
    assert matrix.palette is not None
    colours, _ = draw_kernels(kernels_of(np.ones((8, 3, 1, 1))).cut(limit), limit)
    assert colours.palette is None
    assert colours.pixels.shape[2] == 3


def test_the_kernels_of_a_real_first_layer_are_all_drawn() -> None:
    weight = network(torchvision.models.alexnet).features[0].weight.detach().numpy()
    raster, peak = draw_kernels(kernels_of(weight))
    assert raster.pixels.shape == (8 * 12 + 1, 8 * 12 + 1, 3)
    assert peak == np.abs(weight).max()
