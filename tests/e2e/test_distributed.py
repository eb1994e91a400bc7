"""Two gloo processes that train one network: rank 0 writes the norms of the averaged gradient."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from local_servers import free_port
from run_reader import read, tags_of
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

from fmapboard.tab_format import unpack

SCRIPT = Path(__file__).with_name("distributed_training.py")


def train(kind: str, folder: Path, watched: bool) -> list[dict[str, Any]]:
    """Train in two processes; what each of them recorded."""
    folder.mkdir()
    port = str(free_port())
    started = [
        subprocess.Popen(
            [sys.executable, SCRIPT, kind, str(rank), port, folder, str(int(watched))],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=120)  # a deadlock ends here
            assert process.returncode == 0, errors
    finally:
        for process in started:
            process.kill()
            process.communicate()
    return [json.loads((folder / f"seen{rank}.json").read_text()) for rank in range(2)]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_ranks_train_as_if_unwatched_and_rank_0_writes_the_true_norms(
    tmp_path: Path, kind: str
) -> None:
    if kind == "fsdp" and torch.__version__ < "2.7":
        pytest.skip("fully_shard of torch 2.6 cannot run on a CPU at all")
    bare = train(kind, tmp_path / "bare", watched=False)
    seen = train(kind, tmp_path / "seen", watched=True)
    assert [rank["state"] for rank in seen] == [rank["state"] for rank in bare]
    assert seen[0]["state"] == seen[1]["state"]
    assert not (tmp_path / "seen" / "run1").exists()
    accumulator = read(tmp_path / "seen" / "run0")
    logged = accumulator.Tensors("gradient_norm/total")
    assert [event.step for event in logged] == [0, 2, 4]
    for event in logged:
        norm = float(tensor_util.make_ndarray(event.tensor_proto))
        assert norm == pytest.approx(seen[0]["norms"][event.step], rel=1e-5)
    if kind == "ddp":
        assert_statistics_are_of_both_batches(accumulator, seen)
    tags = tags_of(accumulator)
    for tag in (
        "feature_maps_8x3x3x3/stem",
        "feature_maps_9x8x3x3/deep",
        "gradients_of_maps_9x8x3x3/deep",
        "kernels_9x8x3x3/deep",
        "gradient_norm/deep.weight",
        "dead_channels/relu.call2",
    ):
        assert tag in tags


def assert_statistics_are_of_both_batches(
    accumulator: EventAccumulator, seen: list[dict[str, Any]]
) -> None:
    for event in accumulator.Tensors("fmapboard/stem"):
        _, arrays = unpack(event.tensor_proto.string_val)
        both = np.concatenate([rank["stem"][event.step] for rank in seen], axis=1)  # [C, N*S]
        for name, expected in (
            ("minimum", both.min(1)), ("maximum", both.max(1)),
            ("mean", both.mean(1)), ("std", both.std(1)),
        ):  # fmt: skip
            assert arrays[f"feature_maps.{name}"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
