"""Why a run does not learn: of its findings the root cause, with evidence and the next step."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, NamedTuple

from fmapboard.formats import tags
from fmapboard.formats.training_facts import NoLoss, OutputFacts
from fmapboard.health.finding import Cause, Finding, causes_of, percent
from fmapboard.health.record import FIRST_STEPS, LAST_STEPS, stays
from fmapboard.health.run import Report, kinds_text
from fmapboard.health.table import HealthTable


class Update(NamedTuple):
    """One value of an update ratio.

    Attributes:
        tag: of the scalar.
        step: of the optimizer.
        value: |Δw| / |w|.
    """

    tag: str
    step: int
    value: float


Curve = Sequence[tuple[int, float]]
"""A number at logged steps, ascending."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the checks of a run looked at, and the numbers that every verdict shows.

    Attributes:
        layers: number of layers of all models.
        steps: number of logged steps.
        last_step: the newest one; None if none is known.
        is_of_images: each step is another image.
        updates: those for which `is_update_of_weights` holds.
        curves: tag, one for which `is_of_output` holds -> its values.
        not_checked: kind of a check that could not run -> why, in words; None if it is not known.
        no_loss: name of an output, behind that of its model -> why its loss is not known, one of
            `formats.training_facts.NoLoss`.
    """

    layers: int = 0
    steps: int = 0
    last_step: int | None = None
    is_of_images: bool = False
    updates: Sequence[Update] = ()
    curves: Mapping[str, Curve] = field(default_factory=dict)
    not_checked: Mapping[str, str] | None = None
    no_loss: Mapping[str, str] = field(default_factory=dict)


def is_update_of_weights(tag: str) -> bool:
    """True for the update ratios of weights; biases, which may start at 0, say nothing."""
    group, _, parameter = tags.split(tag)[1].partition("/")
    return group == tags.UPDATE_RATIO and parameter.rpartition(".")[2] == "weight"


def is_of_output(tag: str) -> bool:
    """True for the scalars of the loss and of the output that a verdict shows."""
    return _base(tag) is not None


def _base(tag: str) -> str | None:
    """The tag without the names of the model and the output; None for other scalars."""
    own = f"{tags.split(tag)[1]}/"
    for base in _OF_OUTPUT:
        if own.startswith(f"{base}/"):
            return base
    return None


def as_checked(updates: Sequence[Update], begins: Collection[int | None]) -> list[Update]:
    """The updates at the steps that the checks see in the end; see `health.record.FIRST_STEPS`."""
    steps = sorted({update.step for update in updates})
    kept = {*steps[:FIRST_STEPS], *steps[-LAST_STEPS:], *begins}
    return [update for update in updates if update.step in kept]


def seen_in(reports: Sequence[Report]) -> Seen:
    """What the checks of a run's models looked at."""
    tables: list[HealthTable] = []
    updates: list[Update] = []
    curves: dict[str, list[tuple[int, float]]] = {}
    not_checked: dict[str, str] = {}
    no_loss: dict[str, str] = {}
    for report in reports:
        record = report.record
        no_loss.update(report.no_loss)
        prefix = tags.prefix(record.name)
        not_checked.update(report.not_checked)
        if record.health is not None:
            tables.append(record.health)
        for name, series in record.scalars.get(tags.UPDATE_RATIO, {}).items():
            tag = f"{prefix}{tags.of(tags.UPDATE_RATIO, name)}"
            if is_update_of_weights(tag):
                points = zip(series.steps.tolist(), series.values.tolist(), strict=True)
                updates += [Update(tag, step, value) for step, value in points]
        for step, facts in record.facts.items():
            for tag, at, value in _of_outputs(step, facts.outputs):
                curves.setdefault(f"{prefix}{tag}", []).append((at, value))
    return Seen(
        layers=sum(len(table.rows) for table in tables),
        steps=max((table.written for table in tables), default=0),
        last_step=max((table.steps[-1] for table in tables if table.steps), default=None),
        is_of_images=any(table.is_of_images for table in tables),
        updates=updates,
        curves={tag: sorted(points) for tag, points in curves.items()},
        not_checked=not_checked,
        no_loss=no_loss,
    )


def _of_outputs(step: int, outputs: Iterable[OutputFacts]) -> Iterator[tuple[str, int, float]]:
    """The scalars of outputs, as tag, step and value."""
    for output in outputs:
        loss = tags.LOSS_GIVEN if output.given else tags.LOSS_READ
        values = [
            (loss, step, output.loss),
            (tags.ACCURACY, step, output.accuracy),
            (tags.OUTPUT_SPREAD, step, output.spread),
        ]
        held = output.held
        if held is not None:
            values.append((loss, held.step, held.loss))
            values.append((tags.ACCURACY, held.step, held.accuracy))
        name = f"/{output.name}" if output.name else ""
        for base, at, value in values:
            if value is not None:
                yield f"{base}{name}", at, value


