"""Stored format of what the checks found up to a step (series ``tags.CHECKS``): one JSON blob.

It is an object with ``format`` and ``findings``, a list of objects with the keys of
`StoredFinding`. Readers ignore keys that they do not know.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, cast, get_type_hints

from fmapboard.formats.tab_records import read_json, reading, typed, write_json
from fmapboard.formats.training_facts import MAX_NAMES

Class = Literal["warning", "note"]
_MAX_FINDINGS = 256


class StoredFinding(TypedDict):
    """What is stored of a `health.finding.Finding`, which describes its fields."""

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
_KINDS = get_type_hints(StoredFinding)


def pack_checks(findings: Iterable[Mapping[str, Any]]) -> tuple[bytes, ...]:
    """The blob of a record.

    Args:
        findings: the fields of each finding, of which those of `StoredFinding` are stored.
    """
    listed = []
    for each in list(findings)[:_MAX_FINDINGS]:
        kept = {_STORED_AS.get(name, name): each[name] for name in _KINDS}
        kept |= {"parameters": each["parameters"][:MAX_NAMES], "value": _finite(each["value"])}
        listed.append(kept)
    return (write_json({"findings": listed}),)


def unpack_checks(blob: bytes | None) -> list[StoredFinding]:
    """Parse and validate the blob of a record.

    Raises:
        FormatError: the blob is missing, too large, damaged, or of a newer format.
    """
    with reading("the findings are"):
        listed = read_json(blob)["findings"]
        if not isinstance(listed, list) or len(listed) > _MAX_FINDINGS:
            raise TypeError(f"expected a list of at most {_MAX_FINDINGS} findings")
        return [_finding(raw) for raw in listed]


def _finding(raw: Mapping[str, Any]) -> StoredFinding:
    return cast(
        StoredFinding,
        {name: typed(kind, raw[_STORED_AS.get(name, name)]) for name, kind in _KINDS.items()},
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
