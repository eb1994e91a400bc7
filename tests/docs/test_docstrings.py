"""The examples in docstrings run as shown, and watch() documents every argument."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import pytest
import torch

import fmapboard
from fmapboard.options import COMMON

PACKAGE = Path(__file__).parents[2] / "src" / "fmapboard"
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text() and path.name != "__init__.py"
]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_have_the_results_they_show(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(module), extraglobs={"torch": torch})
    assert result.attempted > 0
    assert result.failed == 0


def test_watch_documents_every_argument_in_the_order_of_its_signature_common_ones_first() -> None:
    text = inspect.getdoc(fmapboard.watch) or ""

    def documented(heading: str) -> list[str]:
        section = text.split(f"\n{heading}:\n")[1].split("\n\n")[0]
        return [line.split(":")[0].strip() for line in section.splitlines() if line[4:5].strip()]

    common, others = documented("Args"), documented("Other Parameters")
    assert tuple(common) == COMMON
    assert common + others == list(inspect.signature(fmapboard.watch).parameters)