_OF_OUTPUT = {
    tags.LOSS_READ: "loss",
    tags.LOSS_GIVEN: "loss",
    tags.ACCURACY: "share of right answers",
    tags.OUTPUT_SPREAD: "spread of the output",
}
"""Tag of a scalar, behind which the name of the output may stand -> what it is called."""
MOST_LINES = 15
MOST_CHARACTERS = 2400
"""Limits of the text about a run."""
_SHOWN = 2
"""Maximum number of consequences, of further causes, and of reasons that the text names."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a run is as it is.

    Attributes:
        run: its name or path.
        causes: see `causes_of`.
        seen: what it was looked through for.
    """

    run: str
    causes: Sequence[Cause]
    seen: Seen

    @property
    def verdict(self) -> Literal["fault", "suspicion", "nothing found"]:
        """``fault`` if there is a warning, ``suspicion`` if there are notes only."""
        if not self.causes:
            return "nothing found"
        for cause, consequences in self.causes:
            if any(finding.class_ == "warning" for finding in (cause, *consequences)):
                return "fault"
        return "suspicion"

    @property
    def cause(self) -> Finding | None:
        """The root cause; None if nothing was found."""
        return self.causes[0].finding if self.causes else None

    @property
    def consequences(self) -> tuple[Finding, ...]:
        """What may follow from the root cause."""
        return self.causes[0].consequences if self.causes else ()

    @property
    def extent(self) -> str:
        """How much was looked through: "9 layers × 10 steps"."""
        kind = "image" if self.seen.is_of_images else "step"
        return f"{_counted(self.seen.layers, 'layer')} × {_counted(self.seen.steps, kind)}"

    @property
    def _looked_at(self) -> str:
        if self.seen.last_step is None:
            return self.extent
        return f"{self.extent}, the last one {self.seen.last_step}"

    @property
    def line(self) -> str:
        """The cause, or that there is none and how much the weights moved, in one sentence."""
        if self.cause is not None:
            return self.cause.sentence
        return ": ".join(["Nothing found in " + self.extent, *_of_updates(self.seen.updates)])

    @property
    def figures(self) -> list[str]:
        """Numbers of the run, as sentences without a full stop."""
        return [
            *_of_curves(self.seen.curves),
            *_of_no_loss(self.seen),
            *_of_updates(self.seen.updates),
        ]

    @property
    def evidence(self) -> list[str]:
        """What was measured, and what else was found that does not follow from the cause."""
        own = [] if self.cause is None else [self.cause.sentence]
        also = [f"found besides: {_brief(finding)}" for finding, _ in self.causes[1:]]
        return [*own, *self.figures, self._looked_at, *also]

    @property
    def next(self) -> str:
        """What to do, in sentences."""
        if self.cause is not None:
            advice = self.cause.advice.rstrip(".") or "Look at the run in the Feature maps tab"
            see = f" See {self.cause.link}" if self.cause.link else ""
            return f"{advice}.{see}"
        if self.seen.is_of_images:
            return "Look at the maps in the Feature maps tab."
        losses = [
            [value for _, value in curve]
            for tag, curve in self.seen.curves.items()
            if _base(tag) in (tags.LOSS_READ, tags.LOSS_GIVEN)
        ]
        why = "If it does not learn all the same"
        if losses and all(map(stays, losses)):
            why = "The loss has not fallen. If it should"
        return (
            f"{why}: look at the input images and their labels, train on a single batch until "
            "its loss is near 0, and see what the checks cannot see: "
            "`fmapboard docs how_we_know#what-the-checks-cannot-see`"
        )

    def as_json(self) -> dict[str, Any]:
        """An object for ``fmapboard why --json``."""
        return {
            "run": self.run,
            "verdict": self.verdict,
            "cause": None if self.cause is None else self.cause.as_json(),
            "consequences": [finding.as_json() for finding in self.consequences],
            "evidence": self.evidence,
            "next": self.next,
            "not_checked": dict(self.seen.not_checked or {}),
            "no_loss": dict(self.seen.no_loss),
        }

    @property
    def rest(self) -> list[str]:
        """What the text says besides `line`."""
        lines = []
        if self.cause is not None and self.cause.meaning:
            lines.append(f"means: {self.cause.meaning.rstrip('.')}")
        lines += [f"evidence: {figure}" for figure in self.figures]
        lines += _listed("may follow from it", self.consequences)
        lines += _listed("found besides", [finding for finding, _ in self.causes[1:]])
        lines.append(f"next: {self.next}")
        lines += _unchecked(self.seen.not_checked or {})
        return lines

    def lines(self, pictures: Sequence[str] = ()) -> list[str]:
        """The text: at most `MOST_LINES` lines and `MOST_CHARACTERS` characters.

        Args:
            pictures: paths of pictures that show it; those are not shortened, but left out.
        """
        lines = [f"{self.verdict}: {self.run} ({self._looked_at})"]
        if self.cause is not None:
            lines.append(f"cause: {self.cause.kind}: {self.line}")
        lines += self.rest
        shown = [f"picture: {path}" for path in pictures]
        most = MOST_CHARACTERS // 2
        while shown and (len(lines) + len(shown) > MOST_LINES or len("\n".join(shown)) > most):
            shown.pop()
        left = MOST_CHARACTERS - sum(len(line) + 1 for line in shown)
        return [*_shortened(lines, left), *shown]


