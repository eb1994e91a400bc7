"""The types in static/data/answers.js and patches_answers.js have the keys that the routes send."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from attributed_training import residual_network, train
from tab_client import Tab, open_tab
from torch import nn

import fmapboard

DATA = Path(__file__).parents[3] / "src/fmapboard/plugin/static/data"
ANSWERS = [DATA / "answers.js", DATA / "patches_answers.js"]


def declared() -> dict[str, tuple[set[str], set[str]]]:
    """By name of each object type: its required and its optional keys."""
    types = {}
    text = "".join(file.read_text() for file in ANSWERS)
    for comment in re.findall(r"/\*\*.*?\*/", text, re.DOTALL):
        name = re.search(r"@typedef \{object\} (\w+)", comment)
        if name:
            keys = re.findall(r"@property \{.*\} (\[?)(\w+)", comment)
            required = {key for optional, key in keys if not optional}
            types[name[1]] = required, {key for _, key in keys} - required
    return types


@pytest.fixture(scope="module")
def answers(tab: Tab, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Answers, and the objects in them, by the name of their type."""
    run, key = "run2", "fmapboard/0"
    runs, layers = tab.ask("data/runs"), tab.ask("data/layers", run=run)
    health, _ = tab.open("data/health", run=run)
    sides = {"run": run, "step": 0, "other_run": run, "other_step": 10}
    difference = tab.ask("data/difference", key=key, other_key=key, **sides)
    facts, _ = tab.open("data/maps", run=run, key=key, step=0)
    pictures = facts["header"]["pictures"]
    attributed = tmp_path_factory.mktemp("attributed")
    train(residual_network(), log_dir=attributed / "run", writer=None)
    attribution = open_tab(attributed).ask("data/attribution", run="run")
    patched = tmp_path_factory.mktemp("patched")
    fmapboard.patches(nn.Conv2d(3, 2, 3), torch.rand(1, 3, 8, 8), log_dir=patched / "run")
    searched = open_tab(patched)
    patches = searched.ask("data/patches", run="run")
    found, _ = searched.open("data/layer_patches", run="run", key="fmapboard/Conv2d", step=0)
    return {
        "PatchesAnswer": [patches], "PatchesSeries": patches["series"],
        "LayerPatchesFacts": [found], "PatchesHeader": [found["header"]],
        "PatchesPicture": [found["header"]["picture"]],
        "AttributionAnswer": [attribution], "AttributionSeries": attribution["series"],
        "RunsAnswer": [runs], "RunEntry": runs["runs"],
        "LayersAnswer": [layers], "Layer": layers["layers"], "InputSeries": layers["inputs"],
        "DifferenceAnswer": [difference], "LayerDifference": difference["layers"],
        "FirstNonfinite": [health["first_nonfinite"]],
        "NumbersAnswer": [tab.ask("data/numbers", run=run, key=key)],
        "MapsFacts": [facts], "RecordHeader": [facts["header"]],
        "SamplePicture": facts["pictures"],
        "MapsPicture": [picture for picture in pictures if picture["role"] != "kernels"],
        "KernelsPicture": [picture for picture in pictures if picture["role"] == "kernels"],
    }  # fmt: skip


STORED = {"RecordHeader", "MapsPicture", "KernelsPicture", "PatchesHeader", "PatchesPicture"}
"""Parts of stored records, of which the front end declares only the keys that it reads."""


@pytest.mark.parametrize("name", sorted(declared()))
def test_a_declared_type_has_the_keys_of_its_answer(
    name: str, answers: dict[str, list[dict[str, Any]]]
) -> None:
    required, optional = declared()[name]
    assert answers[name]
    for answer in answers[name]:
        assert required <= set(answer)
        if name not in STORED:
            assert set(answer) <= required | optional
