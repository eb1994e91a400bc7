"""Files and folders on the command line become a list of image files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fmapboard.cli.images import find_images, read_image
from fmapboard.errors import ImageError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_files_come_as_given_and_folders_in_natural_order_with_their_subfolders(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    touch(folder, "b10.jpg", "B9.PNG", "a1.tif", "notes.txt", ".hidden.png", ".git/e.png")
    touch(folder, "class10/a.png", "class9/d.png", "class9/deep/c.png", "class9/notes.txt")
    (tmp_path / "odd.name").touch()
    found = find_images([tmp_path / "odd.name", folder, folder / "B9.PNG"])
    assert [one.name for one in found] == [
        "odd.name", "a1.tif", "B9.PNG", "b10.jpg",
        "class9/d.png", "class9/deep/c.png", "class10/a.png", "B9.PNG",
    ]  # fmt: skip
    assert [one.in_folder for one in found] == [False, *[True] * 6, False]
    assert found[5].path == folder / "class9" / "deep" / "c.png"
    assert found[5].stem == "class9/deep/c"


def test_images_in_subfolders_alone_are_enough(tmp_path: Path) -> None:
    touch(tmp_path, "photos/class0/a.png")
    assert [one.name for one in find_images([tmp_path / "photos"])] == ["class0/a.png"]


def test_links_to_folders_are_followed_and_may_lead_upwards(tmp_path: Path) -> None:
    touch(tmp_path, "photos/class0/a.png", "elsewhere/b.png")
    (tmp_path / "photos" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos" / "class0" / "up").symlink_to(tmp_path / "photos")
    found = find_images([tmp_path / "photos"])
    assert [one.name for one in found] == ["class0/a.png", "linked/b.png"]


def test_a_subfolder_that_cannot_be_listed_counts_as_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "photos/secret/a.png", "photos/b.png")
    listed = Path.iterdir

    def iterdir(self: Path) -> Iterator[Path]:
        if self.name == "secret":
            raise PermissionError(13, "Permission denied")
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    found = find_images([tmp_path / "photos"])
    assert [one.name for one in found] == ["b.png", "secret"]
    with pytest.raises(ImageError, match=r"cannot list the folder '.*secret': Permission denied"):
        read_image(found[1].path)
    with pytest.raises(ImageError, match=r"cannot list the folder '.*secret': Permission denied"):
        find_images([tmp_path / "photos" / "secret"])


def test_a_folder_without_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        ImageError,
        match=r"no image in the folder '.*' and its subfolders; looked for \.avif, \.bmp",
    ):
        find_images([tmp_path])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"no such file or folder: .*nothing'"):
        find_images([tmp_path / "nothing"])
