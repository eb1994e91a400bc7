"""Files and folders on the command line become a list of image files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fmapboard.errors import ImageError
from fmapboard.imaging.images import find_images, read_image


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


def test_images_in_subfolders_alone_are_enough(tmp_path: Path) -> None:
    touch(tmp_path, "photos/class0/a.png")
    assert [one.name for one in find_images([tmp_path / "photos"])] == ["class0/a.png"]


def test_links_to_folders_are_followed_and_may_lead_upwards(tmp_path: Path) -> None:
    touch(tmp_path, "photos/class0/a.png", "elsewhere/b.png")
    (tmp_path / "photos" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos" / "class0" / "up").symlink_to(tmp_path / "photos")
    found = find_images([tmp_path / "photos"])
    assert [one.name for one in found] == ["class0/a.png", "linked/b.png"]


def test_links_between_folders_end(tmp_path: Path) -> None:
    names = [f"class{number}" for number in range(12)]
    for name in names:
        touch(tmp_path, f"photos/{name}/a.png")
        for other in names:
            (tmp_path / "photos" / name / other).symlink_to(tmp_path / "photos" / other)
    assert len(find_images([tmp_path / "photos"])) == 12


def test_folders_may_be_nested_more_deeply_than_python_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        for _ in range(1100):
            os.mkdir("d")
            os.chdir("d")
        touch(Path(), "a.png")
        (found,) = find_images([tmp_path])
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # pytest could not remove it
    assert found.name == "d/" * 1100 + "a.png"


def test_a_link_to_nothing_is_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    (tmp_path / "b.png").symlink_to(tmp_path / "b.png")
    (tmp_path / "c.png").symlink_to(tmp_path / "none.png")
    (tmp_path / "d.png").symlink_to("/dev/zero")
    assert [one.name for one in find_images([tmp_path])] == ["a.png", "b.png", "c.png"]


@pytest.mark.parametrize("name", [b"caf\xe9.png", b"caf\xe9/a.png"])
def test_bytes_of_a_name_that_are_no_text_are_replaced(tmp_path: Path, name: bytes) -> None:
    touch(tmp_path, os.fsdecode(name))
    (found,) = find_images([tmp_path])
    assert found.name == name.decode(errors="replace")
    assert find_images([found.path])[0].name == found.path.name.replace("\udce9", "\ufffd")


def test_a_subfolder_that_cannot_be_listed_counts_as_a_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "photos/secret/a.png", "photos/b.png")
    listed = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = find_images([tmp_path / "photos"])
    assert [one.name for one in found] == ["b.png", "secret"]
    with pytest.raises(ImageError, match=r"secret' is a folder, .* listed; give an image file"):
        read_image(found[1].path)
    with pytest.raises(ImageError, match=r"secret': Permission denied; give a folder that you may"):
        find_images([tmp_path / "photos" / "secret"])


def test_a_folder_without_images_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        ImageError,
        match=r"no image in the folder '.*' and its subfolders; looked for \.avif, \.bmp, .*; give "
        "another folder, or the files themselves",
    ):
        find_images([tmp_path])


def test_a_missing_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"no such file or folder: .*nothing'"):
        find_images([tmp_path / "nothing"])
