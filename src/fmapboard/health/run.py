"""The built-in checks, the choice by ``checks=``, and running them: over a record, or live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

# ``numpy.median`` imports it. On the worker thread, a process that is forked meanwhile, such as a
# DataLoader's worker, would inherit the lock of the import, and hang where it imports it itself.
import numpy.ma  # noqa: F401

from fmapboard.errors import ConfigurationError, closest, error_text, log
from fmapboard.formats import tags
from fmapboard.formats.checks import Proof, Seen, StoredChecks, StoredFinding, pack_checks
from fmapboard.health.causes import by_cause
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.progress import seen_in
from fmapboard.health.record import (
    GROUPS,
    Check,
    NotRecorded,
    RecordBuilder,
    RunRecord,
    is_read,
)
from fmapboard.health.rule import Rule
from fmapboard.health.rules import BUILT_IN, NOTHING_TRAINED, group_of, is_named
from fmapboard.health.verdict import SWITCHED_OFF, Verdict, judge
from fmapboard.records import LoggedStep, TabRecord

Checks: TypeAlias = bool | Mapping[str, bool | Check] | Sequence[Check]
"""What ``checks=`` of ``watch`` takes (see `chosen`)."""


@dataclass(frozen=True, slots=True)
class Report:
    """The judgement on one model: what ran, what was off, what was found and what was seen.

    It is stored at each logged step (`stored`), and every outlet shows what was stored last.

    Attributes:
        name: name of the model, as in ``watch(name=...)``; "" for none.
        findings: ordered by cause, each cause followed by its consequences (`causes.by_cause`).
        seen: what was looked at, and whether the run learns.
        not_checked: kind of a check that says nothing of the run -> why, in words.
        failed: kind of a check -> the error that it raised; ``"causes"`` -> that of the order by
            cause, without which the findings are in the order of the checks.
        off: kinds of the built-in checks that did not run.
    """

    name: str
    findings: tuple[Finding, ...]
    seen: Seen
    not_checked: Mapping[str, str]
    failed: Mapping[str, str] = field(default_factory=dict)
    off: tuple[str, ...] = ()

    @property
    def stored(self) -> StoredChecks:
        """What is stored of it."""
        return StoredChecks(self.findings, self.not_checked, self.off, self.seen)

    def verdict(self, run: str) -> Verdict:
        """The verdict on the run of this name or path, if it has one model."""
        return judge(run, self.findings, self.seen, self.not_checked)


def report_of(name: str, stored: StoredChecks) -> Report | None:
    """The judgement that was stored of a model; None if none was, as by earlier writers."""
    if stored.seen is None:
        return None
    findings = []
    for finding in stored.findings:
        known = {entry.name: getattr(finding, entry.name) for entry in fields(StoredFinding)}
        findings.append(Finding(**known, model=name))
    return Report(
        name,
        by_cause(findings),
        stored.seen,
        {**(stored.not_checked or {}), **switched_off(stored.off)},
        off=stored.off,
    )


def switched_off(kinds: Iterable[str]) -> dict[str, str]:
    """Kind of a check that is off -> that it is, in words."""
    return dict.fromkeys(kinds, SWITCHED_OFF)


def run_checks(
    record: RunRecord,
    checks: Sequence[Check] | None = None,
    proofs: Mapping[str, Proof] = MappingProxyType({}),
) -> Report:
    """Run checks over the record of a model; an error in one of them does not stop the others.

    Args:
        record: the record.
        checks: those to run; None for the built-in ones that were not switched off while the run
            was logged.
        proofs: kind of a finding -> what experiments have shown.
    """
    if checks is None:
        checks = [check for check in BUILT_IN if not is_named(check, record.off)]
    off = off_in(checks)
    record = replace(record, off=frozenset(off))
    found: list[Finding] = []
    not_checked: dict[str, str] = {}
    failed: dict[str, str] = {}
    evidence = Evidence(record)
    is_of_images = record.health is not None and record.health.is_of_images
    for check in checks:
        try:
            if isinstance(check, Rule):
                found += check.findings(evidence)
            else:
                found += [replace(f, kind=f.kind or check.kind) for f in check(record)]
        except NotRecorded as missing:
            not_checked[check.kind] = NOTHING_TRAINED if is_of_images else f"needs {missing}"
        except Exception as error:
            failed[check.kind] = error_text(error).partition("\n")[0]
            not_checked[check.kind] = f"failed: {failed[check.kind]}"
    found = _without_excused(found, checks)
    found = [
        replace(finding, model=record.name, proof=proofs.get(finding.kind)) for finding in found
    ]
    try:
        ordered = by_cause(found)
    except Exception as error:
        failed["causes"] = error_text(error).partition("\n")[0]
        not_checked["causes"] = f"failed: {failed['causes']}"
        ordered = tuple(found)
    not_checked.update(switched_off(off))
    return Report(record.name, ordered, seen_in(evidence), not_checked, failed, off)


def off_in(checks: Sequence[Check]) -> tuple[str, ...]:
    """Kinds of the built-in checks that are not among these."""
    known = {check.kind for check in checks}
    return tuple(check.kind for check in BUILT_IN if check.kind not in known)


def _without_excused(found: Sequence[Finding], checks: Sequence[Check]) -> list[Finding]:
    """The findings but those of checks that yield to another one, if that found something."""
    kinds = {finding.kind for finding in found}
    excused = {
        check.kind
        for check in checks
        if isinstance(check, Rule) and kinds.intersection(check.unless)
    }
    return [finding for finding in found if finding.kind not in excused]


def record_as_live(builder: RecordBuilder) -> RunRecord:
    """The record of a run's files with the steps that the checks see while it is logged."""
    builder.thin(_begins(run_checks(builder.record())))
    return builder.record()


