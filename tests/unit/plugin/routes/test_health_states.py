"""The overview, its findings and the marks of the steps agree on the state of each layer."""

from __future__ import annotations

from pathlib import Path

from tab_answers import unpacked
from tab_client import open_tab

from fmapboard.formats.overview import LayerFacts
from fmapboard.health.states import is_activation, states


def test_the_cell_at_the_step_that_a_finding_names_has_its_state_and_the_one_before_has_not(
    faulty_runs: Path,
) -> None:
    tab = open_tab(faulty_runs)
    facts, body = tab.open("data/health", run="faulty")
    arrays = unpacked(facts["arrays"], body)
    layers = [
        LayerFacts(row["label"], row["layer"], "", None, 1, 0, 0, 0, activation=row["activation"])
        for row in facts["layers"]
    ]
    found = states(arrays, is_activation(layers, arrays["dead"]))
    flags = {kind: codes > 0 for kind, codes in found.items()}
    rows = {row["label"]: index for index, row in enumerate(facts["layers"])}
    listed = tab.ask("data/findings", run="faulty")["findings"]
    listed = [one for one in listed if one["kind"] in flags]
    assert listed
    for one in listed:
        at, row = facts["steps"].index(one["since"]), rows[one["label"]]
        assert flags[one["kind"]][at, row]
        assert at == 0 or not flags[one["kind"]][at - 1, row]
        assert f"step {one['since']}" in one["message"]
