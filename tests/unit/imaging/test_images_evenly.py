"""Some of the images in class folders: as many of each class."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from installed_commands import run

from fmapboard.demo.bundled import bundled
from fmapboard.imaging.images import evenly, find_images

CLASSES = {"animals": ("astronaut", "chelsea", "retina"), "things": ("coffee", "rocket")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Photographs in a folder per class."""
    for name, photographs in CLASSES.items():
        (tmp_path / "val" / name).mkdir(parents=True)
        for photograph in photographs:
            source = bundled("photographs") / f"{photograph}.jpg"
            shutil.copy(source, tmp_path / "val" / name)
    return tmp_path / "val"


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (1, ["animals/astronaut.jpg"]),
        (2, ["animals/astronaut.jpg", "things/coffee.jpg"]),
        (3, ["animals/astronaut.jpg", "animals/chelsea.jpg", "things/coffee.jpg"]),
        (4, [*[f"animals/{n}.jpg" for n in ("astronaut", "chelsea")],
             *[f"things/{n}.jpg" for n in ("coffee", "rocket")]]),
    ],
)  # fmt: skip
def test_as_many_images_are_taken_from_each_class(
    folder: Path, most: int, names: list[str]
) -> None:
    assert [image.name for image in evenly(find_images([folder]), most)] == names


def test_class_folders_may_be_given_one_by_one(folder: Path) -> None:
    images = find_images([folder / "animals", folder / "things"])
    names = [image.path.name for image in evenly(images, 4)]
    assert names == ["astronaut.jpg", "chelsea.jpg", "coffee.jpg", "rocket.jpg"]


def test_all_images_are_taken_where_there_are_no_more_or_no_number_is_given(folder: Path) -> None:
    images = find_images([folder])
    assert evenly(images, 9) == evenly(images, None) == images


def test_files_given_by_name_are_taken_from_the_first_on(folder: Path) -> None:
    files = [*(folder / "animals").iterdir(), *(folder / "things").iterdir()]
    images = find_images(files)
    assert evenly(images, 2) == images[:2]


def test_samples_draws_evenly_from_the_classes(folder: Path, tmp_path: Path) -> None:
    options = ("--samples", "2", "--layers", "conv1", "--out", tmp_path / "maps")
    done = run("fmapboard", "visualize", folder, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "maps").rglob("*astronaut*"))
    assert list((tmp_path / "maps").rglob("*coffee*"))
    assert not list((tmp_path / "maps").rglob("*chelsea*"))
