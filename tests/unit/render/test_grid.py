"""Pictures: equal to make_grid for values, unmistakable for what is not a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn
from torchvision.utils import make_grid

from fmapboard.demo.bundled import bundled
from fmapboard.errors import ConfigurationError
from fmapboard.extraction import extract
from fmapboard.measure.reducer import Reducer
from fmapboard.options import PALETTES
from fmapboard.records import InputImage, Kernels, KernelShape, Mark, Planes, Raster, Site
from fmapboard.render.grid import draw_input_image, draw_kernels, draw_maps, enlarge
from fmapboard.render.palettes import MARK_COLOURS, palette

GREY = palette("grey")
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def planes_of(maps: Tensor, **options: object) -> Planes:
    """Planes of maps [N, C, H, W], every limit lifted unless given."""
    lifted: dict[str, object] = {"samples": None, "max_channels": None, "max_tile": None}
    reducer = Reducer(**{**lifted, **options})  # type: ignore[arg-type]
    pending = reducer(Site("conv", "Conv2d"), "feature_maps", maps, nn.Conv2d(1, 1, 1))
    planes = pending.to_host().planes
    assert planes is not None
    return planes


def classic(maps: Tensor) -> np.ndarray:
    """The classic recipe on one sample [1, C, H, W], as torch's add_image writes it: u8 [H, W]."""
    nrow = int(math.sqrt(maps.shape[1]))
    grid = make_grid(maps.transpose(0, 1), normalize=True, scale_each=True, nrow=nrow)
    return (grid.numpy() * 255).clip(0, 255).astype(np.uint8)[0]


def decoded(raster: Raster) -> np.ndarray:
    """What one sees: u8 [H, W, 3]."""
    if raster.palette is not None:
        return raster.palette[raster.pixels]
    if raster.pixels.ndim == 3:
        return raster.pixels
    return np.repeat(raster.pixels[..., None], 3, axis=2)


def tile_of(picture: np.ndarray, channel: int, maps: Tensor) -> np.ndarray:
    """One channel's tile of a grid."""
    per_row, (height, width) = int(math.sqrt(maps.shape[1])), maps.shape[2:]
    top = 2 + channel // per_row * (height + 2)
    left = 2 + channel % per_row * (width + 2)
    return picture[top : top + height, left : left + width]


def chelsea(height: int, width: int) -> Tensor:
    """A real photograph as a network gets it: f32 [1, 3, height, width]."""
    with Image.open(bundled("photographs/chelsea.jpg")) as image:
        small = image.convert("RGB").resize((width, height))
    values = torch.from_numpy(np.array(small)).permute(2, 0, 1)[None] / 255
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (values - mean[:, None, None]) / std[:, None, None]


def network(build: Callable[..., nn.Module]) -> nn.Module:
    """Random weights; BatchNorm normalizes by the batch, or deep maps shrink to nothing."""
    torch.manual_seed(0)
    return build(weights=None).train()


# -- equal to make_grid --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "layers"),
    [
        (torchvision.models.alexnet, 5),
        (torchvision.models.resnet18, 20),
        (torchvision.models.mobilenet_v2, 52),
    ],
    ids=["alexnet", "resnet18", "mobilenet_v2"],
)
def test_every_pixel_of_a_real_network_equals_make_grid_within_one_level(
    build: Callable[..., nn.Module], layers: int
) -> None:
    maps = extract(network(build), chelsea(160, 224))
    assert len(maps) == layers
    differing = 0
    for name, value in maps.items():
        ranges = value.amax((0, 2, 3)) - value.amin((0, 2, 3))
        assert ranges.min() >= 1e-5, f"{name}: the promise is for ranges from 1e-5 on"
        raster = draw_maps(planes_of(value), 0, GREY)
        assert raster.palette is None, f"{name}: finite maps need no palette"
        difference = raster.pixels.astype(int) - classic(value)
        assert np.abs(difference).max() <= 1, name
        differing += int(np.count_nonzero(difference))
    assert differing == 0


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 7, 8, 9, 10, 63, 64, 65, 100])
@pytest.mark.parametrize("size", [(5, 9), (9, 5), (1, 4), (8, 8)])
def test_the_grid_of_any_channel_count_and_shape_equals_make_grid(
    channels: int, size: tuple[int, int]
) -> None:
    maps = torch.randn(1, channels, *size, generator=torch.Generator().manual_seed(channels))
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert np.array_equal(raster.pixels, classic(maps))
    assert raster.tile == size


