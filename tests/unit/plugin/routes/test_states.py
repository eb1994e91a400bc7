"""The overview, its findings and the marks of the steps agree on the state of each layer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tab_answers import unpacked
from tab_client import open_tab

import fmapboard
from fmapboard.formats.overview import LayerFacts
from fmapboard.health.states import is_activation, states


@pytest.mark.parametrize("name", ["faulty", "frozen"])
def test_the_cell_at_the_step_that_a_finding_names_has_its_state_and_the_one_before_has_not(
    name: str, faulty_runs: Path, tmp_path: Path
) -> None:
    root = faulty_runs
    if name == "frozen":
        root = tmp_path
        log_still(tmp_path / name, frozen_from=3, steps=8)
    tab = open_tab(root)
    facts, body = tab.open("data/health", run=name)
    arrays = unpacked(facts["arrays"], body)
    layers = [
        LayerFacts(row["label"], row["layer"], "", None, 1, 0, 0, 0, activation=row["activation"])
        for row in facts["layers"]
    ]
    found = states(arrays, is_activation(layers, arrays["dead"]))
    flags = {kind: codes > 0 for kind, codes in found.items()}
    rows = {row["label"]: index for index, row in enumerate(facts["layers"])}
    found = [one for one in tab.ask("data/findings", run=name)["findings"] if one["kind"] in flags]
    assert found
    for one in found:
        at, row = facts["steps"].index(one["since"]), rows[one["label"]]
        assert flags[one["kind"]][at, row]
        assert at == 0 or not flags[one["kind"]][at - 1, row]
        assert f"step {one['since']}" in one["message"]
    if name == "frozen":
        (line,) = found
        assert line["since"] == 4  # the weights seen there are those of step 3


def log_still(run: Path, frozen_from: int = 0, steps: int = 4) -> None:
    """Steps of an optimizer whose learning rate is 0 from a step on: no weight changes."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, run, every=1, optimizer=optimizer) as board:
        for step in range(steps):
            if step >= frozen_from:
                optimizer.param_groups[0]["lr"] = 0.0
            with board.step(step):
                optimizer.zero_grad()
                model(torch.rand(2, 3, 12, 12)).square().mean().backward()
                optimizer.step()
