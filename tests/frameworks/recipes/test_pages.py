"""The pages in docs/recipes agree with their scripts."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from markdown_pages import broken_links, is_part, python_blocks

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
SCRIPTS = ROOT / "examples" / "recipes"


def test_every_script_has_a_page_and_every_page_is_in_the_list() -> None:
    assert {page.stem for page in PAGES} == {script.stem for script in SCRIPTS.glob("*.py")}
    listed = re.findall(r"\]\(recipes/(\w+)\.md\)", (ROOT / "docs" / "recipes.md").read_text())
    assert sorted(listed) == [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_lines_that_a_page_shows_are_in_its_script(page: Path) -> None:
    script = (SCRIPTS / f"{page.stem}.py").read_text()
    blocks = python_blocks(page)
    assert blocks
    assert [block for block in blocks if not is_part(block, script)] == []
    assert all(textwrap.dedent(block) == block for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_names_its_script_and_the_commands_that_show_the_run(page: Path) -> None:
    text = page.read_text()
    assert f"](../../examples/recipes/{page.stem}.py)" in text
    (command,) = re.findall(r"python (examples/recipes/\w+\.py) --steps \d+\n", text)
    assert (ROOT / command).exists()
    assert "fmapboard serve runs " in text
    assert "tensorboard --logdir runs\n" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    assert broken_links(page) == []