@pytest.mark.parametrize("scale", [1.0001e-5, 1e-3, 1.0, 1e10, 1e30])
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_pixels_equal_make_grid_at_every_magnitude(scale: float, offset: float) -> None:
    maps = torch.rand(1, 6, 7, 7, generator=torch.Generator().manual_seed(1))
    maps[:, :, 0, 0], maps[:, :, 0, 1] = 0, 1
    maps = (maps + offset) * (scale if not offset else max(scale, 1e-3))
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert np.abs(raster.pixels.astype(int) - classic(maps)).max() <= 1


def test_a_palette_grid_shows_the_same_greys_within_one_level() -> None:
    maps = torch.randn(1, 6, 16, 16, generator=torch.Generator().manual_seed(2))
    maps[0, 5] = 0.5  # one constant channel makes the picture need marks
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert raster.palette is not None
    seen, wanted = decoded(raster)[..., 0].astype(int), classic(maps).astype(int)
    for channel in range(5):
        off = tile_of(seen, channel, maps) - tile_of(wanted, channel, maps)
        assert np.abs(off).max() == 1


def test_channels_stand_in_order_from_the_upper_left() -> None:
    maps = torch.zeros(1, 9, 2, 2)
    maps[0, :, 0, 0] = torch.arange(9) / 8 + 1e-3
    raster = draw_maps(planes_of(maps, scale="layer"), 0, GREY)
    corners = [int(tile_of(raster.pixels, c, maps)[0, 0]) for c in range(9)]
    assert corners == sorted(corners)
    assert corners[0] == 0
    assert corners[8] == 255


def test_channels_with_a_range_of_a_hundred_millionth_are_still_visible() -> None:
    maps = torch.zeros(1, 4, 1, 5)
    maps[0, :] = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]) * 1e-8
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert tile_of(raster.pixels, 3, maps).tolist() == [[0, 63, 127, 191, 255]]
    assert classic(maps).max() == 0, "make_grid shows black: what is promised is better"


# -- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [2, 3, 4, 5])
def test_a_batch_gives_one_grey_grid_a_sample_and_never_colour(batch: int) -> None:
    maps = torch.randn(batch, 6, 5, 4, generator=torch.Generator().manual_seed(3))
    planes = planes_of(maps)
    rasters = [draw_maps(planes, sample, GREY) for sample in range(len(planes.pixels))]
    assert len(rasters) == batch
    for sample, raster in enumerate(rasters):
        assert raster.pixels.ndim == 2
        assert np.array_equal(raster.pixels, classic(maps[sample : sample + 1]))


# -- what is not a value -------------------------------------------------------------------------


def shown(maps: Tensor, colours: str = "grey", dead: list[bool] | None = None) -> np.ndarray:
    flags = None if dead is None else np.array(dead)
    return decoded(draw_maps(planes_of(maps), 0, palette(colours), flags))


@pytest.mark.parametrize("colours", PALETTES)
def test_nan_infinities_constant_and_dead_each_have_their_own_colour(colours: str) -> None:
    maps = torch.rand(1, 6, 4, 4, generator=torch.Generator().manual_seed(4))
    maps[0, 0, 0, 0], maps[0, 1, 1, 1], maps[0, 2, 2, 2] = NAN, INF, -INF
    maps[0, 3], maps[0, 4] = 0.25, 0.0
    picture = shown(maps, colours, dead=[False] * 4 + [True, False])
    tiles = [tile_of(picture, channel, maps) for channel in range(6)]
    assert tiles[0][0, 0].tolist() == [255, 0, 255]
    assert tiles[1][1, 1].tolist() == [255, 0, 0]
    assert tiles[2][2, 2].tolist() == [0, 0, 255]
    assert (tiles[3] == [0, 225, 225]).all()
    assert (tiles[4] == [255, 128, 0]).all()
    special = {(255, 0, 255), (255, 0, 0), (0, 0, 255), (0, 225, 225), (255, 128, 0)}
    assert not special & {tuple(p) for p in tiles[5].reshape(-1, 3).tolist()}


