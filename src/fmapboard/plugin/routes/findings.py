"""What is wrong in a run, and whether it learns: the judgement that was stored last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fmapboard.formats import tags
from fmapboard.formats.checks import StoredChecks
from fmapboard.formats.model_difference import DifferenceTable, unpack_difference
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError
from fmapboard.health.causes import Cause
from fmapboard.health.finding import Finding
from fmapboard.health.progress import merged
from fmapboard.health.run import Report, report_of, run_checks
from fmapboard.health.table import HealthTable
from fmapboard.health.verdict import LOOK, Remark, State, judge
from fmapboard.health.verdict import Verdict as Judged
from fmapboard.plugin.answers import Answer
from fmapboard.plugin.overview_series import (
    ModelOverview,
    RunOverview,
    run_overview,
    stored_checks,
    unread_step,
)
from fmapboard.plugin.stored_record import attempted
from fmapboard.plugin.unjudged import record_of
from fmapboard.runs.provider import Provider

RunState = Literal[State, "no training"]
"""Of a run of `visualize`, in which nothing was found, it is no question whether it learns."""
_CERTAIN, _SUSPECTED = 2, 1
"""Severity of what belongs to a fault, and to a suspicion."""
_BYTES = 3000
"""In memory of what is kept of a run, roughly."""


@dataclass(frozen=True, slots=True)
class Line:
    """A finding of a check.

    Attributes:
        class_: ``warning`` or ``note``.
        kind: of the check.
        severity: 2 for what belongs to a fault, 1 for what belongs to a suspicion.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        label: the layer; "" if it is not about a layer.
        index: that of the layer's row in the table; None if it has none.
        key: of the layer; None if it has no pictures, or if it is not about a layer.
        shown_at: key of the layer whose pictures show it.
        since: first logged step with it.
        value: the number that it is about; NaN for none.
        message: the finding in one sentence.
        explanation: what it may mean, and what to do, without what it may follow from.
        follows: kind of the finding above from which it may follow; "" for none.
    """

    class_: Literal["warning", "note"]
    kind: str
    severity: int
    name: str
    label: str
    index: int | None
    key: str | None
    shown_at: str | None
    since: int
    value: float
    message: str
    explanation: str
    follows: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run is, in one line, and why.

    Attributes:
        state: ``fault``, ``suspicion``, ``does not learn``, ``not known``, ``learns`` or
            ``no training``.
        text: the cause, and what an experiment has shown of it or, if there is none, whether it
            learns; names are between backticks.
        progress: what the loss and the accuracy do, where ``text`` names a cause instead; "" if
            nothing is known of them.
        rest: the other lines of ``fmapboard why`` without names of checks and functions, but for
            that to look at the tab.
        name: name of the model; "" for none.
        label: the layer call; "" if it is not about a layer.
        key: of the layer; None if it has no pictures.
        shown_at: key of the layer whose pictures show it.
        since: step since which it lasts; None if nothing was found.
    """

    state: RunState
    text: str
    progress: str
    rest: list[Remark]
    name: str = ""
    label: str = ""
    key: str | None = None
    shown_at: str | None = None
    since: int | None = None


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """What ``fmapboard diff`` printed.

    Attributes:
        text: which layer differs first and by how much, and how many do; names are between
            backticks.
        table: all layers.
    """

    text: str
    table: DifferenceTable


@dataclass(frozen=True, slots=True)
class Findings(Answer):
    """``data/findings``: the findings of a run, ranked, and what they were looked for in.

    Attributes:
        run: name of the run.
        layers: number of layers.
        steps: number of kept steps.
        written: number of logged steps.
        unread: the newest logged step if TensorBoard has not read it yet, otherwise None.
        findings: those of the checks, in the words of ``fmapboard check``.
        line: the cause of them, or that there is none.
        difference: of the run of differences that ``fmapboard diff`` writes; None of others.
    """

    run: str
    layers: int
    steps: int
    written: int
    unread: int | None
    findings: list[Line]
    line: Verdict
    difference: ModelDifference | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """How a run is, in one line; see `Verdict`."""

    run: str
    state: RunState
    text: str


@dataclass(frozen=True, slots=True)
class Verdicts(Answer):
    """``data/verdicts``: how runs are, by the judgements that were stored of them.

    Attributes:
        verdicts: without those of runs that `findings` has to judge.
    """

    verdicts: list[RunLine]


def verdicts(provider: Provider, run: Sequence[str]) -> Verdicts:
    """How each of these runs is, without reading their steps."""
    lines = []
    for name, models in stored_checks(provider, run).items():
        known = []
        for model, stored in sorted(models.items()):
            report = None if stored is None else report_of(model, stored)
            if report is not None:
                known.append(report)
        if not models or len(known) < len(models):
            continue
        judged = _judge(name, known)
        lines.append(RunLine(name, _state(judged), _text(judged)))
    return Verdicts(lines)