def judge(run: str, findings: Iterable[Finding], seen: Seen) -> Verdict:
    """The verdict on a run, from what was found and what was looked at."""
    return Verdict(run, causes_of(findings), seen)


def _brief(finding: Finding) -> str:
    return f"{finding.kind}: {finding.sentence}"


def _listed(label: str, findings: Sequence[Finding]) -> list[str]:
    """One line for each of the first `_SHOWN`, the last of which says how many more there are."""
    rows = [f"{label}: {_brief(finding)}" for finding in findings[:_SHOWN]]
    more = len(findings) - _SHOWN
    if more > 0:
        rows[-1] += f"; and {more} more"
    return rows


def _unchecked(not_checked: Mapping[str, str]) -> list[str]:
    """Which checks say nothing, with the reason if there are at most `_SHOWN` reasons."""
    reasons: dict[str, list[str]] = {}
    for kind, why in not_checked.items():
        reasons.setdefault(why, []).append(kind)
    if len(reasons) > _SHOWN:
        return [f"not checked: {', '.join(not_checked)} (--json says why)"]
    return [f"not checked: {kinds_text(kinds)} ({why})" for why, kinds in reasons.items()]


def _shortened(lines: Sequence[str], most: int) -> list[str]:
    """The lines with at most ``most`` characters in all; the longest ones are cut."""
    lengths = [len(line) + 1 for line in lines]
    size = max(lengths)
    while size > 0 and sum(min(size, length) for length in lengths) > most:
        size -= 1
    return [line if len(line) < size else f"{line[: max(0, size - 2)]}…" for line in lines]


def _of_curves(curves: Mapping[str, Curve]) -> list[str]:
    """Numbers of the first `_SHOWN` outputs: "loss 2.3 at step 0, 0.41 at step 90; …"."""
    outputs: dict[str, dict[str, str]] = {}
    for tag, points in sorted(curves.items()):
        model, own = tags.split(tag)
        base = _base(tag) or ""
        name = ": ".join(part for part in (model, own[len(base) + 1 :]) if part)
        ends = [points[0], points[-1]] if len(points) > 1 else points
        values = ", ".join(f"{value:.3g} at step {step}" for step, value in ends)
        noun = f"{_OF_OUTPUT[base]} of `{name}`" if name else _OF_OUTPUT[base]
        outputs.setdefault(name, {})[base] = f"{noun} {values}"
    texts: list[str] = []
    for name in sorted(outputs)[:_SHOWN]:
        texts += [outputs[name][base] for base in _OF_OUTPUT if base in outputs[name]]
    return ["; ".join(texts)] if texts else []


_NO_LOSS = {
    NoLoss.FEW_ROWS: "fewer than eight rows with a gradient were logged so far",
    NoLoss.NO_GRADIENT: "no gradient has reached what the network returned",
    NoLoss.NOT_CERTAIN: "the gradient is not for certain that of a loss that can be read",
    NoLoss.SEVERAL: "several losses were passed back through the output one after another",
}
"""Why no loss is known -> in words."""


def _of_no_loss(seen: Seen) -> list[str]:
    """Why no loss of the first `_SHOWN` outputs without one is known."""
    known = set[str]()
    for tag in seen.curves:
        base = _base(tag)
        if base in (tags.LOSS_READ, tags.LOSS_GIVEN):
            model, own = tags.split(tag)
            known.add(": ".join(filter(None, (model, own[len(base) + 1 :]))))
    unknown = sorted(seen.no_loss.keys() - known)
    found = []
    for name in unknown[:_SHOWN]:
        of_name = f" of `{name}`" if name else ""
        why = _NO_LOSS.get(seen.no_loss[name], seen.no_loss[name])
        found.append(f"no loss{of_name} was read: {why}; board.loss(loss) logs it")
    return found


def _of_updates(updates: Iterable[Update]) -> list[str]:
    known = [update for update in updates if math.isfinite(update.value)]
    if not known:
        return []
    largest = max(known, key=lambda update: update.value)
    usual = median(update.value for update in known)
    model, rest = tags.split(largest.tag)
    name = rest.partition("/")[2]
    if model:
        name = f"{model}: {name}"
    place = f"`{name}`, step {largest.step}"
    return [f"median update {percent(usual)}, largest {percent(largest.value)} ({place})"]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
