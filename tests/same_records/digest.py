"""Digests of the files of a run, without times.

Event files are read as they are stored, without TensorBoard's migration of old formats.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

TIMED_TAG = "fmapboard/logged_step_ms"
TIMED_KEY = "training_thread_ms"


def sha256(data: bytes) -> str:
    """The first 20 hex digits of the SHA-256, enough to tell values apart."""
    return hashlib.sha256(data).hexdigest()[:20]


def digest_directory(directory: Path) -> dict[str, Any]:
    """Digests of the event files and of all other files below a directory, by relative path."""
    found: dict[str, Any] = {"events": {}, "files": {}}
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if "tfevents" in path.name:
            place = path.parent.relative_to(directory).as_posix()
            run = found["events"].setdefault(place, {"series": {}, "order": {}, "sessions": []})
            _add_event_file(run, path)
        else:
            found["files"][path.relative_to(directory).as_posix()] = sha256(path.read_bytes())
    for run in found["events"].values():
        for sequences in run["order"].values():
            sequences.sort()  # two loggers may share a file, in any order
    return found


def _add_event_file(run: dict[str, Any], path: Path) -> None:
    plugins: dict[str, str] = {}
    for data in RawEventFileLoader(str(path)).Load():
        event = event_pb2.Event.FromString(data)
        if event.HasField("session_log"):
            run["sessions"].append([event.session_log.status, event.step])
        if not event.summary.value:
            continue
        run["order"].setdefault(str(event.step), []).append([v.tag for v in event.summary.value])
        for value in event.summary.value:
            plugin = value.metadata.plugin_data.plugin_name
            plugins.setdefault(value.tag, plugin)
            tags = run["series"].setdefault(plugins[value.tag], {})
            series = tags.setdefault(value.tag, {"metadata": [], "steps": {}})
            if value.HasField("metadata"):
                series["metadata"].append([event.step, *_metadata(value.metadata)])
            steps = series["steps"].setdefault(str(event.step), {})
            steps[f"value {len(steps)}"] = _value(plugins[value.tag], value)


def _metadata(metadata: Any) -> list[str]:
    """A hash of the metadata without its description, and the description."""
    description = metadata.summary_description
    metadata.ClearField("summary_description")
    return [sha256(metadata.SerializeToString(deterministic=True)), description]


def _value(plugin: str, value: Any) -> Any:
    if value.tag.endswith(TIMED_TAG):
        return "a time"
    tensor = value.tensor
    if plugin == "feature_maps":
        return _record(list(tensor.string_val))
    if plugin == "images":
        width, height, *pngs = tensor.string_val
        return {"size": f"{width.decode()}x{height.decode()}", "pngs": [sha256(p) for p in pngs]}
    if plugin == "text":
        return {"text": [text.decode() for text in tensor.string_val], "tensor": _bytes(tensor)}
    if value.HasField("simple_value"):
        return {"float": float(value.simple_value).hex()}
    if plugin == "scalars" and value.HasField("tensor"):
        return {"float": float(tensor_util.make_ndarray(tensor)).hex(), "tensor": _bytes(tensor)}
    if plugin == "histograms":
        shape = [side.size for side in tensor.tensor_shape.dim]
        buckets = np.frombuffer(tensor.tensor_content, "<f8").reshape(shape)
        return {"values": float(buckets[:, 2].sum()), "shape": shape, "tensor": _bytes(tensor)}
    return sha256(value.SerializeToString(deterministic=True))


def _bytes(tensor: Any) -> str:
    return sha256(tensor.SerializeToString(deterministic=True))


def _record(blobs: list[bytes]) -> dict[str, Any]:
    """The header without times, a hash of each array and of each further blob."""
    header = json.loads(blobs[0])
    if not isinstance(header, dict):  # findings of the checks
        return {"header": header}
    header.pop(TIMED_KEY, None)
    arrays, offset = {}, 0
    for entry in header.get("arrays", ()):  # what only the training process knows has none
        end = offset + 4 * math.prod(entry["shape"])
        arrays[entry["name"]] = sha256(blobs[1][offset:end])
        offset = end
    keys = {"keys in order": list(header), "array bytes": sum(map(len, blobs[1:2]))}
    return {**keys, "header": header, "arrays": arrays, "pngs": [sha256(b) for b in blobs[2:]]}