def _begins(report: Report) -> frozenset[int | None]:
    return frozenset(finding.since_step for finding in report.findings)


def chosen(checks: Any) -> tuple[Check, ...]:
    """The checks that ``checks=`` of ``watch`` asks for.

    Example:
        >>> [check.kind for check in chosen({"input_scale": False})][:4]
        ['constant_images', 'identical_images', 'repeated_images', 'same_batch']

    Args:
        checks: True for the built-in ones, False for none; a mapping that replaces built-in ones by
            kind, or silences them with False, or adds others; or a sequence of further checks.

    Raises:
        ConfigurationError: it is none of these, or names a kind that does not exist.
    """
    if checks is True:
        return BUILT_IN
    if checks is False:
        return ()
    if isinstance(checks, Mapping):
        return _changed(checks)
    if isinstance(checks, Iterable) and not isinstance(checks, (str, bytes)):
        return (*BUILT_IN, *(_checked(check) for check in checks))
    raise ConfigurationError(
        f'checks={checks!r:.80}: expected True, False, a mapping such as {{"dead": False}}, or a '
        "list of checks such as [MyCheck()]"
    )


def _changed(changes: Mapping[Any, Any]) -> tuple[Check, ...]:
    """The built-in checks with some of them replaced or silenced, and others added.

    The name of a group silences all of its rules. A check replaces the rule of its name or, if
    there is none, the rules of that group.
    """
    checks: list[Check] = list(BUILT_IN)
    for name, change in changes.items():
        meant = [check for check in checks if is_named(check, [name])]
        if change is not False:
            meant = [check for check in meant if check.kind == name] or meant
        is_known = bool(meant) or name in _NAMES
        if not is_known and (isinstance(change, bool) or not isinstance(name, str)):
            near = closest(str(name), _NAMES) or "; `fmapboard docs checks` lists them"
            raise ConfigurationError(f"checks: no check {name!r}{near}")
        if change is True:
            continue
        place = checks.index(meant[0]) if meant else len(checks)
        checks = [check for check in checks if check not in meant]
        if change is not False:
            checks.insert(place, _checked(change))
    return tuple(checks)


_NAMES = {name: None for check in BUILT_IN for name in (check.kind, group_of(check))}
"""Kinds and groups of the built-in checks."""


def _checked(check: Any) -> Check:
    kind = getattr(check, "kind", None)
    if isinstance(check, type) or not callable(check) or not isinstance(kind, str) or not kind:
        raise ConfigurationError(
            f"checks: {check!r:.80} is no check: expected an object such as MyCheck() with a "
            "string `kind` that is called with a RunRecord"
        )
    known: Check = check
    return known


_MOST = 3
"""Maximum number of notes of one kind that are in the log; of warnings it is one."""

Failed = Callable[[str, str], None]
"""Reports a check that failed, given its kind and the error."""


class Reported(NamedTuple):
    """What tells a finding in the log from others."""

    kind: str
    layer: str | None
    parameter: str | None


@dataclass(frozen=True, slots=True)
class LiveState:
    """What the checks know of the stored steps; nothing in it is changed in place.

    Attributes:
        record: what was collected of the steps.
        report: what the checks said last; None before the first step, and without checks.
        begins: steps since which something is wrong.
        written: the findings of the last text.
        reported: which findings are in the log.
        new: findings that the last step is the first to have, to be logged when it is stored.
        proofs: kind of a finding -> what experiments have shown.
        is_begun: without checks, the record of the first step is stored.
    """

    record: RecordBuilder
    report: Report | None = None
    begins: frozenset[int | None] = frozenset()
    written: tuple[Finding, ...] = ()
    reported: frozenset[Reported] = frozenset()
    new: tuple[Finding, ...] = ()
    is_begun: bool = False
    proofs: Mapping[str, Proof] = field(default_factory=dict)


