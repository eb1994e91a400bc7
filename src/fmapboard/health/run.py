"""The built-in checks, the choice by ``checks=``, and running them: over a record, or live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

# ``numpy.median`` imports it. On the worker thread, a process that is forked meanwhile, such as a
# DataLoader's worker, would inherit the lock of the import, and hang where it imports it itself.
import numpy.ma  # noqa: F401

from fmapboard.errors import ConfigurationError, closest, error_text, log
from fmapboard.formats import tags
from fmapboard.formats.checks import pack_checks
from fmapboard.health.checks import layers, loop, nonfinite, outputs, weights
from fmapboard.health.finding import Finding, by_cause
from fmapboard.health.record import (
    GROUPS,
    BuiltInCheck,
    Check,
    NotRecorded,
    RecordBuilder,
    RunRecord,
    is_read,
)
from fmapboard.records import LoggedStep, TabRecord

Checks: TypeAlias = bool | Mapping[str, bool | Check] | Sequence[Check]
"""What ``checks=`` of ``watch`` takes (see `chosen`)."""
BUILT_IN: tuple[Check, ...] = (
    loop.NotInOptimizerCheck(), loop.GradientsNotClearedCheck(), loop.EvalModeCheck(),
    loop.ConstantImagesCheck(), loop.IdenticalImagesCheck(), nonfinite.NonfiniteCheck(),
    weights.UnchangedWeightsCheck(), layers.DeadCheck(), layers.VanishingCheck(),
    layers.ExplodingCheck(), weights.UpdateRatioCheck(), weights.BatchnormGapCheck(),
    layers.CopiedChannelsCheck(), loop.InputScaleCheck(), layers.UnevenUpsamplingCheck(),
    loop.SameBatchCheck(), loop.NeverCalledCheck(), loop.RateVanishedCheck(),
    layers.SaturatedCheck(), layers.DropoutHighCheck(), weights.BatchnormSmallBatchCheck(),
    outputs.DoubleSoftmaxCheck(), outputs.ProbabilitiesIntoLossCheck(), outputs.LossClimbedCheck(),
    outputs.ConstantOutputCheck(), outputs.OneLabelCheck(), outputs.SortedLabelsCheck(),
    outputs.UnusedClassesCheck(), outputs.InitialLossCheck(),
)  # fmt: skip
"""Every built-in check."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks said of one model.

    Attributes:
        record: what they read.
        findings: ordered by cause, each cause followed by its consequences (`causes.by_cause`).
        not_recorded: kind of a check -> what the run lacks for it.
        failed: kind of a check -> the error that it raised; ``"causes"`` -> that of the order by
            cause, without which the findings are in the order of the checks.
        off: kinds of the built-in checks that did not run.
    """

    record: RunRecord
    findings: tuple[Finding, ...]
    not_recorded: Mapping[str, str]
    failed: Mapping[str, str]
    off: tuple[str, ...] = ()

    @property
    def not_checked(self) -> dict[str, str]:
        """Kind of a check that says nothing of the run -> why, in words."""
        reasons = {kind: f"needs {why}" for kind, why in self.not_recorded.items()}
        for kind, error in self.failed.items():
            reasons[kind] = f"failed: {error}"
        reasons.update(switched_off(self.off))
        return reasons

    @property
    def no_loss(self) -> dict[str, str]:
        """Name of an output, behind that of its model -> why no loss was read at the newest step.

        See `formats.training_facts.NoLoss`.
        """
        if not self.record.facts:
            return {}
        newest = list(self.record.facts.values())[-1]
        found = {}
        for output, why in newest.no_loss.items():
            found[": ".join(filter(None, (self.record.name, output)))] = why
        return found


def kinds_text(kinds: Sequence[str]) -> str:
    """Kinds of checks in a sentence."""
    return "all checks" if len(kinds) == len(BUILT_IN) else ", ".join(kinds)


def switched_off(kinds: Iterable[str]) -> dict[str, str]:
    """Kind of a check that is off -> that it is, in words."""
    return dict.fromkeys(kinds, "switched off")


def run_checks(record: RunRecord, checks: Sequence[Check] | None = None) -> Report:
    """Run checks over the record of a model; an error in one of them does not stop the others.

    Args:
        record: the record.
        checks: those to run; None for the built-in ones that were not switched off while the run
            was logged.
    """
    if checks is None:
        checks = [check for check in BUILT_IN if check.kind not in record.off]
    off = off_in(checks)
    record = replace(record, off=frozenset(off))
    found: list[Finding] = []
    lacking: dict[str, str] = {}
    failed: dict[str, str] = {}
    for check in checks:
        try:
            found += [
                replace(finding, kind=finding.kind or check.kind, model=record.name)
                for finding in check(record)
            ]
        except NotRecorded as missing:
            lacking[check.kind] = str(missing)
        except Exception as error:
            failed[check.kind] = error_text(error).partition("\n")[0]
    found = _without_excused(found, checks)
    try:
        ordered = by_cause(found)
    except Exception as error:
        failed["causes"] = error_text(error).partition("\n")[0]
        ordered = tuple(found)
    return Report(record, ordered, lacking, failed, off)


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
        if isinstance(check, BuiltInCheck) and kinds.intersection(check.unless)
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
        >>> [check.kind for check in chosen({"dead": False})][7]
        'vanishing'

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
    """The built-in checks with some of them replaced or silenced, and others added."""
    by_kind: dict[str, Check] = {check.kind: check for check in BUILT_IN}
    for kind, change in changes.items():
        is_new = kind not in by_kind
        if is_new and (isinstance(change, bool) or not isinstance(kind, str)):
            near = closest(str(kind), by_kind) or "; `fmapboard docs checks` lists them"
            raise ConfigurationError(f"checks: no check {kind!r}{near}")
        if change is False:
            del by_kind[kind]
        elif change is not True:
            by_kind[kind] = _checked(change)
    return tuple(by_kind.values())


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
        blobs: the findings that were stored last; None before the first step.
        report: what the checks said last; None before the first step.
        begins: steps since which something is wrong.
        reported: which findings are in the log.
        new: findings that the last step is the first to have, to be logged when it is stored.
    """

    record: RecordBuilder
    blobs: tuple[bytes, ...] | None = None
    report: Report | None = None
    begins: frozenset[int | None] = frozenset()
    reported: frozenset[Reported] = frozenset()
    new: tuple[Finding, ...] = ()