@pytest.mark.parametrize("name", PALETTES)
def test_every_palette_has_250_different_value_colours(name: str) -> None:
    values = palette(name).table[:250].tolist()
    assert len({tuple(colour) for colour in values}) == 250


@pytest.mark.parametrize("name", PALETTES)
@pytest.mark.parametrize("mark", list(Mark), ids=lambda mark: mark.name)
def test_a_mark_is_unmistakable_among_the_values_of_every_palette(name: str, mark: Mark) -> None:
    table = palette(name).table.astype(int)
    assert tuple(table[mark]) == MARK_COLOURS[mark]
    least = 8 if mark is Mark.PADDING else 60  # of 255, in the channel that differs most
    assert np.abs(table[:250] - table[mark]).max(1).min() >= least
    assert len(set(MARK_COLOURS[mark])) > 1, "no mark is grey"
    others = np.array([MARK_COLOURS[other] for other in Mark if other is not mark])
    assert np.abs(others - table[mark]).max(1).min() >= 100


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_one_bad_value_changes_no_other_pixel_by_more_than_one_level(bad: float) -> None:
    maps = torch.randn(1, 4, 12, 12, generator=torch.Generator().manual_seed(5))
    maps[0, 1, 3, 3], maps[0, 1, 4, 4] = maps.amin() - 1, maps.amax() + 1  # extremes elsewhere
    before = shown(maps)
    spoiled = maps.clone()
    spoiled[0, 1, 6, 6] = bad
    after = shown(spoiled)
    for channel in range(4):
        old, new = (tile_of(p, channel, maps).astype(int) for p in (before, after))
        off = np.abs(new - old).max(-1)
        if channel == 1:
            assert off[6, 6] > 60
            off[6, 6] = 0
        assert off.max() <= 1


def test_a_map_of_nothing_but_nan_leaves_its_neighbours_alone() -> None:
    maps = torch.rand(1, 4, 5, 5, generator=torch.Generator().manual_seed(6))
    before = shown(maps)
    maps[0, 2] = NAN
    after = shown(maps)
    assert (tile_of(after, 2, maps) == [255, 0, 255]).all()
    for channel in (0, 1, 3):
        old, new = (tile_of(p, channel, maps).astype(int) for p in (before, after))
        assert np.abs(new - old).max() <= 1


def test_a_grid_without_marks_or_colour_is_plain_grey_of_one_byte_a_pixel() -> None:
    raster = draw_maps(planes_of(torch.rand(1, 3, 4, 4)), 0, GREY)
    assert raster.palette is None
    assert raster.pixels.shape == (20, 8)


def test_maps_of_one_pixel_are_scaled_over_the_layer_and_never_constant() -> None:
    maps = torch.tensor([0.0, 1.0, 2.0, 4.0])[None, :, None, None]
    raster = draw_maps(planes_of(maps), 0, GREY)
    assert raster.palette is None
    assert [int(tile_of(raster.pixels, c, maps)[0, 0]) for c in range(4)] == [0, 63, 127, 255]


# -- scales --------------------------------------------------------------------------------------


def test_the_layer_scale_keeps_the_channels_comparable() -> None:
    maps = torch.zeros(1, 4, 1, 2)
    maps[0, :, 0, 1] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    pixels = draw_maps(planes_of(maps, scale="layer"), 0, GREY).pixels
    assert [tile_of(pixels, c, maps)[0].tolist() for c in range(4)] == [
        [0, 63], [0, 127], [0, 191], [0, 255],
    ]  # fmt: skip


