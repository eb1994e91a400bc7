"""Run the checks in the worker thread, while the run is logged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from fmapboard.checks.built_in import run_checks
from fmapboard.checks.finding import Finding
from fmapboard.checks.run_record import GROUPS, Check, RecordBuilder, is_read
from fmapboard.errors import log
from fmapboard.formats import tags
from fmapboard.formats.checks import pack_checks
from fmapboard.records import LoggedStep, TabRecord

_FIRST, _LAST = 4, 12
"""Logged steps whose numbers are kept: those at the start, and the newest."""
_OFTEN, _EVERY = 8, 4
"""The checks run at each of the first logged steps, and then at every fourth one."""
_NONFINITE = "nonfinite"
"""Kind of which the log has a warning at the step with the first non-finite value."""
_MOST = 3
"""Maximum number of notes of one kind that are reported; of warnings it is one."""

Failed = Callable[[str, str], None]
"""Reports a check that failed, given its kind and the error."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """What the checks know of the stored steps; nothing in it is changed in place.

    Attributes:
        record: what was collected of the steps.
        count: number of steps.
        reported: kind, layer and parameter of the findings that were reported.
        stores: the run has a record of findings.
        new: findings that the last step is the first to have, to be logged when it is stored.
    """

    record: RecordBuilder
    count: int = 0
    reported: frozenset[tuple[str, str | None, str | None]] = frozenset()
    stores: bool = False
    new: tuple[Finding, ...] = ()


class LiveChecks:
    """Runs checks over the steps of one logger; used by one thread at a time.

    Each finding is reported once: warnings at level WARNING of the logger ``fmapboard``, notes
    at level INFO, both as text in TensorBoard. A record of the tab holds all findings of
    the newest step at which the checks ran, and replaces the one before.

    Args:
        checks: the checks.
        name: name of the model, as in ``watch(name=...)``, or None.
        failed: called with each check that raises an error.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        name: str | None,
        failed: Failed,
    ) -> None:
        self._checks, self._failed = checks, failed
        self._prefix = tags.prefix(name)
        self._state = LiveState(RecordBuilder(name=name or ""))

    def __call__(self, step: LoggedStep) -> tuple[LiveState, LoggedStep]:
        """What ``stored`` takes, and the step with what the checks say of the run up to it.

        The step is returned as it is if that is nothing.
        """
        before = self._state
        if not self._checks:
            return before, step
        count = before.count + 1
        state = replace(before, record=self._with_step(step), count=count, new=())
        is_first = self._prefix + tags.FIRST_NONFINITE in step.texts
        if count > _OFTEN and count % _EVERY and not is_first:
            return state, step
        report = run_checks(state.record.record(), self._checks)
        for kind, error in report.failed.items():
            self._failed(kind, error)
        if not report.findings and not state.stores:
            return state, step
        state = replace(_with_findings(state, report.findings), stores=True)
        records = (
            *step.records,
            TabRecord(self._prefix + tags.CHECKS, pack_checks(map(asdict, report.findings))),
        )
        texts = dict(step.texts)
        if state.new:
            lines = [f"- **{each.class_}: {each.kind}**: {each.text}" for each in state.new]
            texts[self._prefix + tags.CHECKS_TEXT] = "\n".join(lines)
        if is_first:  # the log has it
            state = replace(state, new=tuple(one for one in state.new if one.kind != _NONFINITE))
        return state, replace(step, records=records, texts=texts)

    def stored(self, state: LiveState, step: int) -> None:
        """Go on from a step that has been written, and log what it is the first to have."""
        self._state = state
        for finding in state.new:
            say = log.warning if finding.class_ == "warning" else log.info
            say("step %d: %s: %s", step, finding.kind, finding.text)

    def _with_step(self, step: LoggedStep) -> RecordBuilder:
        """The record with the numbers of one more step."""
        record = self._state.record.copy()
        size = len(self._prefix)
        starts = tuple(f"{self._prefix}{group}/" for group in GROUPS)
        scalars = {
            tag[size:]: value for tag, value in step.scalars.items() if tag.startswith(starts)
        }
        record.add_scalars(step.step, scalars)
        for each in step.records:
            if is_read(each.tag):
                record.add_blobs(step.step, each.tag[size:], each.blobs)
        record.thin(_FIRST, _LAST)
        return record


def _with_findings(state: LiveState, found: Sequence[Finding]) -> LiveState:
    """The state with the findings that are to be reported: few of each kind, each once."""
    reported, new = set(state.reported), []
    for finding in found:
        place = finding.kind, finding.layer, finding.parameter
        most = 1 if finding.class_ == "warning" else _MOST
        if place not in reported and sum(kind == finding.kind for kind, *_ in reported) < most:
            reported.add(place)
            new.append(finding)
    return replace(state, reported=frozenset(reported), new=tuple(new))
