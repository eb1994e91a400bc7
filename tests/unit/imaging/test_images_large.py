"""Large pictures are read one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest
from image_files import noise, saved

from fmapboard.imaging import images
from fmapboard.imaging.images import read_fitted


@pytest.mark.parametrize(("limit", "alone"), [(10, True), (10**9, False)])
def test_no_other_large_image_is_read_while_one_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, alone: bool
) -> None:
    monkeypatch.setattr(images, "_LARGE", limit)
    path = saved(noise(), tmp_path / "a.png")
    assert read_fitted(path, lambda _: images._READING_LARGE.locked()) is alone
    assert not images._READING_LARGE.locked()
