"""`FolderWriter`: file names, replaced files, enlarged maps, write errors."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoded_pictures import rgb_pixels
from writer_cases import Events, decoded

from fmapboard.errors import ConfigurationError, WriteError
from fmapboard.records import LoggedStep, Picture, TaggedPictures
from fmapboard.render.grid import enlarge
from fmapboard.writers.folder import FolderWriter


def picture(tag: str, value: int = 0, kind: Any = "feature_maps") -> TaggedPictures:
    return TaggedPictures(tag, kind, (Picture(np.full((40, 40), value, np.uint8), tile=(40, 40)),))


def test_files_of_a_folder_never_collide(tmp_path: Path) -> None:
    tags = ["feature_maps_1x1/a/b", "feature_maps_1x1/a_b", "feature_maps_2x2/A_b",
            "feature_maps_1x1/../../up", "feature_maps_1x1/.hidden"]  # fmt: skip
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=tuple(picture(t, i) for i, t in enumerate(tags))))
    names = [writer.files[tag][0].name for tag in tags]
    assert names == ["a_b.png", "a_b-2.png", "A_b-3.png", "_.._up.png", "hidden.png"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    assert [decoded((tmp_path / name).read_bytes())[0, 0, 0] for name in names] == [0, 1, 2, 3, 4]


def test_a_later_step_replaces_the_one_before(tmp_path: Path) -> None:
    writer = FolderWriter(tmp_path)
    for number in (0, 1):
        writer.write(LoggedStep(number, 0.0, pictures=(picture("feature_maps_1x1/a", number),)))
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert decoded((tmp_path / "a.png").read_bytes())[0, 0, 0] == 1


def test_small_maps_are_enlarged_in_a_folder_only(tmp_path: Path) -> None:
    small = Picture(np.arange(64, dtype=np.uint8).reshape(8, 8), tile=(8, 8))
    step = LoggedStep(
        0, 0.0, pictures=(TaggedPictures("feature_maps_1x1/a", "feature_maps", (small,)),)
    )
    writer = FolderWriter(tmp_path / "folder")
    writer.write(step)
    assert np.array_equal(
        decoded((tmp_path / "folder" / "a.png").read_bytes()), rgb_pixels(enlarge(small))
    )
    events = Events(tmp_path / "events")
    events.writer.write(step)
    events.end()
    assert events.pictures(0)["feature_maps_1x1/a"][0].shape == (8, 8, 3)


def test_a_folder_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WriteError, match=r"cannot write to .*/file: File exists"):
        FolderWriter(tmp_path / "file")


def test_a_picture_that_cannot_be_written_leaves_the_one_before_readable(tmp_path: Path) -> None:
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=(picture("feature_maps_1x1/a", 9),)))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write .*a\.png: File too large"):
            writer.write(LoggedStep(1, 0.0, pictures=(picture("feature_maps_1x1/a", 1),)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert decoded((tmp_path / "a.png").read_bytes())[0, 0, 0] == 9


def test_a_layer_named_like_a_windows_device_gets_another_file_name(tmp_path: Path) -> None:
    tags = ["feature_maps_1x1/CON", "feature_maps_1x1/aux.0", "feature_maps_1x1/com1",
            "feature_maps_1x1/aux1.conv", "feature_maps_1x1/a.con"]  # fmt: skip
    writer = FolderWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, pictures=tuple(map(picture, tags))))
    names = [writer.files[tag][0].name for tag in tags]
    assert names == ["CON_.png", "aux_.0.png", "com1_.png", "aux1.conv.png", "a.con.png"]


def test_two_writers_of_one_folder_do_not_share_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = LoggedStep(0, 0.0, pictures=(picture("feature_maps_1x1/a", 9),))
    parts: list[Path] = []
    replace = Path.replace

    def replace_late(part: Path, target: Path) -> Path:
        """Rename after another writer, as a second process would be, has written the same file."""
        parts.append(part)
        if len(parts) == 1:
            FolderWriter(tmp_path).write(step)
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", replace_late)
    FolderWriter(tmp_path).write(step)
    assert len(set(parts)) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]
    assert decoded((tmp_path / "a.png").read_bytes())[0, 0, 0] == 9


@pytest.mark.parametrize("given", ["gs://bucket/maps", Path("gs://bucket/maps")])
def test_a_url_is_refused_and_no_folder_is_made(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError):
        FolderWriter(given)
    assert list(tmp_path.iterdir()) == []