class LiveChecks:
    """Runs checks over the steps of one logger; used by one thread at a time.

    They run at every logged step, over the record that `RecordBuilder` would collect of the run's
    files, and what they say is stored with it. Whenever they find something else than at the step
    before, a text of TensorBoard holds all findings. Without checks the first step has a record,
    which says that all are off. The log has each finding once: warnings at level WARNING of the
    logger ``fmapboard``, notes at level INFO.

    Args:
        checks: the checks; if there are none, only the record of the first step is made.
        name: name of the model, as in ``watch(name=...)``, or None.
        failed: called with each check that raises an error.
    """

    def __init__(self, checks: Sequence[Check], name: str | None, failed: Failed) -> None:
        self._checks = checks
        self._failed = failed
        self._prefix = tags.prefix(name)
        self._state = LiveState(RecordBuilder(name=name or ""))
        self.off = off_in(checks)
        """Kinds of the built-in checks that do not run."""

    @property
    def report(self) -> Report | None:
        """What they say of the stored steps; None if there are no steps or no checks."""
        return self._state.report

    def __call__(self, step: LoggedStep) -> tuple[LiveState, LoggedStep]:
        """What ``stored`` takes, and the step with what the checks say of the run up to it."""
        before = self._state
        if not self._checks:
            return self._with_off(before, step)
        record = self._with_step(step)
        proofs = before.proofs
        report = run_checks(record.record(), self._checks, proofs)
        for kind, error in report.failed.items():
            self._failed(kind, error)
        findings = report.findings
        state = LiveState(
            record, report, _begins(report), before.written, before.reported, proofs=proofs
        )
        blobs = pack_checks(report.stored)
        records = (*step.records, TabRecord(self._prefix + tags.CHECKS, blobs))
        step = replace(step, records=records)
        if findings == before.written:
            return state, step
        text = "\n".join(map(_text_line, findings)) or "Nothing is found any more."
        texts = {**step.texts, self._prefix + tags.CHECKS_TEXT: text}
        state = replace(state, written=findings)
        return _with_new(state, findings), replace(step, texts=texts)

    def _with_off(self, state: LiveState, step: LoggedStep) -> tuple[LiveState, LoggedStep]:
        """The first step with the record that says what is off; any other one as it is."""
        if state.is_begun:
            return state, step
        stored = pack_checks(StoredChecks(off=self.off))
        records = (*step.records, TabRecord(self._prefix + tags.CHECKS, stored))
        return replace(state, is_begun=True), replace(step, records=records)

    def prove(self, proofs: Mapping[str, Proof]) -> TabRecord:
        """Add what experiments have shown to what the checks say of the stored steps.

        Returns:
            What the checks say now, to be stored at the newest step.
        """
        proofs = {**self._state.proofs, **proofs}
        report = run_checks(self._state.record.record(), self._checks, proofs)
        self._state = replace(self._state, report=report, proofs=proofs)
        return TabRecord(self._prefix + tags.CHECKS_PROVEN, pack_checks(report.stored))

    def unstored(self, state: LiveState) -> LiveState:
        """The state if the step is stored without what the checks say of it."""
        return replace(state, written=self._state.written)

    def stored(self, state: LiveState, step: int) -> None:
        """Go on from a step that has been written, and log what it is the first to have."""
        self._state = state
        for finding in state.new:
            say = log.warning if finding.class_ == "warning" else log.info
            say("step %d: %s: %s", step, finding.kind, finding.text)

    def _with_step(self, step: LoggedStep) -> RecordBuilder:
        """The record with the numbers of one more step."""
        record = self._state.record.copy()
        starts = tuple(f"{self._prefix}{group}/" for group in GROUPS)
        scalars = {}
        for tag, value in step.scalars.items():
            if tag.startswith(starts):
                scalars[tag.removeprefix(self._prefix)] = value
        record.add_scalars(step.step, scalars)
        for stored in step.records:
            if is_read(stored.tag):
                record.add_blobs(step.step, stored.tag.removeprefix(self._prefix), stored.blobs)
        record.thin(self._state.begins)
        return record


def _text_line(finding: Finding) -> str:
    """A finding as an item of a Markdown list."""
    indent = "  " if finding.follows else ""
    return f"{indent}- **{finding.class_}: {finding.kind}**: {finding.text}"


def _with_new(state: LiveState, found: Sequence[Finding]) -> LiveState:
    """The state with the findings that are to be logged: few of each kind, each once."""
    reported = set(state.reported)
    new = []
    for finding in found:
        own = Reported(finding.kind, finding.layer, finding.parameter)
        alike = [other for other in reported if other.kind == finding.kind]
        most = 1 if finding.class_ == "warning" else _MOST
        if own not in reported and len(alike) < most:
            reported.add(own)
            new.append(finding)
    return replace(state, reported=frozenset(reported), new=tuple(new))
