"""Examples, links and code of the pages in docs/."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_pages import broken_links, python_blocks

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_in_the_docs_verbatim(example: Path) -> None:
    assert example.read_text() in [block for page in PAGES for block in python_blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    assert broken_links(page) == []


def test_the_page_about_notebooks_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in python_blocks(ROOT / "docs" / "notebooks.md"):
        exec(block, names)
    assert (tmp_path / "runs" / "layer1.0.conv1.png").stat().st_size > 1000


def test_the_four_lines_that_fmapboard_needs_are_marked() -> None:
    page = (ROOT / "docs" / "plain_pytorch.md").read_text()
    assert page.count("# <- fmapboard") == 4
