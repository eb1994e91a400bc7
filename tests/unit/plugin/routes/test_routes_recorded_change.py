"""The routes answer the change that the records hold, and None where they hold none."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_records import ARRAYS, HEADER
from tab_answers import unpacked
from tab_client import open_tab
from two_layer_runs import log_steps, store_blobs

from fmapboard.formats.tab_records import pack

KEY = "fmapboard/0"
ABSENT = dict.fromkeys(["change", "change_of", "change_since", "weights_unchanged_since"])


def test_with_a_probe_the_change_is_that_of_the_maps(tmp_path: Path) -> None:
    log_steps(tmp_path / "run", lr=0.5, probe=torch.arange(4.0).reshape(1, 1, 2, 2))
    tab = open_tab(tmp_path)
    health = tab.health("run", KEY, 20)
    facts, body = tab.open("data/history", run="run", key=KEY)
    tables = unpacked(facts["arrays"], body)
    maps, weights = tables["feature_maps.change"], tables["weights.change"]
    assert np.isnan(maps[0]).all()
    assert np.isnan(weights[0]).all()
    finite = maps[2][np.isfinite(maps[2])]
    assert 0 < finite.size < 5  # one channel is NaN
    assert [health[name] for name in ABSENT] == [pytest.approx(finite.mean()), "maps", 10, None]


@pytest.mark.parametrize(
    ("since", "arrays", "expected"),
    [
        pytest.param({}, {"weights.change": np.ones(2)}, ABSENT, id="of no step"),
        pytest.param({"weights": 0}, {}, ABSENT, id="without values"),
        pytest.param({"weights": 0}, {"weights.change": np.ones(0)}, None, id="empty"),
        pytest.param({"weights": 0}, {"weights.change": np.ones(())}, None, id="a single number"),
        pytest.param(
            {"weights": 0},
            {"weights.change": np.array([math.nan, math.inf])},
            {**ABSENT, "change": "NaN", "change_of": "weights", "change_since": 0},
            id="not finite",
        ),
        pytest.param(
            {"feature_maps": 5, "weights": 0},
            {"feature_maps.change": np.array([1, math.inf]), "weights.change": np.zeros(1)},
            {
                "change": 0.0,
                "change_of": "weights",
                "change_since": 0,
                "weights_unchanged_since": 0,
            },
            id="the same",
        ),
    ],
)
def test_changes_of_any_content_are_answered(
    tmp_path: Path, since: dict[str, int], arrays: Any, expected: dict[str, Any] | None
) -> None:
    store_blobs(tmp_path / "run", pack({**HEADER, "change_since": since}, {**ARRAYS, **arrays}))
    tab = open_tab(tmp_path)
    health = tab.health("run", "fmapboard/a", 0)
    history = tab.get("data/history", run="run", key="fmapboard/a")
    if expected is None:
        assert "weights.change" in health["error"]
        assert history.status_code == 404
        return
    assert {name: health[name] for name in ABSENT} == expected
    assert history.status_code == 200


def test_changes_of_maps_that_are_not_drawn_are_ignored(tmp_path: Path) -> None:
    header = {**HEADER, "pictures": [{**HEADER["pictures"][0], "role": "inputs"}]}
    arrays = {name.replace("feature_maps", "inputs"): array for name, array in ARRAYS.items()}
    since = {"feature_maps": 0, "weights": 0}
    arrays |= {"feature_maps.change": np.ones((2, 2)), "weights.change": np.ones((3, 3))}
    store_blobs(tmp_path / "run", pack({**header, "change_since": since}, arrays))
    tab = open_tab(tmp_path)
    assert tab.health("run", "fmapboard/a", 0)["change"] is None
    assert tab.get("data/history", run="run", key="fmapboard/a").status_code == 200
