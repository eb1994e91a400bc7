"""Stored format of what the checks found up to a step (series ``tags.CHECKS``): one JSON blob.

It is an object with ``format``, ``findings``, a list of objects with the keys of `StoredFinding`,
and, if there is something in them, ``not_checked`` and ``seen``, objects, and ``off``, a list
(see `StoredChecks`). Every logged step has a record, which is what all outlets show; without checks
the first one, so that it is known that all are off. Readers ignore keys that they do not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from fmapboard.formats.tab_records import read_json, reading, stored, typed, write_json
from fmapboard.formats.training_facts import MAX_NAMES

Class = Literal["warning", "note"]
_MAX_FINDINGS = 256
Outcome = Literal["proven", "refuted", "inconclusive", "not tried"]


@dataclass(frozen=True, slots=True)
class Proof:
    """Two trainings of copies of the network: as it is, and without the cause of a finding.

    Attributes:
        outcome: ``proven`` if the loss falls clearly further without it, ``refuted`` if it does
            not or the cause is not there, ``inconclusive`` if the cause is there and both trainings
            learn, ``not tried`` if there are no such trainings.
        cure: name of what takes the cause away, as in ``health.cures.CURES``.
        steps: number of steps of each training.
        as_it_is: mean loss of the first and the last steps; None for one that is not finite.
        cured: the same without the cause.
        why: why it was not tried, or why there are fewer steps than usual; "" for neither.
        without: kinds of further causes that both trainings do without.
    """

    outcome: Outcome
    cure: str
    steps: int = 0
    as_it_is: tuple[float | None, ...] = ()
    cured: tuple[float | None, ...] = ()
    why: str = ""
    without: tuple[str, ...] = ()


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
    docs: str = ""
    picture: str = ""
    cure: str | None = None
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class LargestUpdate:
    """The largest update ratio of a run.

    Attributes:
        parameter: its name.
        step: of the optimizer.
        value: |Δw| / |w|.
        is_estimate: it was read of a part of the parameter.
    """

    parameter: str
    step: int
    value: float
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class LostSpread:
    """Between which layers the inputs of a batch become alike (see ``records.Statistics.spread``).

    Attributes:
        last: the last layer before.
        before: the least spread up to it.
        first: the first layer behind.
        behind: the largest spread from it on.
    """

    last: str
    before: float
    first: str
    behind: float


Ends = tuple[tuple[int, float], ...]
"""The first and the last (step, value) of a number; the only one, or none."""


@dataclass(frozen=True, slots=True)
class OutputProgress:
    """How an output of the network has changed over the logged steps.

    Attributes:
        name: of the output, behind that of its model; "" for the only one.
        loss: its loss, where it is known.
        accuracy: share of right answers, 0 to 1, where it is known.
        spread: (standard deviation over the images) / (mean magnitude).
        classes: number of classes; None if its loss is not over classes.
        guess: the loss of an answer that does not depend on the input: the entropy of the labels;
            None if it is not known.
        late: its loss late in the run (`evidence.late_loss`); None if too few are known.
        learns: the loss has fallen, below that of guessing; None if it is not known.
        factor: as in ``OutputFacts``, at the newest step at which it is known.
        is_loss: it is the loss itself, which the network returns.
        may_stay: its loss need not fall, as that of a GAN's discriminator; None if it is not known.
    """

    name: str
    loss: Ends = ()
    accuracy: Ends = ()
    spread: Ends = ()
    classes: int | None = None
    guess: float | None = None
    late: float | None = None
    learns: bool | None = None
    factor: float | None = None
    is_loss: bool = False
    may_stay: bool | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checks of a run looked at, and the numbers that every verdict shows.

    Attributes:
        layers: number of layers.
        steps: number of logged steps.
        last_step: the newest one; None if none is known.
        is_of_images: each step is another image.
        usual_update: median of |Δw| / |w| over all weights and steps; None if none is known.
        is_usual_estimate: some of these weights were read in part.
        largest_update: the largest of all parameters; None if none is known.
        outputs: those of which something is known.
        rates: lowest and highest learning rate at the newest step; None if they are not known.
        optimizers: names of the classes of the optimizers at the newest step.
        weight_decays: lowest and highest weight decay there; None if they are not known.
        batch: number of images of the newest batch; None if it is not known.
        rows: size of the first axis of each output at the newest step; None if they differ.
        no_loss: name of an output, behind that of its model -> why its loss is not known, one of
            `training_facts.NoLoss`.
        lost_spread: where the inputs become alike, at the newest step; None if nowhere.
    """

    layers: int = 0
    steps: int = 0
    last_step: int | None = None
    is_of_images: bool = False
    usual_update: float | None = None
    largest_update: LargestUpdate | None = None
    outputs: tuple[OutputProgress, ...] = ()
    rates: tuple[float, float] | None = None
    batch: int | None = None
    no_loss: Mapping[str, str] = field(default_factory=dict)
    optimizers: tuple[str, ...] = ()
    weight_decays: tuple[float, float] | None = None
    is_usual_estimate: bool = False
    rows: int | None = None
    lost_spread: LostSpread | None = None


@dataclass(frozen=True, slots=True)
class StoredChecks:
    """What the checks said of the steps up to one.

    Attributes:
        findings: what they found.
        not_checked: kind of a check that says nothing of the run -> why; None if it is not known.
        off: kinds of the built-in checks that were switched off.
        seen: what they looked at; None if no check ran, and in records of earlier writers.
    """

    findings: tuple[StoredFinding, ...] = ()
    not_checked: Mapping[str, str] | None = None
    off: tuple[str, ...] = ()
    seen: Seen | None = None


_STORED_AS = {"class_": "class", "since_step": "since"}
_NAMES = [entry.name for entry in fields(StoredFinding)]
_KEYS = {name: _STORED_AS.get(name, name) for name in _NAMES}
"""Field -> its key in the blob."""
_OPTIONAL = {"cure": None, "proof": None}
"""Keys that are stored only with another value."""
_ABSENT = {"follows": "", "docs": "", "picture": "", **_OPTIONAL}
"""Keys that records of earlier writers lack."""


def pack_checks(checks: StoredChecks) -> tuple[bytes, ...]:
    """The blob of a record; of each finding, the fields of `StoredFinding` are stored."""
    listed = []
    for finding in checks.findings[:_MAX_FINDINGS]:
        parameters = finding.parameters[:MAX_NAMES]
        value = finding.value
        if value is not None:
            value = float(value) if math.isfinite(value) else None
        kept = replace(finding, parameters=parameters, value=value)
        entry = {}
        for name, key in _KEYS.items():
            field_value = getattr(kept, name)
            if name not in _OPTIONAL or field_value:
                entry[key] = stored(field_value)
        listed.append(entry)
    record: dict[str, Any] = {"findings": listed}
    if checks.not_checked is not None:
        record["not_checked"] = stored(dict(checks.not_checked))
    if checks.off:
        record["off"] = list(checks.off)
    if checks.seen is not None:
        record["seen"] = stored(checks.seen)
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
            entry = {**_ABSENT, **raw}
            by_field = {name: entry[key] for name, key in _KEYS.items()}
            found.append(typed(StoredFinding, by_field))
        others = {name: whole[name] for name in ("not_checked", "off", "seen") if name in whole}
        checks: StoredChecks = typed(StoredChecks, others)
        return replace(checks, findings=tuple(found))
