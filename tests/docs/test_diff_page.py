"""The page about ``diff``, the help of the command and the docstring agree with the code."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import click
import torch

import fmapboard
from fmapboard import LayerDifference
from fmapboard.cli.main import diff_command
from fmapboard.model_comparison.dtypes import TOLERANCES

PAGE = (Path(__file__).parents[2] / "docs" / "diff.md").read_text()


def rows(first: str) -> dict[str, str]:
    """The first two columns of the table whose first heading is ``first``."""
    table = PAGE.split(f"| {first} |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in row.split("|")] for row in table]
    return {cell[1]: cell[2] for cell in cells}


def test_the_page_lists_every_number_of_a_layer() -> None:
    fields = {field.name for field in dataclasses.fields(LayerDifference)} - {"type"}
    assert rows("attribute").keys() == fields


def test_the_page_the_help_and_the_docstring_state_the_tolerances() -> None:
    named = {str(dtype).removeprefix("torch."): value for dtype, value in TOLERANCES.items()}
    assert {name: float(value) for name, value in rows("dtype").items()} == named
    options = [each for each in diff_command.params if isinstance(each, click.Option)]
    (help_text,) = [option.help for option in options if option.name == "tolerance"]
    for text in (help_text, fmapboard.diff.__doc__):
        found = re.findall(r"(\d+e-\d+)\s+in\s+(\w+)", text or "")
        assert {name: float(value) for value, name in found} == named
    assert torch.float32 in TOLERANCES
