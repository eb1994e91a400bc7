"""The notebook in examples/ runs from top to bottom in a kernel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from installed_commands import BIN
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "in_a_notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """First line of a code cell -> what it has put out."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
        NotebookClient(notebook, timeout=200, resources=resources).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {cell.source.splitlines()[0]: cell.outputs for cell in cells}


def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_the_wrong_training_has_a_cause_and_the_right_one_learns(
    outputs: dict[str, list[Any]],
) -> None:
    assert "cause: updates_too_large" in printed(outputs["!fmapboard why runs/wrong"])
    assert printed(outputs["!fmapboard why runs/right"]).startswith("learns: runs/right")


def test_the_tab_of_both_runs_and_the_maps_are_shown(outputs: dict[str, list[Any]]) -> None:
    (page,) = outputs['fmapboard.show("runs")']
    assert page.data["text/html"].startswith("<iframe ")
    assert "runs=('right', 'wrong')" in page.data["text/plain"]
    maps = outputs["images = photographs.training_batch(1, torch.Generator().manual_seed(4))[0]"]
    assert "image/png" in maps[-1].data
