"""Stored format of the findings up to a step, for the tab: one JSON blob, a list of objects.

The keys are ``kind``, ``class``, ``layer``, ``parameter``, ``parameters``, ``since``, ``value``,
``message``, ``healthy``, ``meaning`` and ``advice``, as in `Finding`; ``parameters`` may be
missing. Readers ignore keys that they do not know.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, get_args

from fmapboard.checks.finding import Class, Finding
from fmapboard.formats.tab_records import FormatError
from fmapboard.formats.training_facts import MAX_NAMES

_MAX_BYTES = 2**20
"""Maximum size in bytes of a record that is read."""
_MAX_FINDINGS = 256
_TEXTS = ("kind", "message", "healthy", "meaning", "advice")
_INVALID = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


def pack_stored(findings: Sequence[Finding]) -> tuple[bytes, ...]:
    """The blob of a record."""
    listed = [
        {
            "class": each.class_,
            "layer": each.layer,
            "parameter": each.parameter,
            "parameters": each.parameters[:MAX_NAMES],
            "since": each.since_step,
            "value": _finite(each.value),
            **{name: getattr(each, name) for name in _TEXTS},
        }
        for each in findings[:_MAX_FINDINGS]
    ]
    return (json.dumps(listed, separators=(",", ":"), allow_nan=False).encode(),)


def unpack_stored(blob: bytes | None, model: str) -> list[Finding]:
    """Parse and validate the blob of a record.

    Args:
        blob: the blob.
        model: name of the model; "" for none.

    Raises:
        FormatError: the blob is missing, too large or damaged.
    """
    if blob is None or len(blob) > _MAX_BYTES:
        raise FormatError("the findings of the checks cannot be read")
    try:
        listed = json.loads(blob)
        if not isinstance(listed, list) or len(listed) > _MAX_FINDINGS:
            raise TypeError(f"expected a list of at most {_MAX_FINDINGS} findings")
        return [_finding(each, model) for each in listed]
    except _INVALID as error:
        raise FormatError(f"the findings are not in fmapboard's format: {error}") from error


def _finding(raw: dict[str, Any], model: str) -> Finding:
    if raw["class"] not in get_args(Class):
        raise ValueError(f"{raw['class']!r:.80} is no class of findings")
    since, value = raw["since"], raw["value"]
    if since is not None and (type(since) is not int or not 0 <= since < 2**53):
        raise TypeError(f"{since!r:.80} is no step")
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{value!r:.80} is no number")
    names = raw.get("parameters", ())
    if not isinstance(names, (list, tuple)) or len(names) > MAX_NAMES:
        raise TypeError(f"{names!r:.80} is no list of at most {MAX_NAMES} names")
    return Finding(
        class_=raw["class"],
        layer=None if raw["layer"] is None else _text(raw["layer"]),
        parameter=None if raw["parameter"] is None else _text(raw["parameter"]),
        parameters=tuple(map(_text, names)),
        since_step=since,
        value=_finite(value),
        model=model,
        **{name: _text(raw[name]) for name in _TEXTS},
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not a string")
    value.encode()  # raises for a lone surrogate, which cannot be sent
    return value
