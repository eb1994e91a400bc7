"""Files and folders on the command line become a list of image files."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmapboard.cli.images import find_images
from fmapboard.errors import ImageError


def test_files_come_as_given_and_folders_in_natural_order(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    for name in ("b10.jpg", "B9.PNG", "a1.tif", "notes.txt", ".hidden.png", "inner/c.png"):
        (folder / name).touch()
    (tmp_path / "odd.name").touch()
    found = find_images([tmp_path / "odd.name", folder, folder / "B9.PNG"])
    assert [p.name for p in found] == ["odd.name", "a1.tif", "B9.PNG", "b10.jpg", "B9.PNG"]


def test_a_folder_without_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ImageError, match=r"no image in the folder '.*'; looked for \.avif, \.bmp"):
        find_images([tmp_path])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"no such file or folder: .*nothing'"):
        find_images([tmp_path / "nothing"])
