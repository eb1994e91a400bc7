"""Examples, links and code of the pages in docs/."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_pages import broken_links, is_part, python_blocks

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_of_frameworks_links_to_every_example(example: Path) -> None:
    text = (ROOT / "docs" / "frameworks.md").read_text()
    assert f"](../examples/{example.name})" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    assert broken_links(page) == []


def test_the_page_about_notebooks_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in python_blocks(ROOT / "docs" / "notebooks.md"):
        exec(block, names)
    assert (tmp_path / "runs" / "layer1.0.conv1.png").stat().st_size > 1000


def test_the_part_with_the_lines_that_fmapboard_needs_is_that_of_the_example() -> None:
    script = (ROOT / "examples" / "plain_pytorch.py").read_text()
    assert script.count("# <- fmapboard") == 4
    (block,) = [b for b in python_blocks(ROOT / "docs" / "plain_pytorch.md") if "<- fmapboard" in b]
    assert is_part(block, script)
    assert "before_clipping()" in block
