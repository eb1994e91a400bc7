"""The crops are those of the largest values over all images and positions."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from module_hooks import hook_count
from PIL import Image
from torch import Tensor, nn

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.errors import CaptureError, ConfigurationError
from fmapboard.imaging.images import decoding
from fmapboard.records import Bytes8
from fmapboard.top_patches.search import PatchSearch, best_positions

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


@pytest.fixture(scope="module")
def photographs() -> Bytes8:
    """Parts of photographs, u8 [24, 40, 56, 3]."""
    parts = []
    with decoding():
        for name in ("astronaut", "chelsea", "coffee", "rocket"):
            with Image.open(bundled("photographs") / f"{name}.jpg") as image:
                small = image.convert("RGB").resize((168, 80))
                parts += [
                    np.asarray(small.crop((x, y, x + 56, y + 40)))
                    for x in (0, 56, 112)
                    for y in (0, 40)
                ]
    return np.stack(parts)


@pytest.fixture(scope="module")
def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 5, 2, 2), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 8, 3), nn.Flatten(),
        nn.Linear(8 * 18 * 26, 3),
    )  # fmt: skip


def prepared(pixels: Bytes8) -> Tensor:
    """[N, 3, H, W], normalized."""
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    return (images - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


def brute_force(
    values: Tensor, k: int, *, one_per_image: bool
) -> list[list[tuple[float, int, int]]]:
    """By channel of values [N, C, P]: value, image and position of the best."""
    found = []
    for channel in values.transpose(0, 1).tolist():
        every = [
            (-value, image, position)
            for image, row in enumerate(channel)
            for position, value in enumerate(row)
            if value == value  # not NaN
        ]
        every.sort()
        if one_per_image:
            seen: set[int] = set()
            every = [e for e in every if not (e[1] in seen or seen.add(e[1]))]  # type: ignore[func-returns-value]
        found.append([(-value, image, position) for value, image, position in every[:k]])
    return found


@pytest.mark.parametrize("one_per_image", [True, False])
def test_the_crops_are_those_of_the_largest_values_of_all_images_and_positions(
    photographs: Bytes8, net: nn.Sequential, *, one_per_image: bool
) -> None:
    images = prepared(photographs)
    found = fmapboard.patches(
        net, images, lambda name, module: name in "035" and bool(name), k=7, batch_size=5,
        one_per_image=one_per_image, normalization=(MEAN, STD),
    )  # fmt: skip
    maps = fmapboard.extract(net.eval(), images, lambda name, module: name in "035" and bool(name))
    assert list(found) == ["0", "3", "5"]
    for label, layer in found.items():
        values = maps[label].flatten(2) if maps[label].dim() > 2 else maps[label][..., None]
        expected = brute_force(values, 7, one_per_image=one_per_image)
        grid = maps[label].shape[2:]
        for crops, best in zip(layer.crops, expected, strict=True):
            assert [(crop.image, crop.position) for crop in crops] == [
                (image, tuple(map(int, np.unravel_index(place, grid))) if grid else ())
                for _, image, place in best
            ]
            np.testing.assert_allclose([c.value for c in crops], [b[0] for b in best], rtol=1e-4)
            for crop in crops:
                top, left, bottom, right = crop.field
                cut = photographs[crop.image][top:bottom, left:right]
                assert crop.is_whole == (cut.shape == photographs[0].shape)
                assert abs(crop.pixels.astype(int) - cut).max() <= 1


def test_the_values_are_those_of_a_model_in_eval_mode_which_is_left_as_it_was(
    net: nn.Sequential, photographs: Bytes8
) -> None:
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = fmapboard.patches(net, prepared(photographs), "3", k=1)
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert hook_count(net) == 0
    with torch.no_grad():
        values = net.eval()[:4](prepared(photographs))
    best = [crops[0].value for crops in found["3"].crops]
    np.testing.assert_allclose(best, values.amax((0, 2, 3)), rtol=1e-4)


class Counting(nn.Module):
    """Counts the images that it receives, by whether they have NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)
        self.images, self.probes = 0, 0

    def forward(self, x: Tensor) -> Tensor:
        probes = int(x.isnan().flatten(1).any(1).sum())
        self.probes += probes
        self.images += len(x) - probes
        return self.conv(x)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_each_image_runs_once_and_the_passes_for_the_fields_do_not_depend_on_their_number(
    batch_size: int,
) -> None:
    passes = []
    for images in (9, 30):
        net = Counting()
        fmapboard.patches(net, torch.rand(images, 3, 20, 24), batch_size=batch_size)
        own = 2  # of the first image, on which the fields are measured
        assert net.images - images <= own
        passes.append(net.probes)
    assert passes[0] == passes[1] <= 20 + 24 + 2


