"""Stored format of what the checks found up to a step (series ``tags.CHECKS``): one JSON blob.

It is an object with ``format`` and ``findings``, a list of objects with the keys of
`StoredFinding`. Readers ignore keys that they do not know.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, get_args

from fmapboard.formats.tab_records import FORMAT, FormatError, refuse_newer
from fmapboard.formats.training_facts import MAX_NAMES

Class = Literal["warning", "note"]
_MAX_BYTES = 2**20
"""Maximum size in bytes of a record that is read."""
_MAX_FINDINGS = 256
_INVALID = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


class StoredFinding(TypedDict):
    """What is stored of a `checks.finding.Finding`, which describes its fields."""

    kind: str
    class_: Class
    message: str
    healthy: str
    meaning: str
    advice: str
    layer: str | None
    parameter: str | None
    parameters: tuple[str, ...]
    since_step: int | None
    value: float | None


_STORED_AS = {"class_": "class", "since_step": "since"}
"""Field -> its key in the blob, where the two differ."""


def pack_checks(findings: Iterable[Mapping[str, Any]]) -> tuple[bytes, ...]:
    """The blob of a record.

    Args:
        findings: the fields of each finding, of which those of `StoredFinding` are stored.
    """
    listed = []
    for each in list(findings)[:_MAX_FINDINGS]:
        kept = {_STORED_AS.get(name, name): each[name] for name in StoredFinding.__annotations__}
        kept |= {"parameters": each["parameters"][:MAX_NAMES], "value": _finite(each["value"])}
        listed.append(kept)
    whole = {"format": FORMAT, "findings": listed}
    return (json.dumps(whole, separators=(",", ":"), allow_nan=False).encode(),)


def unpack_checks(blob: bytes | None) -> list[StoredFinding]:
    """Parse and validate the blob of a record.

    Raises:
        FormatError: the blob is missing, too large, damaged, or of a newer format.
    """
    if blob is None or len(blob) > _MAX_BYTES:
        raise FormatError("the findings of the checks cannot be read")
    try:
        whole = json.loads(blob)
        refuse_newer(whole["format"])
        listed = whole["findings"]
        if not isinstance(listed, list) or len(listed) > _MAX_FINDINGS:
            raise TypeError(f"expected a list of at most {_MAX_FINDINGS} findings")
        return [_finding(each) for each in listed]
    except _INVALID as error:
        raise FormatError(f"the findings are not in fmapboard's format: {error}") from error


def _finding(raw: Mapping[str, Any]) -> StoredFinding:
    if raw["class"] not in get_args(Class):
        raise ValueError(f"{raw['class']!r:.80} is no class of findings")
    since, value, names = raw["since"], raw["value"], raw["parameters"]
    if since is not None and (type(since) is not int or not 0 <= since < 2**53):
        raise TypeError(f"{since!r:.80} is no step")
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(f"{value!r:.80} is no number")
    if not isinstance(names, list) or len(names) > MAX_NAMES:
        raise TypeError(f"{names!r:.80} is no list of at most {MAX_NAMES} names")
    return StoredFinding(
        kind=_text(raw["kind"]),
        class_=raw["class"],
        message=_text(raw["message"]),
        healthy=_text(raw["healthy"]),
        meaning=_text(raw["meaning"]),
        advice=_text(raw["advice"]),
        layer=None if raw["layer"] is None else _text(raw["layer"]),
        parameter=None if raw["parameter"] is None else _text(raw["parameter"]),
        parameters=tuple(map(_text, names)),
        since_step=since,
        value=_finite(value),
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is not a string")
    value.encode()  # raises for a lone surrogate, which cannot be sent
    return value
