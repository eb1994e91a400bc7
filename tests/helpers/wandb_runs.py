"""W&B runs without a network, and a reader of the rows that they store."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wandb
from wandb.proto import wandb_internal_pb2

_BLOCK, _HEADER, _ENDS = 2**15, 7, (1, 4)
"""Size of a block in bytes, size of the header of the file and of a chunk, types of last chunks."""


def offline_run(place: Path, **settings: Any) -> Any:
    """An offline run that stores its files below the directory and prints nothing."""
    place.mkdir(parents=True, exist_ok=True)
    quiet = wandb.Settings(console="off", silent=True, **settings)
    return wandb.init(project="x", mode="offline", dir=str(place), settings=quiet)


def rows(place: Path) -> list[dict[str, Any]]:
    """The rows of the finished run below the directory: key -> value, nested keys joined by '.'."""
    records = [r.history for r in _records(place) if r.WhichOneof("record_type") == "history"]
    return [
        {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in row.item}
        for row in records
    ]


def x_axes(place: Path) -> dict[str, str]:
    """Metric or glob -> the metric that it is charted over, as the run stores it."""
    metrics = [r.metric for r in _records(place) if r.WhichOneof("record_type") == "metric"]
    return {m.name or m.glob_name: m.step_metric for m in metrics}


def hidden_metrics(place: Path) -> set[str]:
    """The metrics that have no chart of their own."""
    metrics = [r.metric for r in _records(place) if r.WhichOneof("record_type") == "metric"]
    return {metric.name for metric in metrics if metric.options.hidden}


def _records(place: Path) -> Iterator[Any]:
    """The messages of a .wandb file, whose chunks are those of LevelDB's log format."""
    wandb.teardown()  # the file is complete only then
    (path,) = place.glob("wandb/offline-run-*/*.wandb")
    data, at, parts = path.read_bytes(), _HEADER, list[bytes]()
    while at + _HEADER <= len(data):
        if _BLOCK - at % _BLOCK < _HEADER:  # a block ends in zeros
            at += _BLOCK - at % _BLOCK
        length, kind = struct.unpack_from("<HB", data, at + 4)
        parts.append(data[at + _HEADER : at + _HEADER + length])
        at += _HEADER + length
        if kind in _ENDS:
            yield wandb_internal_pb2.Record.FromString(b"".join(parts))
            parts = []
