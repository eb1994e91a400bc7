"""What is wrong in a run: the findings of the checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeVar

from fmapboard.health.finding import Finding, by_cause, causes_of
from fmapboard.health.run import run_checks, switched_off
from fmapboard.health.table import HealthTable
from fmapboard.health.verdict import (
    Seen,
    Update,
    as_checked,
    is_of_output,
    is_update_of_weights,
    judge,
)
from fmapboard.health.verdict import Verdict as Judged
from fmapboard.plugin.answers import Answer
from fmapboard.plugin.overview_series import ModelOverview, RunOverview, run_overview, unread_step
from fmapboard.runs.events import SCALARS
from fmapboard.runs.provider import Provider

T = TypeVar("T")
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
        explanation: what it may mean, and what to do.
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
        class_: ``warning`` for a fault, ``note`` for a suspicion, ``well`` if nothing was found.
        text: the cause, or that nothing was found; names are between backticks.
        rest: the other lines of ``fmapboard why``.
        name: name of the model; "" for none.
        label: the layer call; "" if it is not about a layer.
        key: of the layer; None if it has no pictures.
        shown_at: key of the layer whose pictures show it.
        since: step since which it lasts; None if nothing was found.
    """

    class_: Literal["warning", "note", "well"]
    text: str
    rest: list[str]
    name: str
    label: str
    key: str | None
    shown_at: str | None
    since: int | None


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
    """

    run: str
    layers: int
    steps: int
    written: int
    unread: int | None
    findings: list[Line]
    line: Verdict


def findings(provider: Provider, run: str) -> Findings:
    """What is wrong in a run.

    Raises:
        Missing: it has no overview that can be read.
    """
    overview = run_overview(provider, run)
    table = overview.health()
    found = checked(provider, overview)
    lines = [_line(each, table, severity) for severity, each in _by_severity(found)]
    return Findings(
        run=table.run,
        layers=len(table.rows),
        steps=len(table.steps),
        written=table.written,
        unread=unread_step(provider, overview.models[0]),
        findings=lines,
        line=_verdict(judge(run, found, _seen(provider, overview, found)), found, lines),
    )


def _verdict(judged: Judged, found: Sequence[Finding], lines: Sequence[Line]) -> Verdict:
    if judged.cause is None:
        return Verdict("well", judged.line, judged.rest, "", "", None, None, None)
    line = next(line for each, line in zip(found, lines, strict=False) if each is judged.cause)
    place = line.name, line.label, line.key, line.shown_at, line.since
    return Verdict(
        "warning" if judged.verdict == "fault" else "note", judged.line, judged.rest, *place
    )


def _seen(provider: Provider, overview: RunOverview, found: Sequence[Finding]) -> Seen:
    """What a run was looked through for, with the same numbers as `fmapboard why` has."""
    table = overview.health()
    begins = {finding.since_step for finding in found}

    def seen() -> Seen:
        every = provider.tags_of(SCALARS, table.run)
        asked = [tag for tag in every if is_update_of_weights(tag) or is_of_output(tag)]
        curves = {
            tag: [(datum.step, datum.value) for datum in data]
            for tag, data in provider.scalars(table.run, asked).items()
        }
        updates: list[Update] = []
        for tag in [*curves]:
            if not is_of_output(tag):
                updates += [Update(tag, step, value) for step, value in curves.pop(tag)]
        return Seen(
            layers=len(table.rows),
            steps=table.written,
            last_step=table.steps[-1] if table.steps else None,
            is_of_images=table.is_of_images,
            updates=as_checked(updates, begins),
            curves={tag: points for tag, points in curves.items() if points},
        )

    not_checked: dict[str, str] = {}
    no_loss: dict[str, str] = {}
    for stored in overview.checked.values():
        no_loss.update(stored.no_loss)
        not_checked.update(stored.not_checked or {})
        not_checked.update(switched_off(stored.off))
    kept = _kept(provider, ("seen", table.run), table, seen)
    return replace(kept, not_checked=not_checked, no_loss=no_loss)


def _kept(provider: Provider, key: tuple[str, ...], source: object, make: Callable[[], T]) -> T:
    """What was made of an object; made again only of another one, which has other steps."""

    def build(last: tuple[object, T] | None) -> tuple[object, T]:
        return last if last is not None and last[0] is source else (source, make())

    return provider.built(key, build, lambda _: _BYTES)[1]


def checked(provider: Provider, overview: RunOverview) -> list[Finding]:
    """What the checks say of the models of a run.

    That is what they said last while the run was logged. Of a run in which no checks ran, such as
    one of `visualize`, they see the steps that TensorBoard keeps.
    """
    found: list[Finding] = []
    for model in sorted(overview.models, key=lambda each: each.name):
        stored, name = overview.checked.get(model.name), model.name
        if stored is None:
            found += _of_series(provider, model)
        else:
            found += [Finding(**asdict(each), model=name) for each in stored.findings]
    return list(by_cause(found))


def _of_series(provider: Provider, model: ModelOverview) -> tuple[Finding, ...]:
    """What the checks say of the steps that are kept."""
    key = "findings", model.table.run, model.name
    return _kept(provider, key, model, lambda: run_checks(model.record()).findings)


def _by_severity(found: Iterable[Finding]) -> Iterator[tuple[int, Finding]]:
    """The findings in their order, ordered by cause, with the severity of their group."""
    for cause in causes_of(found):
        group = cause.finding, *cause.consequences
        is_certain = any(each.class_ == "warning" for each in group)
        yield from ((_CERTAIN if is_certain else _SUSPECTED, each) for each in group)


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
        explanation=finding.explanation,
        follows=finding.follows,
    )
