"""Crops of the bundled photographs for training and validation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from fmapboard.demo.bundled import bundled
from fmapboard.demo.network import CLASSES
from fmapboard.demo.photographs import Photographs


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_the_bundled_photographs_are_the_classes_of_the_network(photographs: Photographs) -> None:
    assert photographs.names == CLASSES
    assert photographs.names == (
        "astronaut",
        "brick",
        "chelsea",
        "coffee",
        "grass",
        "gravel",
        "retina",
        "rocket",
    )


def test_the_bundled_photographs_are_small_and_listed_with_their_licence() -> None:
    folder = bundled("photographs")
    listed = Path(__file__).parents[3] / "assets" / "README.md"
    rows = [line for line in listed.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_200_000
    assert sorted(row.split("`")[1] for row in rows) == sorted(f.name for f in folder.iterdir())
    for row in rows:
        name, licence, size = (row.split("|")[column].strip(" `") for column in (1, 4, 5))
        assert licence.startswith(("CC0", "public domain"))
        with Image.open(folder / name) as image:
            assert size == f"{image.width} × {image.height}"
            assert max(image.size) <= 512


def test_a_training_batch_is_normalized_crops_and_their_labels(photographs: Photographs) -> None:
    images, labels = photographs.training_batch(800, seeded(0))
    assert images.shape == (800, 3, 48, 48)
    assert images.dtype == torch.float32
    assert labels.shape == (800,)
    assert labels.dtype == torch.int64
    assert sorted(set(labels.tolist())) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert images.mean((0, 2, 3)).tolist() == pytest.approx([0, 0, 0], abs=0.1)
    assert images.std((0, 2, 3)).tolist() == pytest.approx([1, 1, 1], abs=0.1)


def test_a_training_batch_depends_on_its_generator_alone(photographs: Photographs) -> None:
    first, _ = photographs.training_batch(16, seeded(7))
    before = torch.random.get_rng_state()
    again, _ = photographs.training_batch(16, seeded(7))
    other, _ = photographs.training_batch(16, seeded(8))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_validation_crops_are_always_the_same_and_equally_many_per_photograph(
    photographs: Photographs,
) -> None:
    images, labels = photographs.validation_crops()
    again, _ = Photographs.load().validation_crops()
    assert images.shape == (192, 3, 48, 48)
    assert labels.bincount().tolist() == [24] * 8
    assert torch.equal(images, again)


def test_no_pixel_is_shared_by_training_and_validation(tmp_path: Path) -> None:
    # The held-out quarter, columns 256 to 383, is white and all the rest black: a crop that
    # reached over the cut, or was resized over it, would not be of one colour.
    image = Image.new("RGB", (512, 200), "black")
    image.paste("white", (256, 0, 384, 200))
    image.save(tmp_path / "strip.jpg", quality=90)
    strip = Photographs.load(tmp_path)
    training, _ = strip.training_batch(2000, seeded(0))
    validation, _ = strip.validation_crops()
    assert training.amax((2, 3)).sub(training.amin((2, 3))).max().item() == 0
    assert training[:, 0].max().item() < 0
    assert len(set(validation.flatten().tolist())) == 3  # white, in each of the three channels
    assert validation.min().item() > 0
    assert torch.equal(strip.probe(), validation[:1])


def test_training_crops_come_from_both_sides_of_the_held_out_part(tmp_path: Path) -> None:
    image = Image.new("RGB", (512, 200), "black")
    image.paste("white", (384, 0, 512, 200))
    image.save(tmp_path / "sides.jpg", quality=90)
    images, _ = Photographs.load(tmp_path).training_batch(3000, seeded(0))
    assert (images[:, 0, 0, 0] > 0).float().mean().item() == pytest.approx(1 / 3, abs=0.03)


def test_a_crop_shows_its_photograph_upright_and_in_the_files_colours(tmp_path: Path) -> None:
    # Red above blue, and brighter to the right.
    image = Image.new("RGB", (512, 192), (200, 0, 0))
    image.paste((0, 0, 200), (0, 96, 512, 192))
    image.paste((255, 0, 0), (320, 0, 384, 96))
    image.save(tmp_path / "flag.jpg", quality=100, subsampling=0)
    probe = Photographs.load(tmp_path).probe()[0]  # [3, 48, 48], at half the file's size
    red, _, blue = (probe * torch.tensor([0.25, 0.19, 0.20]).view(3, 1, 1)).unbind()
    assert red[2, 2].item() == pytest.approx(200 / 255 - 0.51, abs=0.01)
    assert red[2, 45].item() == pytest.approx(1 - 0.51, abs=0.01)
    assert blue[2, 2].item() == pytest.approx(-0.36, abs=0.01)
    assert blue[45, 2].item() == pytest.approx(200 / 255 - 0.36, abs=0.01)


def test_the_probe_is_one_held_out_crop_of_each_photograph(photographs: Photographs) -> None:
    assert photographs.probe().shape == (8, 3, 48, 48)
    assert torch.equal(photographs.probe(), photographs.probe())


def test_a_bundled_photograph_is_found_by_name() -> None:
    with Image.open(bundled("photographs/coffee.jpg")) as image:
        assert image.size == (512, 341)