class LiveChecks:
    """Runs checks over the steps of one logger; used by one thread at a time.

    They run at every logged step, over the record that `RecordBuilder` would collect of the run's
    files. Whenever they say something else than at the step before, a record of the tab and a text
    of TensorBoard hold all findings. The first step has a record in any case, which says what is
    off. The log has each finding once: warnings at level WARNING of the logger ``fmapboard``, notes
    at level INFO.

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
        """What ``stored`` takes, and the step with what the checks say of the run up to it.

        The step is returned as it is if they say the same as before.
        """
        before = self._state
        if not self._checks:
            return self._with_off(before, step)
        record = self._with_step(step)
        report = run_checks(record.record(), self._checks)
        for kind, error in report.failed.items():
            self._failed(kind, error)
        findings = report.findings
        blobs = pack_checks(findings)
        begins = _begins(report)
        state = replace(before, record=record, blobs=blobs, report=report, begins=begins, new=())
        if blobs == before.blobs:
            return state, step
        if not findings and before.blobs is None:
            return self._with_off(state, step)
        state = _with_new(state, findings)
        stored = pack_checks(findings, report.not_checked, self.off, report.no_loss)
        records = (*step.records, TabRecord(self._prefix + tags.CHECKS, stored))
        text = "\n".join(map(_text_line, findings)) or "Nothing is found any more."
        texts = {**step.texts, self._prefix + tags.CHECKS_TEXT: text}
        return state, replace(step, records=records, texts=texts)

    def _with_off(self, state: LiveState, step: LoggedStep) -> tuple[LiveState, LoggedStep]:
        """The first step with the record that says what is off; any other one as it is."""
        if self._state.blobs is not None:
            return state, step
        state = replace(state, blobs=pack_checks(()))
        stored = pack_checks((), off=self.off)
        records = (*step.records, TabRecord(self._prefix + tags.CHECKS, stored))
        return state, replace(step, records=records)

    def unstored(self, state: LiveState) -> LiveState:
        """The state if the step is stored without what the checks say of it."""
        return replace(state, blobs=self._state.blobs)

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
