"""Binary answers of the tab's routes, taken apart; needs nothing of fmapboard."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np


def facts_and_parts(body: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON at the front of a binary answer, and the bytes after it."""
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body[4 + length :]


def expanded(answer: Any) -> Any:
    """The answer of ``data/layers`` with the steps of each layer; any other answer unchanged."""
    if isinstance(answer, dict) and "steps_written" in answer:
        for layer in answer["layers"]:
            layer.setdefault("steps", list(answer["steps"]))
            layer.setdefault("wall_times", list(answer["wall_times"]))
    return answer


def unpacked(listed: list[dict[str, Any]], blob: bytes) -> dict[str, np.ndarray]:
    """Name -> array, of little-endian float32 arrays that lie one after the other."""
    found, at = {}, 0
    for entry in listed:
        count = math.prod(entry["shape"])
        found[entry["name"]] = np.frombuffer(blob, "<f4", count, at).reshape(entry["shape"])
        at += 4 * count
    return found
