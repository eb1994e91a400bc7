"""A stored sample of every past version of the format opens in the tab."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tab_client import open_tab
from two_layer_runs import store_blobs

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("record_v*"))


@pytest.mark.parametrize("sample", GOLDEN, ids=lambda path: path.name)
def test_a_stored_sample_opens(sample: Path, tmp_path: Path) -> None:
    numbers = (sample / "arrays.bin").read_bytes()
    blobs = [(sample / "header.json").read_bytes(), numbers]
    store_blobs(tmp_path / "old", blobs, tag="fmapboard/features.0", step=20)
    tab = open_tab(tmp_path)
    layer = tab.layer("old", "fmapboard/features.0")
    assert (layer["error"], layer["channels"], layer["steps"]) == (None, 3, [20])
    assert layer["roles"] == ["feature_maps", "kernels"]
    facts, body = tab.open("data/maps", run="old", key="fmapboard/features.0", step=20)
    assert facts["missing"] == ["feature_maps", "kernels"]
    assert body == numbers
    health = tab.health("old", "fmapboard/features.0", 20)
    assert health["channels"] == 3
    history, table = tab.open("data/history", run="old", key="fmapboard/features.0")
    assert history["arrays"][0] == {"name": "feature_maps.minimum", "shape": [1, 3]}
    assert struct.unpack_from("<f", table)[0] == pytest.approx(health["minimum"])
