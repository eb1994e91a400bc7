"""The Python blocks of every page in docs/ run, in order, in one namespace per page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from markdown_pages import is_part, python_blocks
from module_hooks import hook_count
from torch import nn

import fmapboard

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if python_blocks(page)]
SCRIPTS = {path.read_text() for path in (ROOT / "examples").rglob("*.py")}
"""Pages show parts of them; test_examples.py and recipes/ in tests/frameworks run them."""
SHORTER = {"get_started": ("range(20)", "range(6)")}
"""Page -> a part of its blocks, and what it is replaced with: its loop with fewer steps."""
LEAVES = {"get_started": "runs/first/*tfevents*", "notebooks": "runs/layer1.0.conv1.png"}
"""Page -> a file that its blocks write."""


@pytest.fixture(autouse=True)
def small_and_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary directory and one thread."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_CONSOLE", "off")
    if "wandb" in sys.modules:
        sys.modules["wandb"].teardown()  # it reads the environment when it starts
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    if "wandb" in sys.modules:
        sys.modules["wandb"].tensorboard.unpatch()  # sync_tensorboard=True outlives its run
        sys.modules["wandb"].teardown()


def prints(block: str) -> list[str]:
    """What each line ``print(...)  # result`` of a block says that it prints; "" without one."""
    lines = [line for line in block.splitlines() if line.startswith("print(")]
    return [line.partition("  # ")[2] for line in lines]


def is_run_here(page: Path, block: str) -> bool:
    if page.stem == "hooks":
        return False  # tests/docs/test_hooks.py runs it and checks its results
    return not any(is_part(block, script) for script in SCRIPTS)


def assert_nothing_is_left_behind(names: dict[str, Any], directory: Path) -> None:
    """No hook, no open logger, and no file but in the folders that are meant for runs."""
    models = {name: value for name, value in names.items() if isinstance(value, nn.Module)}
    assert {name: hook_count(model) for name, model in models.items() if hook_count(model)} == {}
    boards = [each for each in names.values() if isinstance(each, fmapboard.FeatureMapLogger)]
    assert [board for board in boards if not board.is_closed] == []
    assert {path.name for path in directory.iterdir()} <= {"runs", "wandb"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_the_python_blocks_of_a_page_run_and_print_what_it_says(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, block in enumerate(python_blocks(page)):
        if is_run_here(page, block):
            long, short = SHORTER.get(page.stem, ("", ""))
            assert long in block
            source = block.replace(long, short) if long else block
            exec(compile(source, f"{page.name} block {number}", "exec"), names)
            for printed, shown in zip(
                capsys.readouterr().out.splitlines(), prints(block), strict=False
            ):
                assert shown in ("", printed)
    assert_nothing_is_left_behind(names, tmp_path)
    if page.stem in LEAVES:
        assert len(list(tmp_path.glob(LEAVES[page.stem]))) == 1


def test_the_quick_start_is_install_then_a_script_then_the_command_that_shows_its_run() -> None:
    text = (DOCS / "get_started.md").read_text()
    (block,) = python_blocks(DOCS / "get_started.md")
    install, serve = text.index("pip install fmapboard\n"), text.index("fmapboard serve runs\n")
    assert install < text.index(block) < serve