def test_the_locked_scale_is_that_of_the_first_step_for_each_channel() -> None:
    reducer = Reducer(scale="locked")
    site, conv = Site("conv", "Conv2d"), nn.Conv2d(1, 1, 1)

    def pixels(*values: float) -> list[int]:
        maps = torch.tensor(values).reshape(1, 1, 1, -1)
        planes = reducer(site, "feature_maps", maps, conv).to_host().planes
        assert planes is not None
        return draw_maps(planes, 0, GREY).pixels[0].tolist()

    assert pixels(0.0, 2.0, 4.0) == [0, 127, 255]
    assert pixels(0.0, 1.0, 2.0) == [0, 63, 127]
    assert pixels(-9.0, 4.0, 9.0) == [0, 255, 255]


def test_the_signed_palette_shows_zero_as_its_neutral_middle() -> None:
    maps = torch.tensor([[-1.0, 0.0, 4.0], [0.0, 0.5, -2.0]])[None, :, None]
    planes = planes_of(maps, zero_centred=True)
    assert planes.lo.tolist() == [[-4.0, -2.0]]
    assert planes.hi.tolist() == [[4.0, 2.0]]
    picture = decoded(draw_maps(planes, 0, palette("signed")))
    assert palette("signed").zero_centred
    for channel, column in ((0, 1), (1, 0)):
        assert tile_of(picture, channel, maps)[0, column].tolist() == [246, 247, 247]
    red, _, blue = tile_of(picture, 0, maps)[0, 2].tolist()
    assert red > blue + 60, "the largest positive value is red"
    red, _, blue = tile_of(picture, 1, maps)[0, 2].tolist()
    assert blue > red + 60, "the largest negative value is blue"


def test_an_unknown_palette_is_refused_with_the_closest_name() -> None:
    with pytest.raises(ConfigurationError, match=r"no palette 'virids' \(closest: viridis.*magma"):
        palette("virids")


# -- kernels -------------------------------------------------------------------------------------


def kernels_of(weight: np.ndarray) -> Kernels:
    shape = KernelShape(weight.shape)
    return Kernels(Site("conv", "Conv2d", shape), weight.astype(np.float32))


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
    picture = decoded(raster)
    assert raster.pixels.shape == (4 * 2 + 1, 2 * 2 + 1)
    assert picture[1, 1].tolist() == [246, 247, 247], "zero is neutral"
    assert picture[7, 3].tolist() == [110, 0, 30], "input 3 is row 3, output 1 is column 1"
    assert picture[0, 0].tolist() == [0, 0, 32]


def test_kernel_scales_are_centred_on_zero_and_one_for_the_layer() -> None:
    weight = np.array([[1.0, -1.0], [0.5, 0.0]])[:, :, None, None]
    raster, peak = draw_kernels(kernels_of(weight))
    assert peak == 1.0
    level = {value: int(raster.pixels[1 + 2 * i, 1 + 2 * o])
             for (o, i), value in np.ndenumerate(weight[..., 0, 0])}  # fmt: skip
    assert level == {1.0: 249, -1.0: 0, 0.5: 186, 0.0: 124}


@pytest.mark.parametrize("inputs", [1, 3, 5])
def test_bad_weights_are_marked_and_spoil_no_other(inputs: int) -> None:
    weight = np.full((2, inputs, 1, 2), 0.5)
    weight[0, 0, 0] = [NAN, INF]
    weight[1, 0, 0, 0] = -INF
    raster, peak = draw_kernels(kernels_of(weight))
    assert peak == 0.5
    assert raster.palette is not None
    assert raster.pixels[1, 1:3].tolist() == [Mark.NAN, Mark.POSITIVE_INFINITY]
    assert raster.pixels[1, 4:6].tolist() == [Mark.NEGATIVE_INFINITY, 249]


def test_all_zero_kernels_are_neutral() -> None:
    assert set(draw_kernels(kernels_of(np.zeros((2, 3, 2, 2))))[0].pixels.flat) == {0, 127}
    assert set(draw_kernels(kernels_of(np.zeros((2, 2, 2, 2))))[0].pixels.flat) == {124, 250}


