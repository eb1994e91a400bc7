"""Stored format of what the checks found up to a step (series ``tags.CHECKS``): one JSON blob.

It is an object with ``format``, ``findings``, a list of objects with the keys of `StoredFinding`,
and, if there is something in them, ``not_checked`` and ``no_loss``, objects, and ``off``, a list
(see `StoredChecks`). The first logged step has a record, so that it is known from then on what is
off. Readers ignore keys that they do not know.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, Literal

from fmapboard.formats.tab_records import read_json, reading, stored, typed, write_json
from fmapboard.formats.training_facts import MAX_NAMES

Class = Literal["warning", "note"]
_MAX_FINDINGS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """What is stored of a `health.finding.Finding`, which describes its fields."""

    kind: str
    class_: Class
    message: str
    healthy: str = ""
    meaning: str = ""
    advice: str = ""
    layer: str | None = None
    parameter: str | None = None
    parameters: tuple[str, ...] = ()
    since_step: int | None = None
    value: float | None = None
    follows: str = ""


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """What the checks said of the steps up to one.

    Attributes:
        findings: what they found.
        not_checked: kind of a check that says nothing of the run -> why; None if it is not known.
        off: kinds of the built-in checks that were switched off.
        no_loss: name of an output, behind that of its model -> why its loss is not known, one of
            `training_facts.NoLoss`.
    """

    findings: tuple[StoredFinding, ...] = ()
    not_checked: Mapping[str, str] | None = None
    off: tuple[str, ...] = ()
    no_loss: Mapping[str, str] = field(default_factory=dict)


_STORED_AS = {"class_": "class", "since_step": "since"}
_NAMES = [entry.name for entry in fields(StoredFinding)]
_KEYS = {name: _STORED_AS.get(name, name) for name in _NAMES}
"""Field -> its key in the blob."""


def pack_checks(
    findings: Iterable[StoredFinding],
    not_checked: Mapping[str, str] | None = None,
    off: Collection[str] = (),
    no_loss: Mapping[str, str] | None = None,
) -> tuple[bytes, ...]:
    """The blob of a record; of each finding, the fields of `StoredFinding` are stored."""
    listed = []
    for finding in islice(findings, _MAX_FINDINGS):
        parameters = finding.parameters[:MAX_NAMES]
        value = finding.value
        if value is not None:
            value = float(value) if math.isfinite(value) else None
        kept = replace(finding, parameters=parameters, value=value)
        entry = {}
        for name, key in _KEYS.items():
            entry[key] = stored(getattr(kept, name))
        listed.append(entry)
    record: dict[str, Any] = {"findings": listed}
    if not_checked is not None:
        record["not_checked"] = stored(dict(not_checked))
    if off:
        record["off"] = list(off)
    if no_loss:
        record["no_loss"] = stored(dict(no_loss))
    return (write_json(record),)


def unpack_checks(blob: bytes | None) -> StoredChecks:
    """Parse and validate the blob of a record.

    Raises:
        FormatError: the blob is missing, too large, damaged, or of a newer format.
    """
    with reading("the findings are"):
        whole = read_json(blob)
        listed = whole["findings"]
        if not isinstance(listed, list) or len(listed) > _MAX_FINDINGS:
            raise TypeError(f"expected a list of at most {_MAX_FINDINGS} findings")
        found = []
        for raw in listed:
            entry = {"follows": "", **raw}  # missing in records of earlier writers
            by_field = {name: entry[key] for name, key in _KEYS.items()}
            found.append(typed(StoredFinding, by_field))
        known = {
            "not_checked": whole.get("not_checked"),
            "off": whole.get("off", []),
            "no_loss": whole.get("no_loss", {}),
        }
        checks: StoredChecks = typed(StoredChecks, known)
        return replace(checks, findings=tuple(found))
