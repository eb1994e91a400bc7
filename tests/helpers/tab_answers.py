"""Binary answers of the tab's routes, taken apart; needs nothing of fmapboard."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np


def facts_and_parts(body: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON at the front of a binary answer, and the arrays and bytes behind it."""
    (length,) = struct.unpack_from("<I", body)
    return json.loads(body[4 : 4 + length]), body[4 + length :]


def expanded(answer: Any) -> Any:
    """The answer of ``data/layers`` with the steps of each layer; any other answer unchanged."""
    if isinstance(answer, dict) and "steps_written" in answer:
        for layer in answer["layers"]:
            layer.setdefault("steps", list(answer["steps"]))
            layer.setdefault("wall_times", list(answer["wall_times"]))
    return answer


def unpacked(listed: dict[str, dict[str, Any]], body: bytes) -> dict[str, np.ndarray]:
    """Name -> array, of little-endian float32 arrays."""
    return {name: array_of(entry, body, "<f4") for name, entry in listed.items()}


def array_of(entry: dict[str, Any], body: bytes, dtype: str = "u1") -> np.ndarray:
    """An array behind the JSON."""
    count = math.prod(entry["shape"])
    return np.frombuffer(body, dtype, count, entry["offset"]).reshape(entry["shape"])


def bytes_of(entry: dict[str, int], body: bytes) -> bytes:
    """Some bytes behind the JSON."""
    return body[entry["offset"] : entry["offset"] + entry["length"]]


def layers_at(facts: dict[str, Any], body: bytes) -> dict[str, dict[str, Any]]:
    """Key -> what an answer of ``data/health_step`` says of a layer, as the list of layers does.

    The counts are those of channels or values; a number that is not known is None.
    """
    arrays = unpacked(facts["arrays"], body)
    codes = array_of(facts["codes"], body).tolist()
    found = {}
    for row, key in enumerate(facts["keys"]):
        if key is None:
            continue
        of = {name: float(array[row]) for name, array in arrays.items()}
        step, is_known = facts["steps"][row], not math.isnan(of["counted"])
        found[key] = {"key": key, "step": step, "code": codes[row], **_entry(facts, row, of)}
        if facts["error"] and not (is_known and step == facts["step"]):
            found[key]["error"] = facts["error"]
    for one in facts["others"]:
        found[one["key"]] = {**dict.fromkeys(_COUNTS), **one, "change_since": one["since"]}
        found[one["key"]]["weights_unchanged_since"] = one["since"] if one["code"] else None
        found[one["key"]]["change_of"] = None if one["change"] is None else "weights"
    return found


_COUNTS = (
    "nan", "positive_infinity", "negative_infinity", "channels_nonfinite", "channels_constant",
    "channels_dead",
)  # fmt: skip


def _entry(facts: dict[str, Any], row: int, of: dict[str, float]) -> dict[str, Any]:
    step, channels = facts["steps"][row], facts["channels"][row]
    entry: dict[str, Any] = {name: of[name] for name in ("minimum", "maximum", "mean", "std")}
    if math.isnan(of["counted"]):
        return {**entry, **dict.fromkeys(_COUNTS)}
    shares = {name: 0 if math.isnan(of[name]) else of[name] for name in _COUNTS_OF.values()}
    entry |= {name: round(shares[share] * channels) for name, share in _COUNTS_OF.items()}
    entry |= {name: int(of[name]) for name in _COUNTS[:3] if math.isfinite(of[name])}
    entry |= {"channels": channels, "dead_known": not math.isnan(of["dead"])}
    entry |= {"counted": bool(of["counted"])}
    ages = {"maps": of["change_steps"], "weights": of["weights_steps"]}
    since = {name: step - int(age) for name, age in ages.items() if not math.isnan(age)}
    change_of = next(iter(since), None)
    changes = {"maps": of["change"], "weights": of["weights_change"], None: None}
    return entry | {
        "change_of": change_of,
        "change": "NaN" if math.isnan(changes[change_of] or 0.0) else changes[change_of],
        "change_since": since.get(change_of or ""),
        "weights_unchanged_since": facts["unchanged"].get(str(row)),
    }


_COUNTS_OF = {f"channels_{name}": name for name in ("nonfinite", "constant", "dead")}