def test_at_most_so_many_kernels_are_drawn() -> None:
    raster, _ = draw_kernels(kernels_of(np.ones((10, 8, 1, 1))), 4)
    assert raster.pixels.shape == (9, 9)


@pytest.mark.parametrize("most", [2, 3, 64])
def test_kernels_are_rgb_by_the_whole_weights_inputs_and_no_others(most: int) -> None:
    matrix, _ = draw_kernels(kernels_of(np.ones((8, 16, 1, 1))).cut(most), most)
    assert matrix.palette is not None
    colours, _ = draw_kernels(kernels_of(np.ones((8, 3, 1, 1))).cut(most), most)
    assert colours.palette is None
    assert colours.pixels.shape[2] == 3


def test_the_kernels_of_a_real_first_layer_are_drawn_whole() -> None:
    weight = network(torchvision.models.alexnet).features[0].weight.detach().numpy()
    raster, peak = draw_kernels(kernels_of(weight))
    assert raster.pixels.shape == (8 * 12 + 1, 8 * 12 + 1, 3)
    assert peak == np.abs(weight).max()


# -- the network's input -------------------------------------------------------------------------


def test_a_photograph_is_shown_as_it_was_before_normalization() -> None:
    with Image.open(bundled("photographs/chelsea.jpg")) as image:
        original = np.array(image.convert("RGB").resize((40, 30)))
    values = chelsea(30, 40)[0].numpy()
    raster, how = draw_input_image(
        InputImage(0, values, ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    )
    assert np.array_equal(raster.pixels, original)
    assert how == "de-normalized with the mean and standard deviation given"


def test_an_input_between_0_and_1_is_shown_as_it_is() -> None:
    raster, how = draw_input_image(InputImage(0, np.array([[[0.0, 0.2, 1.0]]], np.float32)))
    assert raster.pixels.tolist() == [[0, 51, 255]]
    assert how == "values 0…1 as they are"


def test_any_other_input_is_stretched_and_says_between_what() -> None:
    raster, how = draw_input_image(InputImage(0, np.array([[[-2.0, 0.0, 2.0]]], np.float32)))
    assert raster.pixels.tolist() == [[0, 128, 255]]
    assert how == "stretched between its extremes -2 and 2"


@pytest.mark.parametrize("channels", [1, 3])
def test_bad_pixels_of_the_input_are_marked_and_spoil_no_other(channels: int) -> None:
    values = np.full((channels, 1, 5), 0.2, np.float32)
    values[0, 0, 1:4] = [NAN, INF, -INF]
    values[0, 0, 4] = 1.0
    picture = draw_input_image(InputImage(0, values))[0].pixels[0].tolist()
    assert picture[0] == [51, 51, 51]
    assert picture[1:4] == [[255, 0, 255], [255, 0, 0], [0, 0, 255]]


# -- enlarging -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("side", "factor"), [(1, 32), (7, 5), (16, 2), (31, 2), (32, 1), (33, 1)])
def test_small_maps_are_enlarged_by_the_whole_factor_that_reaches_32_px(
    side: int, factor: int
) -> None:
    raster = draw_maps(planes_of(torch.rand(1, 2, side, side)), 0, GREY)
    big = enlarge(raster)
    assert big.tile == (side * factor, side * factor)
    assert np.array_equal(big.pixels, np.kron(raster.pixels, np.ones((factor, factor), np.uint8)))


def test_enlarging_keeps_palette_and_colour() -> None:
    indexed = Raster(np.array([[3, 250]], np.uint8), GREY.table, tile=(16, 16))
    assert enlarge(indexed).pixels.tolist() == [[3, 3, 250, 250], [3, 3, 250, 250]]
    assert enlarge(indexed).palette is GREY.table
    rgb = Raster(np.array([[[1, 2, 3]]], np.uint8), tile=(16, 16))
    assert enlarge(rgb).pixels.tolist() == [[[1, 2, 3]] * 2] * 2


def test_a_photograph_is_never_enlarged() -> None:
    assert enlarge(Raster(np.zeros((4, 4), np.uint8))).pixels.shape == (4, 4)