def test_memory_does_not_grow_with_the_number_of_images() -> None:
    net = nn.Conv2d(3, 4, 3)
    held_bytes = []
    for images in (12, 60):
        search = PatchSearch(net, k=3, batch_size=2)

        def stream(count: int) -> Iterator[tuple[Tensor, list[Bytes8]]]:
            random = np.random.default_rng(0)
            for _ in range(count // 2):
                pixels = random.integers(0, 256, (2, 64, 64, 3), np.uint8)
                yield torch.from_numpy(pixels).permute(0, 3, 1, 2).float(), list(pixels)

        search.add(*next(stream(2)), ["a", "b"])  # measures the fields
        given: list[weakref.ref[Any]] = []
        for batch, pictures in stream(images):
            search.add(batch, pictures, ["a", "b"])
            given.append(weakref.ref(batch))
            given.append(weakref.ref(pictures[0].base))  # type: ignore[arg-type]  # the batch's pixels
        del batch, pictures
        assert [reference for reference in given if reference() is not None] == []
        crops = [crop for row in search.result()["Conv2d"].crops for crop in row]
        assert {id(crop.pixels.base) for crop in crops} == {id(None)}  # copies, not views
        held_bytes.append(sum(crop.pixels.nbytes for crop in crops))
    assert held_bytes == [4 * 3 * 3 * 3 * 3] * 2  # channels, crops, height, width, colours


def test_of_equal_values_the_earlier_image_comes_first_and_then_the_earlier_position() -> None:
    values = torch.tensor([[[1.0, 3, 3, 2]]])
    assert best_positions(values, 1)[1].tolist() == [[[1]]]
    assert best_positions(values, 3)[1].tolist() == [[[1, 2, 3]]]
    images = torch.rand(1, 3, 8, 8).expand(6, 3, 8, 8)
    found = fmapboard.patches(nn.Conv2d(3, 2, 3), images, k=4, batch_size=4)["Conv2d"]
    assert [[crop.image for crop in crops] for crops in found.crops] == [[0, 1, 2, 3]] * 2


def test_nan_is_left_out_and_counted_and_infinity_is_the_largest_value() -> None:
    inf, nan = float("inf"), float("nan")
    values = torch.tensor([[[nan, -inf, nan, 2, inf], [nan] * 5]])
    found, places = best_positions(values, 4)
    np.testing.assert_array_equal(found, [[[inf, 2, -inf, nan], [nan] * 4]])
    assert places[0, 0, :3].tolist() == [4, 3, 1]
    np.testing.assert_array_equal(best_positions(values, 1)[0], [[[inf], [nan]]])
    images = torch.rand(3, 3, 6, 6)
    images[1] = nan
    images[2, :, 2] = nan
    layer = fmapboard.patches(nn.Conv2d(3, 1, 3), images, k=3, batch_size=1)["Conv2d"]
    assert [crop.image for crop in layer.crops[0]] == ([0, 2] if images[2, 0, 3:].numel() else [])
    assert layer.nan == (16 + 12,)


def test_nan_and_infinity_are_counted_in_all_channels_and_images() -> None:
    images = torch.rand(5, 3, 6, 6)
    images[1, 2, 2, 2] = float("nan")
    images[3, 2, 2, 2] = float("-inf")
    images[4, 0, 2, 2] = float("inf")
    found = fmapboard.patches(nn.Identity(), images, "*", channels=1, batch_size=2).images
    assert found.line(5) == "5 images; NaN in 1: image1; infinity in 2: image3, image4"


def test_images_of_several_sizes_are_searched_and_from_the_fifth_on_drawn_whole(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "fmapboard")
    images = [Image.new("RGB", (12 + n, 14), (9 * n, 0, 0)) for n in range(6)]
    found = fmapboard.patches(
        nn.Conv2d(3, 1, 3),
        images,
        transform=lambda i: torch.from_numpy(np.array(i) / 255).permute(2, 0, 1).float(),
    )["Conv2d"]
    whole = {crop.image: crop.is_whole for crop in found.crops[0]}
    assert whole == {0: False, 1: False, 2: False, 3: False, 4: True, 5: True}
    assert "More than 4 image sizes" in caplog.text


def test_a_model_whose_images_interact_runs_on_one_at_a_time(
    photographs: Bytes8, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "fmapboard")
    norm = nn.BatchNorm2d(4, track_running_stats=False)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), norm)
    images = prepared(photographs)
    found = fmapboard.patches(net, images, "1", k=2)["1"]
    alone = torch.stack([net(image[None])[0].detach() for image in images])
    np.testing.assert_allclose(found.crops[0][0].value, alone[:, 0].max(), rtol=1e-5)
    assert "one image per forward pass" in caplog.text


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda net, x: fmapboard.patches(net, x, k=0), "k=0: expected at least 1"),
        (lambda net, x: fmapboard.patches(net, x, channels=-1), "channels=-1: expected at least 1"),
        (lambda net, x: fmapboard.patches(net, x, step=-1), "step=-1"),
        (lambda net, x: fmapboard.patches(net, x, "nothing.*"), "no layer matches 'nothing"),
        (lambda net, x: fmapboard.patches(net, x[:0]), "expected"),
    ],
)
def test_invalid_arguments_are_refused_by_name(
    call: Callable[[nn.Module, Tensor], object], text: str
) -> None:
    with pytest.raises(ConfigurationError, match=text.replace("*", r"\*")):
        call(nn.Conv2d(3, 2, 3), torch.rand(2, 3, 8, 8))


def test_a_selected_layer_that_never_runs_is_an_error() -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 3)

        def forward(self, x: Tensor) -> Tensor:
            return x

    with pytest.raises(CaptureError, match="no selected layer ran"):
        fmapboard.patches(Unused(), torch.rand(2, 3, 8, 8))


def test_pictures_and_records_are_written_and_added_to_an_earlier_run(
    tmp_path: Path, photographs: Bytes8, net: nn.Sequential
) -> None:
    images = prepared(photographs)
    run, out = tmp_path / "run", tmp_path / "png"
    found = fmapboard.patches(net, images, ["0", "3"], k=3, log_dir=run, out=out)
    assert [path.name for path in found.files["3"]] == ["patches_3.png"]
    with Image.open(found.files["3"][0]) as written:
        assert np.array_equal(np.asarray(written), np.asarray(found.picture("3")))
    assert len(list(run.iterdir())) == 2  # the maps of the first image, and the patches
    fmapboard.patches(net, images[:4], "3", k=3, log_dir=run, step=5)
    assert len(list(run.iterdir())) == 3
