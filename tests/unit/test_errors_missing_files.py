"""What is said of a file that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmapboard.errors import nearby


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few").mkdir()
    Path("many").mkdir()
    for name in ("chelsea.jpg", "coffee.jpg", ".hidden"):
        Path("few", name).touch()
    for number in range(20):
        Path("many", f"{number:02} holiday.jpg").touch()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("few/chelsae.jpg", "; closest: chelsea.jpg"),
        ("few/chelsea.png", "; closest: chelsea.jpg"),
        ("few/Chelsea.jpg", "; closest: chelsea.jpg"),
        ("few/rocket.jpg", "; there are: chelsea.jpg, coffee.jpg"),
        ("many/rocket.jpg", ""),
        ("none/rocket.jpg", "; there is no folder 'none'"),
        ("rocket.jpg", "; there are: few, many"),
    ],
)
def test_a_missing_file_suggests_files_that_are_really_close(path: str, said: str) -> None:
    assert nearby(Path(path)) == said
