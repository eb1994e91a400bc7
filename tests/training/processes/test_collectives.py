"""Two gloo processes whose network calls a collective in ``forward``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from two_ranks import run_ranks

NAMES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "broadcast": "broadcast",
    "objects": "allgather",
    "functional": "all_reduce",
    "caught": "allreduce",
}
"""What torch calls each collective."""

WAYS = ("plain", "eager", "probe", "attribution", "calls")
PAIRS = [f"all_reduce/{way}" for way in WAYS] + [
    f"{collective}/probe" for collective in NAMES if collective != "all_reduce"
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """By pair, on each rank: whether the weights are equal, warnings, layers with pictures."""
    folder = tmp_path_factory.mktemp("collectives")
    run_ranks("collective_in_forward.py", folder, *PAIRS)
    return [json.loads((folder / f"collectives_{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.parametrize("pair", PAIRS)
def test_training_ends_with_the_weights_of_the_control(
    found: list[dict[str, Any]], pair: str
) -> None:
    assert [of_rank[pair][0] for of_rank in found] == [True, True]


SETUPS = "; fmapboard docs setups says which models have one"


@pytest.mark.parametrize("pair", PAIRS)
def test_the_pass_is_refused_and_said_once(found: list[dict[str, Any]], pair: str) -> None:
    collective, way = pair.split("/")
    _, said, layers = found[0][pair]
    reason = f"forward() calls a collective ({NAMES[collective]}), which needs all processes"
    expected = {
        "plain": [],
        "eager": [
            f"fmapboard: the model is compiled, and {reason}, so it is not run a second time: "
            'feature maps are not logged; with compiled="eager" they are, but logged steps then '
            "run uncompiled, and training is not bitwise the same"
        ],
        "probe": [f"fmapboard: the probe is not drawn: {reason}{SETUPS}"],
        "attribution": [f"fmapboard: the probe is not drawn: {reason}{SETUPS}"],
        "calls": [f"fmapboard: {name}: {reason}" for name in ("graph", "extract", "attribution")],
    }
    assert said == expected[way]
    assert layers == (2 if way in ("plain", "calls") else 0)
    assert found[1][pair][1] == []


@pytest.mark.sweep
def test_beside_inductor_too(tmp_path: Path) -> None:
    run_ranks("collective_in_forward.py", tmp_path, "all_reduce/inductor")
    for rank in range(2):
        (result,) = json.loads((tmp_path / f"collectives_{rank}.json").read_text()).values()
        assert result[0]
        assert len(result[1]) == (1 if rank == 0 else 0)
