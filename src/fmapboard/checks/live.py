"""Run the checks in the worker thread, while the run is logged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fmapboard.checks.built_in import Report, run_checks
from fmapboard.checks.finding import Finding
from fmapboard.checks.record_builder import GROUPS, RecordBuilder, is_read
from fmapboard.checks.run_record import Check
from fmapboard.checks.stored_findings import pack_stored
from fmapboard.errors import log
from fmapboard.formats import tags
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


class LiveChecks:
    """Runs checks over the steps of one logger; used by one thread at a time.

    Each finding is reported once: warnings at level WARNING of the logger ``fmapboard``, notes
    at level INFO, both as text in TensorBoard. A record of the tab holds all findings of
    the newest step at which the checks ran, and replaces the one before.

    Args:
        checks: the checks.
        name: name of the model, as in ``watch(name=...)``, or None.
        failed: called with each check that raises an error.
        is_logged: True for a kind of which the log has a warning already.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        name: str | None,
        failed: Failed,
        is_logged: Callable[[str], bool],
    ) -> None:
        self._checks, self._failed, self._is_logged = checks, failed, is_logged
        self._name, self._prefix = name or "", tags.prefix(name)
        self._builder = RecordBuilder(name=self._name)
        self._count = 0
        self._reported: dict[str, set[tuple[str | None, str | None]]] = {}
        self._stores = False
        self._before: tuple[int, bool] = 0, False
        self._new: list[Finding] = []
        self._step: int | None = None
        self._told_nonfinite = False

    def __call__(self, step: LoggedStep) -> LoggedStep:
        """The step with what the checks say of the run up to it; as it is if that is nothing."""
        self._before = self._count, self._stores
        self._new, self._step = [], step.step
        if not self._checks:
            return step
        self._add(step)
        self._count += 1
        self._told_nonfinite = self._prefix + tags.FIRST_NONFINITE in step.texts
        if self._count > _OFTEN and self._count % _EVERY and not self._told_nonfinite:
            return step
        report = run_checks(self._builder.record(), self._checks)
        for kind, error in report.failed.items():
            self._failed(kind, error)
        return self._with(step, report)

    def stored(self) -> None:
        """Log what is new in the last step; call it when the step has been written."""
        for finding in self._new:
            if self._is_logged(finding.kind) or (
                finding.kind == _NONFINITE and self._told_nonfinite
            ):
                continue
            say = log.warning if finding.class_ == "warning" else log.info
            say("step %d: %s: %s", self._step, finding.kind, finding.text)
        self._new, self._step = [], None

    def undo(self) -> None:
        """Discard the last step, which could not be stored; nothing if no step is pending."""
        if self._step is None:
            return
        self._builder.drop(self._step)
        self._count, self._stores = self._before
        for finding in self._new:
            self._reported[finding.kind].discard(_place(finding))
        self._new, self._step = [], None

    def _add(self, step: LoggedStep) -> None:
        size = len(self._prefix)
        starts = tuple(f"{self._prefix}{group}/" for group in GROUPS)
        scalars = {
            tag[size:]: value for tag, value in step.scalars.items() if tag.startswith(starts)
        }
        self._builder.add_scalars(step.step, scalars)
        for record in step.records:
            if is_read(record.tag):
                self._builder.add_blobs(step.step, record.tag[size:], record.blobs)
        for tag, text in step.texts.items():
            if is_read(tag):
                self._builder.add_text(step.step, text)
        self._builder.thin(_FIRST, _LAST)

    def _with(self, step: LoggedStep, report: Report) -> LoggedStep:
        found = report.findings
        self._new = [one for one in found if self._is_new(one)]
        if not found and not self._stores:
            return step
        self._stores = True
        record = TabRecord(self._prefix + tags.CHECKS, pack_stored(found))
        texts = dict(step.texts)
        if self._new:
            lines = [f"- **{each.class_}: {each.kind}**: {each.text}" for each in self._new]
            texts[self._prefix + tags.CHECKS_TEXT] = "\n".join(lines)
        return replace(step, records=(*step.records, record), texts=texts)

    def _is_new(self, finding: Finding) -> bool:
        """True if the finding is to be reported; remembers it."""
        known = self._reported.setdefault(finding.kind, set())
        most = 1 if finding.class_ == "warning" else _MOST
        if _place(finding) in known or len(known) >= most:
            return False
        known.add(_place(finding))
        return True


def _place(finding: Finding) -> tuple[str | None, str | None]:
    return finding.layer, finding.parameter
