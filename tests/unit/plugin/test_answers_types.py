"""The front end's types of the routes' answers are those of the dataclasses and of the bytes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from answer_types import FILE, generated
from attributed_training import residual_network, train
from tab_client import Tab, open_tab
from torch import nn

import fmapboard

STORED = {"RecordHeader", "MapsPicture", "KernelsPicture", "PatchesHeader", "PatchesPicture"}
"""Parts of stored records, of which the front end declares only the keys that it reads."""


def declared() -> dict[str, tuple[set[str], set[str]]]:
    """By name of each object type: its required and its optional keys."""
    types = {}
    for name, body in re.findall(r"interface (\w+) \{(.*?)\n\}", FILE.read_text(), re.DOTALL):
        keys = re.findall(r"^  (\w+)(\??): ", body, re.MULTILINE)
        required = {key for key, optional in keys if not optional}
        types[name] = required, {key for key, _ in keys} - required
    return types


def test_the_types_are_those_of_the_dataclasses() -> None:
    assert FILE.read_text("utf-8") == generated(), "run python tests/helpers/answer_types.py"


class UsesAKernelOnly(nn.Module):
    """A layer, and another one that is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 2, 3), nn.Conv2d(3, 2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) + nn.functional.conv2d(x, self.b.weight)


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
    explained = tmp_path_factory.mktemp("explained")
    fmapboard.visualize(
        residual_network(), torch.rand(1, 3, 16, 16), log_dir=explained / "run", attribution=True
    )
    scores = open_tab(explained).ask("data/attribution", run="run")["series"][0]["scores"]
    patched = tmp_path_factory.mktemp("patched")
    fmapboard.patches(nn.Conv2d(3, 2, 3), torch.rand(1, 3, 8, 8), log_dir=patched / "run")
    searched = open_tab(patched)
    patches = searched.ask("data/patches", run="run")
    found, _ = searched.open("data/layer_patches", run="run", key="fmapboard/Conv2d", step=0)
    step, _ = tab.open("data/health_step", run=run, step=10)
    uncalled, model = tmp_path_factory.mktemp("uncalled"), UsesAKernelOnly()
    with fmapboard.watch(model, uncalled / "run", every=1) as board, board.step(0):
        model(torch.rand(1, 3, 8, 8)).sum().backward()
    with_kernels, _ = open_tab(uncalled).open("data/health_step", run="run", step=0)
    history, _ = tab.open("data/history", run=run, key=key)
    numbers, findings = tab.ask("data/numbers", run=run, key=key), tab.ask("data/findings", run=run)
    verdicts = tab.ask("data/verdicts", run=run)
    compared = tmp_path_factory.mktemp("compared")
    fmapboard.diff(model, UsesAKernelOnly(), torch.rand(1, 3, 8, 8), log_dir=compared)
    two_models = open_tab(compared).ask("data/findings", run="difference")["difference"]
    sheet, _ = tab.open("data/sheet", run=run, key=key, step=0, cell=16)
    sheet_input, _ = tab.open("data/sheet_input", run=run, step=0, cell=16)
    tokens, _ = tab.open("data/tokens", run=run, key=key)
    return {
        "TokensAnswer": [tokens],
        "PatchesAnswer": [patches], "PatchesSeries": patches["series"],
        "LayerPatchesAnswer": [found], "PatchesHeader": [found["header"]],
        "PatchesPicture": [found["header"]["picture"]],
        "AttributionAnswer": [attribution], "AttributionSeries": attribution["series"],
        "Score": scores,
        "RunsAnswer": [runs], "RunEntry": runs["runs"],
        "LayersAnswer": [layers], "Layer": layers["layers"], "InputSeries": layers["inputs"],
        "DifferenceAnswer": [difference], "LayerDifference": difference["layers"],
        "HealthAnswer": [health], "HealthRow": health["layers"],
        "StateWords": health["states"], "FirstFault": [health["first_nonfinite"]],
        "Shading": [health["shading"]],
        "HealthStepAnswer": [step], "WeightsOnly": with_kernels["others"],
        "FindingsAnswer": [findings], "Line": findings["findings"], "Verdict": [findings["line"]],
        "Remark": findings["line"]["rest"],
        "ModelDifference": [two_models], "DifferenceTable": [two_models["table"]],
        "DifferenceRow": two_models["table"]["rows"],
        "VerdictsAnswer": [verdicts], "RunLine": verdicts["verdicts"],
        "HistoryAnswer": [history], "DrawnKernels": history["kernels"],
        "NumbersAnswer": [numbers], "ScalarChart": [*numbers["scalars"].values()],
        "HistogramChart": [*numbers["histograms"].values()],
        "SheetAnswer": [sheet], "SheetRow": sheet["rows"], "SheetInputAnswer": [sheet_input],
        "MapsAnswer": [facts], "RecordHeader": [facts["header"]],
        "SamplePicture": facts["pictures"],
        "MapsPicture": [picture for picture in pictures if picture["role"] != "kernels"],
        "KernelsPicture": [picture for picture in pictures if picture["role"] == "kernels"],
    }  # fmt: skip


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