def findings(provider: Provider, run: str) -> Findings:
    """What is wrong in a run.

    Raises:
        Missing: it has no overview that can be read.
    """
    overview = run_overview(provider, run)
    table = overview.health()
    judged = _judged(provider, overview)
    lines = [line for cause in judged.causes for line in _lines(cause, table)]
    return Findings(
        run=table.run,
        layers=len(table.rows),
        steps=len(table.steps),
        written=table.written,
        unread=unread_step(provider, overview.models[0]),
        findings=lines,
        line=_verdict(judged, lines),
        difference=_difference(provider, overview),
    )


def _difference(provider: Provider, overview: RunOverview) -> ModelDifference | None:
    """See ``Findings.difference``."""
    if tags.MODEL_DIFFERENCE not in overview.tags:
        return None
    found = provider.points(PLUGIN_NAME, overview.run, [tags.MODEL_DIFFERENCE])
    points = found.get(tags.MODEL_DIFFERENCE, ())
    (blob,) = provider.blobs([(point, 0) for point in points[-1:]]) or (None,)
    table = attempted(unpack_difference, blob)
    if isinstance(table, FormatError):
        return None
    first = next((row for row in table.rows if row.is_different), None)
    layers = f"{table.compared:,} layer{'' if table.compared == 1 else 's'}"
    if first is None:
        text = f"none of {layers} differs by a relative error above {table.tolerance:g}"
        return ModelDifference(text, table)
    name = f"`{first.name}`" if first.type else first.name
    text = f"{name} differs first, by a relative error of {_decimal(first.added)}; "
    text += f"{table.different:,} of {layers} {'differs' if table.different == 1 else 'differ'}"
    return ModelDifference(text, table)


def _decimal(error: str) -> str:
    """A relative error as the tab writes numbers: ``1.2e-02`` is 0.012."""
    try:
        return f"{float(error):.2g}"
    except ValueError:  # the record was not written by `diff`
        return error


def _judged(provider: Provider, overview: RunOverview) -> Judged:
    """The verdict on a run: what was stored last of each of its models.

    A model of which no judgement was stored, such as one of `visualize` or of an earlier fmapboard,
    is judged by the steps that are kept.
    """
    reports: list[Report] = []
    for model in sorted(overview.models, key=lambda model: model.name):
        stored = overview.checked.get(model.name, StoredChecks())
        report = report_of(model.name, stored)
        reports.append(report or _of_series(provider, model))
    return _judge(overview.run, reports)


def _judge(run: str, reports: Sequence[Report]) -> Judged:
    """The verdict on a run by the reports on its models."""
    found: list[Finding] = []
    not_checked: dict[str, str] = {}
    for report in reports:
        found += report.findings
        not_checked.update(report.not_checked)
    seen = merged([report.seen for report in reports])
    return judge(run, found, seen, not_checked)


def _of_series(provider: Provider, model: ModelOverview) -> Report:
    """The judgement by the steps that are kept; made again only if there are others."""
    run = model.table.run

    def build(last: tuple[ModelOverview, Report] | None) -> tuple[ModelOverview, Report]:
        if last is not None and last[0] is model:
            return last
        return model, run_checks(record_of(provider, run, model.name))

    return provider.built(("findings", run, model.name), build, lambda _: _BYTES)[1]


def _text(judged: Judged) -> str:
    """The line of a verdict, with what an experiment has shown of the cause."""
    if judged.cause is None or not judged.cause.proved:
        return judged.line
    return f"{judged.line}; {judged.cause.proved}"


def _state(judged: Judged) -> RunState:
    is_still = judged.state == "not known" and judged.seen.is_of_images
    return "no training" if is_still else judged.state


def _verdict(judged: Judged, lines: Sequence[Line]) -> Verdict:
    in_words = replace(judged, has_names=False)
    rest = [remark for remark in in_words.rest if remark.text != LOOK]
    verdict = Verdict(_state(judged), _text(judged), "", rest)
    if judged.cause is None:
        return verdict
    first = lines[0]  # that of the root cause
    return replace(
        verdict,
        progress=judged.progress,
        name=first.name,
        label=first.label,
        key=first.key,
        shown_at=first.shown_at,
        since=first.since,
    )


def _lines(cause: Cause, table: HealthTable) -> list[Line]:
    """A cause and what may follow from it, as lines with the severity of the worst of them."""
    every = (cause.finding, *cause.consequences)
    is_certain = any(finding.class_ == "warning" for finding in every)
    severity = _CERTAIN if is_certain else _SUSPECTED
    return [_line(finding, table, severity) for finding in every]


def _line(finding: Finding, table: HealthTable, severity: int) -> Line:
    """A finding as a line about the layer that it, or its parameter, is of."""
    layer = finding.layer
    if layer is None and finding.parameter is not None:
        layer = finding.parameter.rpartition(".")[0]
    index = table.index(finding.model, layer)
    row = None if index is None else table.rows[index]
    first = table.steps[0] if table.steps else 0
    return Line(
        class_=finding.class_,
        kind=finding.kind,
        severity=severity,
        name=finding.model,
        label=finding.layer or "",
        index=index,
        key=row.key if row is not None and finding.layer else None,
        shown_at=None if row is None else row.shown_at,
        since=first if finding.since_step is None else finding.since_step,
        value=math.nan if finding.value is None else finding.value,
        message=finding.sentence,
        explanation=replace(finding, follows="").explanation,
        follows=finding.follows,
    )
